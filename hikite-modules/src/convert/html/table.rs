//! Rows and cells, wherever their tags are.

use super::super::markdown::{Block, Inline};
use super::super::markup::Element;

/// How many columns one cell may take: some say a thousand and mean all.
const SPAN_MAX: usize = 32;

pub(super) struct Row {
    is_head: bool,
    cells: Vec<Vec<Inline>>,
}

/// The rows of a table, but not those of the tables in it.
pub(super) fn rows(table: &Element, cell: impl Fn(&Element) -> Vec<Inline>) -> Vec<Row> {
    let mut rows = Vec::new();
    collect(table, &cell, &mut rows);
    rows
}

fn collect(element: &Element, cell: &impl Fn(&Element) -> Vec<Inline>, rows: &mut Vec<Row>) {
    for child in element.elements() {
        match child.name.as_str() {
            "tr" => rows.push(row(child, cell)),
            "thead" | "tbody" | "tfoot" => collect(child, cell, rows),
            "td" | "th" => rows.push(Row { is_head: false, cells: vec![cell(child)] }),
            _ => {}
        }
    }
}

fn row(element: &Element, cell: &impl Fn(&Element) -> Vec<Inline>) -> Row {
    let mut row = Row { is_head: true, cells: Vec::new() };
    for child in element.elements() {
        if !matches!(child.name.as_str(), "td" | "th") {
            continue;
        }
        row.is_head &= child.name == "th";
        row.cells.push(cell(child));
        let span: usize = child.attribute("colspan").trim().parse().unwrap_or(1);
        row.cells.extend((1..span.min(SPAN_MAX)).map(|_| Vec::new()));
    }
    row.is_head &= !row.cells.is_empty();
    row
}

/// The whole, where there is anything in it. The first row is the head if it says so.
pub(super) fn block(mut rows: Vec<Row>) -> Option<Block> {
    rows.retain(|row| !row.cells.is_empty());
    let width = rows.iter().map(|row| row.cells.len()).max()?;
    let head = if rows[0].is_head { rows.remove(0).cells } else { vec![Vec::new(); width] };
    Some(Block::Table { head, rows: rows.into_iter().map(|row| row.cells).collect() })
}
