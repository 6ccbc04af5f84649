//! Tables. Their cells hold blocks, which Markdown reduces to one line.

use serde_json::Value;

use super::super::markdown::{Cell, DocumentBlock, flatten};
use super::read::{blocks, content, kind};

/// Maximum number of columns that a cell may span.
const SPAN_MAX: u64 = 32;

pub(super) fn table(node: &Value, depth: usize) -> DocumentBlock {
    let mut rows: Vec<(bool, Vec<Cell>)> = content(node).iter().map(|node| row(node, depth)).collect();
    rows.retain(|(_, cells)| !cells.is_empty());
    let width = rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or_default();
    let has_head = rows.first().is_some_and(|(is_head, _)| *is_head);
    let head = if has_head { rows.remove(0).1 } else { vec![Cell::new(); width] };
    DocumentBlock::Table { head, rows: rows.into_iter().map(|(_, cells)| cells).collect() }
}

/// Returns the cells of a row, and whether all of them are header cells.
fn row(node: &Value, depth: usize) -> (bool, Vec<Cell>) {
    let mut cells = Vec::new();
    let mut is_head = true;
    // A node that is not a row becomes a single cell.
    let found = if kind(node) == "tableRow" { content(node) } else { std::slice::from_ref(node) };
    for cell in found {
        is_head &= kind(cell) == "tableHeader";
        let is_cell = matches!(kind(cell), "tableHeader" | "tableCell");
        let inner = if is_cell { content(cell) } else { std::slice::from_ref(cell) };
        cells.push(flatten(&blocks(inner, depth + 1)));
        let span = cell["attrs"]["colspan"].as_u64().unwrap_or(1).min(SPAN_MAX);
        cells.extend((1..span).map(|_| Cell::new()));
    }
    (is_head, cells)
}
