//! `hikite audit export`: records as lines of JSON, with their hashes, or as a table for a spreadsheet. Read and
//! written piece by piece, however many there are.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use hikite_core::json::{Object, Raw};
use hikite_store::{AuditFilter, AuditRow, AuditWalk, Store};

use super::Filters;
use crate::cli::note;

/// Records that are read at once.
const AT_ONCE: usize = 1000;

/// The columns of the table, as the members of a record are called.
#[rustfmt::skip]
const COLUMNS: [&str; 29] = [
    "seq", "at", "kind", "decision", "outcome", "requestId", "subject", "token", "client", "project", "account",
    "session", "surface", "method", "module", "tool", "what", "argumentsHash", "ms", "attempts", "cached", "bytesIn",
    "bytesOut", "tokensEstimated", "provider", "queries", "queriesHash", "results", "lost",
];

#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    filters: Filters,
    /// Lines of JSON, which can be verified, or a table
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// The file to make; it must not exist yet [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Jsonl,
    Csv,
}

impl Export {
    pub(super) async fn run(self, store: &Store) -> Result<ExitCode> {
        let filter = self.filters.filter();
        let Some(path) = &self.out else {
            let written = write(store, &filter, self.format, &mut BufWriter::new(io::stdout())).await;
            return gone_is_well(written);
        };
        let mut file = BufWriter::new(create(path)?);
        let count = write(store, &filter, self.format, &mut file).await?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all().with_context(|| format!("cannot write `{}`", path.display()))?;
        note(&format!("{}: {count} records", path.display()));
        Ok(ExitCode::SUCCESS)
    }
}

/// For its owner alone: it tells what people do.
fn create(path: &Path) -> Result<std::fs::File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.with_context(|| {
        format!("cannot make `{}`\nhint: name a file that does not exist yet", path.display())
    })
}

/// Whoever reads stdout may have seen enough.
fn gone_is_well(written: Result<u64>) -> Result<ExitCode> {
    let is_gone = |error: &anyhow::Error| {
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    match written {
        Err(error) if !is_gone(&error) => Err(error),
        _ => Ok(ExitCode::SUCCESS),
    }
}

async fn write(
    store: &Store,
    filter: &AuditFilter,
    format: Format,
    out: &mut (dyn Write + Send),
) -> Result<u64> {
    if format == Format::Csv {
        writeln!(out, "{},hash", COLUMNS.join(","))?;
    }
    let (mut after, mut count) = (0, 0);
    loop {
        let rows = store.audit(filter, AuditWalk::On(after), AT_ONCE).await?;
        for row in &rows {
            match format {
                Format::Jsonl => writeln!(out, "{}", row.line())?,
                Format::Csv => writeln!(out, "{}", cells(row))?,
            }
            (after, count) = (row.seq, count + 1);
        }
        if rows.len() < AT_ONCE {
            break;
        }
    }
    out.flush()?;
    Ok(count)
}

fn cells(row: &AuditRow) -> String {
    let record = Raw::parse(row.record.clone()).ok().and_then(|record| record.object()).unwrap_or_default();
    let cells = COLUMNS.iter().map(|name| cell(&record, name));
    cells.chain([row.hash.clone()]).collect::<Vec<String>>().join(",")
}

fn cell(record: &Object, name: &str) -> String {
    match record.get(name) {
        None => String::new(),
        Some(value) => value.text().map_or_else(|| value.as_str().into_owned(), |text| quoted(&text)),
    }
}

/// As RFC 4180 has it. What a spreadsheet would take for a formula gets a sign before it: names come from clients.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@']);
    if !formula && !text.contains([',', '"', '\n', '\r']) {
        return text.to_owned();
    }
    format!("\"{}{}\"", if formula { "'" } else { "" }, text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_cell_and_never_a_formula() {
        for (text, cell) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
            ("@x", "\"'@x\""),
            ("", ""),
        ] {
            assert_eq!(quoted(text), cell);
        }
    }

    #[test]
    fn the_columns_are_the_members_of_a_record_in_their_order() {
        let full = hikite_core::audit::Record {
            request_id: "r".into(),
            subject: "s".into(),
            token: "t".into(),
            client: "c".into(),
            project: "p".into(),
            account: "a".into(),
            session: Some(1),
            surface: "s",
            method: "m",
            module: "m".into(),
            tool: "t".into(),
            what: "w".into(),
            arguments_hash: "h".into(),
            attempts: 1,
            cached: true,
            bytes_in: 1,
            bytes_out: 1,
            tokens_estimated: 1,
            provider: "p",
            queries: 1,
            queries_hash: "h".into(),
            results: Some(1),
            lost: 1,
            ..Default::default()
        };
        let record = Raw::parse(full.text(1)).expect("JSON").object().expect("an object");
        let members: Vec<&str> = record.iter().map(|(name, _)| name).collect();
        assert_eq!(members, COLUMNS);
    }
}
