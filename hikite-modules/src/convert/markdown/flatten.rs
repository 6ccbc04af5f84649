//! Flattens blocks to one line, for table cells and task items. All text is preserved in order.

use super::line::one_line;
use super::{Block, Inline, Item, Kind, Marks, Style, tidy};

/// Flattens blocks to a line with breaks.
pub(in crate::convert) fn flatten(blocks: &[Block]) -> Vec<Inline> {
    let mut line = Vec::new();
    for block in blocks {
        push(block, &mut line);
    }
    tidy(line)
}

/// Returns the plain text on one line.
pub(in crate::convert) fn plain(inlines: &[Inline]) -> String {
    let mut text = String::new();
    for inline in inlines {
        match &inline.kind {
            Kind::Text(words) | Kind::Math(words) => text.push_str(words),
            Kind::Break => text.push(' '),
            Kind::Image { alt, .. } => text.push_str(alt),
        }
    }
    one_line(&text)
}

fn push(block: &Block, line: &mut Vec<Inline>) {
    if !line.is_empty() {
        line.push(Inline::line_break());
    }
    match block {
        Block::Paragraph(text) | Block::Heading { text, .. } => line.extend(text.iter().cloned()),
        Block::Code { text, .. } => {
            line.push(Inline::text(text.trim_end(), &Style::default().marked(Marks::CODE)));
        }
        Block::Equation(text) => line.push(Inline::new(Kind::Math(text.clone()), &Style::default())),
        Block::Quote(blocks) | Block::Callout { blocks, .. } => line.extend(flatten(blocks)),
        Block::Details { summary, blocks } => {
            line.extend(summary.iter().cloned());
            line.push(Inline::line_break());
            line.extend(flatten(blocks));
        }
        Block::List { start, items } => push_list(*start, items, line),
        Block::Table { head, rows } => {
            for row in std::iter::once(head).chain(rows) {
                line.extend(row_line(row));
                line.push(Inline::line_break());
            }
        }
        Block::Rule => {}
    }
}

fn push_list(start: Option<u64>, items: &[Item], line: &mut Vec<Inline>) {
    for (index, item) in items.iter().enumerate() {
        let number = start.map(|start| start.saturating_add(index as u64));
        line.push(Inline::text(bullet(number, item.checked), &Style::default()));
        line.extend(flatten(&item.blocks));
        line.push(Inline::line_break());
    }
}

/// Returns the text marker of a flattened list item.
fn bullet(number: Option<u64>, checked: Option<bool>) -> String {
    match (checked, number) {
        (Some(true), _) => "☑ ".to_owned(),
        (Some(false), _) => "☐ ".to_owned(),
        (None, Some(number)) => format!("{number}. "),
        (None, None) => "• ".to_owned(),
    }
}

/// Joins the cells of a row.
pub(in crate::convert) fn row_line(row: &[Vec<Inline>]) -> Vec<Inline> {
    let mut line = Vec::new();
    for (index, cell) in row.iter().filter(|cell| !cell.is_empty()).enumerate() {
        if index > 0 {
            line.push(Inline::text(" ｜ ", &Style::default()));
        }
        line.extend(cell.iter().cloned());
    }
    line
}
