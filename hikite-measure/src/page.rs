//! Writes the measurements as Markdown. A page with markers keeps the text around them; any other file is replaced.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::MeasureReport;
use super::number::{counted, share, thousands};
use super::section::{ReportSection, sections};
use super::table::MeasureTable;

/// Markers around the measurements, each on its own line.
const BEGIN: &str = "<!-- measured: what stands up to the end is made by `hikite measure --markdown` -->";
const END: &str = "<!-- measured: end -->";

/// Writes the measurements into the file.
pub fn write(file: &Path, report: &MeasureReport) -> Result<()> {
    let page = page(fs::read_to_string(file).ok().as_deref(), report);
    fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))
}

/// Returns the page with the measurements replaced.
pub(crate) fn page(old: Option<&str>, report: &MeasureReport) -> String {
    let figures = format!("{BEGIN}\n\n{}\n\n{END}", figures(report));
    let around = old.and_then(|old| {
        let (before, rest) = old.split_once(BEGIN)?;
        Some((before, rest.split_once(END)?.1))
    });
    match around {
        Some((before, after)) => format!("{before}{figures}{after}"),
        None => format!("# What tools cost a model\n\n{figures}\n"),
    }
}

fn figures(report: &MeasureReport) -> String {
    let (tools, modules) = (counted(report.tools(), "tool"), counted(report.modules.len(), "module"));
    let head = format!("Measured with hikite {}: {tools} of {modules}.", env!("CARGO_PKG_VERSION"));
    let single = (!report.answers.is_empty()).then(|| single_answers(report));
    let parts = sections(report).into_iter().chain(single).map(|section| {
        let table = section.table.map(|table| format!("\n\n{}", table.markdown())).unwrap_or_default();
        format!("## {}\n\n{}{table}", section.title, section.words)
    });
    std::iter::once(head).chain(parts).collect::<Vec<_>>().join("\n\n")
}

fn single_answers(report: &MeasureReport) -> ReportSection {
    let mut table = MeasureTable::new(&["tool", "rows", "as JSON", "compact", "of JSON", "shaped", "of JSON"]);
    for answer in &report.answers {
        let none = || "–".to_owned();
        table.row(vec![
            format!("{}:{}", answer.module, answer.tool),
            answer.rows.map_or_else(none, thousands),
            thousands(answer.plain),
            thousands(answer.compact),
            share(answer.compact, answer.plain),
            answer.shaped.map_or_else(none, thousands),
            answer.shaped.map_or_else(none, |shaped| share(shaped, answer.plain)),
        ]);
    }
    let words = "The same, one by one. Rows are counted where an answer is a list of objects or holds one.".to_owned();
    ReportSection { title: "Each answer", words, table: Some(table) }
}
