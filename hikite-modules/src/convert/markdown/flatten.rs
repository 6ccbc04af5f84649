//! Flattens blocks to one line, for table cells and task items. All text is preserved in order.

use super::line::one_line;
use super::{DocumentBlock, Inline, InlineKind, InlineStyle, Item, Marks, normalize};

/// Flattens blocks to a line with breaks.
pub(in crate::convert) fn flatten(blocks: &[DocumentBlock]) -> Vec<Inline> {
    let mut line = Vec::new();
    for block in blocks {
        push(block, &mut line);
    }
    normalize(line)
}

/// Returns the plain text on one line.
pub(in crate::convert) fn plain(inlines: &[Inline]) -> String {
    let mut text = String::new();
    for inline in inlines {
        match &inline.kind {
            InlineKind::Text(words) | InlineKind::Math(words) => text.push_str(words),
            InlineKind::Break => text.push(' '),
            InlineKind::Image { alt, .. } => text.push_str(alt),
        }
    }
    one_line(&text)
}

fn push(block: &DocumentBlock, line: &mut Vec<Inline>) {
    if !line.is_empty() {
        line.push(Inline::line_break());
    }
    match block {
        DocumentBlock::Paragraph(text) | DocumentBlock::Heading { text, .. } => {
            line.extend(text.iter().cloned());
        }
        DocumentBlock::Code { text, .. } => {
            line.push(Inline::text(text.trim_end(), &InlineStyle::default().marked(Marks::CODE)));
        }
        DocumentBlock::Equation(text) => {
            line.push(Inline::new(InlineKind::Math(text.clone()), &InlineStyle::default()));
        }
        DocumentBlock::Quote(blocks) | DocumentBlock::Callout { blocks, .. } => line.extend(flatten(blocks)),
        DocumentBlock::Details { summary, blocks } => {
            line.extend(summary.iter().cloned());
            line.push(Inline::line_break());
            line.extend(flatten(blocks));
        }
        DocumentBlock::List { start, items } => push_list(*start, items, line),
        DocumentBlock::Table { head, rows } => {
            for row in std::iter::once(head).chain(rows) {
                line.extend(row_line(row));
                line.push(Inline::line_break());
            }
        }
        DocumentBlock::Rule => {}
    }
}

fn push_list(start: Option<u64>, items: &[Item], line: &mut Vec<Inline>) {
    for (index, item) in items.iter().enumerate() {
        let number = start.map(|start| start.saturating_add(index as u64));
        line.push(Inline::text(bullet(number, item.checked), &InlineStyle::default()));
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
            line.push(Inline::text(" ｜ ", &InlineStyle::default()));
        }
        line.extend(cell.iter().cloned());
    }
    line
}
