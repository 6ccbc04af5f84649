//! The parts of a call that need no network, measured by the benchmarks of three crates.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::rig::table::{ReportTable, TableCell};

/// A table with its columns and their numbers of decimals.
struct TableFormat {
    name: &'static str,
    title: &'static str,
    columns: &'static [&'static str],
    decimals: &'static [usize],
}

const KINDS: &[TableFormat] = &[
    TableFormat {
        name: "check",
        title: "check of one call's arguments, median ns",
        columns: &["tool", "schema B", "arguments B", "no check", "passes", "as text", "refused", "compile"],
        decimals: &[0, 0, 0, 1, 0, 0, 0, 0],
    },
    TableFormat {
        name: "catalog",
        title: "finding a tool, median ns",
        columns: &["tools", "by key", "by name", "absent", "by walking", "build ms"],
        decimals: &[0, 1, 1, 1, 0, 2],
    },
    TableFormat {
        name: "search",
        title: "search, medians (the question's vector is there already)",
        columns: &["tools", "build ms", "by words µs", "by words and meaning µs"],
        decimals: &[0, 1, 0, 0],
    },
    TableFormat {
        name: "plan",
        title: "planning a batch of tasks with three references each, median µs",
        columns: &["tasks", "B", "read", "check", "waves", "schedule", "fill in", "read to schedule"],
        decimals: &[0, 0, 0, 0, 0, 0, 0, 0],
    },
    TableFormat {
        name: "toon",
        title: "TOON of a large answer, medians",
        columns: &["encoder", "JSON B", "ms", "MB/s", "times ours"],
        decimals: &[0, 0, 1, 0, 1],
    },
    TableFormat {
        name: "shape",
        title: "recorded answers in the shape of their module, median µs",
        columns: &["tool", "JSON B", "compact B", "parse", "project", "answer to text"],
        decimals: &[0, 0, 0, 1, 1, 1],
    },
    TableFormat {
        name: "token", title: "who bears a token, median µs", columns: &["token", "µs"], decimals: &[0, 2]
    },
];

/// Crates with a benchmark, and its name.
const BENCHES: [(&str, &str); 3] =
    [("hikite-core", "core"), ("hikite-modules", "modules"), ("hikite-gateway", "gateway")];

pub(super) fn measure() -> Result<Vec<ReportTable>> {
    let text = BENCHES.iter().map(|(package, bench)| run(package, bench)).collect::<Result<String>>()?;
    KINDS.iter().map(|kind| table(kind, &text)).collect()
}

/// Returns the time of a lexical search in microseconds, by number of tools.
pub(super) fn search() -> Result<Vec<(usize, f64)>> {
    let text = run("hikite-core", "core")?;
    let rows = text.lines().filter_map(|line| line.strip_prefix("search "));
    let number = |value: &Value| value.as_f64().context("a number");
    rows.map(|row| {
        let row: Vec<Value> = serde_json::from_str(row)?;
        let [count, _, by_words, ..] = row.as_slice() else { bail!("a short row") };
        Ok((usize::try_from(count.as_u64().context("a number of tools")?)?, number(by_words)?))
    })
    .collect()
}

fn run(package: &str, bench: &str) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["bench", "-q", "-p", package, "--bench", bench])
        .current_dir(crate::root()?)
        .stderr(std::process::Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "the benchmark of {package} failed");
    Ok(String::from_utf8(output.stdout)?)
}

fn table(kind: &TableFormat, text: &str) -> Result<ReportTable> {
    let rows = text.lines().filter_map(|line| line.strip_prefix(kind.name)?.strip_prefix(' '));
    let rows = rows.map(|row| cells(kind, row)).collect::<Result<Vec<_>>>()?;
    ensure!(!rows.is_empty(), "no rows for `{}`", kind.name);
    Ok(ReportTable { name: kind.name, title: kind.title.into(), columns: kind.columns, rows })
}

fn cells(kind: &TableFormat, row: &str) -> Result<Vec<TableCell>> {
    let row: Vec<Value> = serde_json::from_str(row)?;
    ensure!(row.len() == kind.columns.len(), "a row of {} cells for `{}`", row.len(), kind.name);
    let cell = |(value, decimals): (&Value, &usize)| match value {
        Value::String(text) => Ok(TableCell::text(text)),
        number => Ok(TableCell::Number(number.as_f64().context("neither text nor number")?, *decimals)),
    };
    row.iter().zip(kind.decimals).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_tables() {
        let table = table(&KINDS[1], "check [1]\ncatalog [100,1.26,2,3,4.6,0.126]\n").expect("a table");
        let shown: Vec<String> = table.rows[0].iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["100", "1.3", "2.0", "3.0", "5", "0.13"]);
        assert!(super::table(&KINDS[0], "check [1]\n").is_err());
    }
}
