//! Table rows and cells at any level of markup. Other content between them becomes a row of its own.

use super::super::markdown::{Cell, DocumentBlock};
use super::super::markup::{Element, Node};

/// Maximum number of columns that a cell may span: some declare a thousand to mean all.
const SPAN_MAX: usize = 32;

pub(super) struct HtmlRow {
    is_head: bool,
    cells: Vec<Cell>,
}

/// Collects the rows of a table, without those of nested tables.
pub(super) fn rows(table: &Element, cell: impl Fn(&[Node]) -> Cell) -> Vec<HtmlRow> {
    let mut rows = Vec::new();
    collect(table, &cell, &mut rows);
    rows
}

fn collect(element: &Element, cell: &impl Fn(&[Node]) -> Cell, rows: &mut Vec<HtmlRow>) {
    for node in &element.children {
        match node {
            Node::Element(child) => match child.name.as_str() {
                "tr" => rows.push(row(child, cell)),
                "thead" | "tbody" | "tfoot" => collect(child, cell, rows),
                "caption" | "colgroup" | "col" => {}
                "td" | "th" => rows.push(HtmlRow { is_head: false, cells: vec![cell(&child.children)] }),
                _ => rows.push(HtmlRow { is_head: false, cells: vec![cell(std::slice::from_ref(node))] }),
            },
            Node::Text(text) if text.trim().is_empty() => {}
            Node::Text(_) => {
                rows.push(HtmlRow { is_head: false, cells: vec![cell(std::slice::from_ref(node))] });
            }
        }
    }
}

fn row(element: &Element, cell: &impl Fn(&[Node]) -> Cell) -> HtmlRow {
    let mut row = HtmlRow { is_head: true, cells: Vec::new() };
    for node in &element.children {
        match node {
            Node::Element(child) if matches!(child.name.as_str(), "td" | "th") => {
                row.is_head &= child.name == "th";
                row.cells.push(cell(&child.children));
                let span: usize = child.attribute("colspan").trim().parse().unwrap_or(1);
                row.cells.extend((1..span.min(SPAN_MAX)).map(|_| Cell::new()));
            }
            Node::Text(text) if text.trim().is_empty() => {}
            _ => row.cells.push(cell(std::slice::from_ref(node))),
        }
    }
    row.is_head &= !row.cells.is_empty();
    row
}

/// Builds the table block, or `None` if it is empty. The first row is the head if all its cells are header cells.
pub(super) fn block(mut rows: Vec<HtmlRow>) -> Option<DocumentBlock> {
    rows.retain(|row| !row.cells.is_empty());
    let width = rows.iter().map(|row| row.cells.len()).max()?;
    let head = if rows[0].is_head { rows.remove(0).cells } else { vec![Cell::new(); width] };
    Some(DocumentBlock::Table { head, rows: rows.into_iter().map(|row| row.cells).collect() })
}
