//! Markdown writer with one fixed style: `-` and `1.`, fences, a blank line between blocks, tight nested lists. Parsing
//! the output returns the same blocks.

mod destination;
mod line;

use std::fmt::Write as _;

use super::super::markup;
use super::{Callout, Cell, DocumentBlock, Inline, Item, normalize, read};
use line::{LineContext, line, longest_run};

pub(in crate::convert) use line::tag;

/// Tables up to this width have all rows padded to it.
const PADDED_WIDTH_MAX: usize = 64;

pub(in crate::convert) fn write(blocks: &[DocumentBlock]) -> String {
    let mut page = MarkdownWriter::default();
    page.blocks(blocks, false);
    page.text
}

#[derive(Default)]
struct MarkdownWriter {
    text: String,
    /// Prefix of every line.
    prefix: String,
    /// Prefix of the next line: the marker of an item.
    first: Option<String>,
}

/// Marker of the previous list, so that two adjacent lists are not merged.
#[derive(Clone, Copy, Default, PartialEq)]
struct PreviousList {
    numbered: bool,
    other_marker: bool,
}

impl MarkdownWriter {
    /// Writes all blocks that are not empty.
    fn blocks(&mut self, blocks: &[DocumentBlock], in_item: bool) {
        let mut previous: Option<&DocumentBlock> = None;
        let mut before: Option<PreviousList> = None;
        for block in blocks.iter().filter(|block| !is_empty(block)) {
            if let Some(previous) = previous {
                let is_tight = in_item && matches!(previous, DocumentBlock::Paragraph(_)) && follows_tightly(block);
                if !is_tight {
                    self.line("");
                }
            }
            before = match block {
                DocumentBlock::List { start, items } => {
                    let numbered = start.is_some();
                    let same = before.filter(|before| before.numbered == numbered);
                    let other_marker = same.is_some_and(|before| !before.other_marker);
                    self.list(*start, items, other_marker);
                    Some(PreviousList { numbered, other_marker })
                }
                _ => {
                    self.block(block, in_item && previous.is_none());
                    None
                }
            };
            previous = Some(block);
        }
    }

    fn block(&mut self, block: &DocumentBlock, begins_item: bool) {
        match block {
            DocumentBlock::Paragraph(text) => self.lines(&line(text, LineContext::Paragraph)),
            DocumentBlock::Heading { level, text } => {
                let level = usize::from((*level).clamp(1, 6));
                self.line(&format!("{} {}", "#".repeat(level), line(text, LineContext::Heading)));
            }
            DocumentBlock::Code { language, text } => self.code(language, text),
            DocumentBlock::Equation(text) => self.equation(text),
            DocumentBlock::Quote(blocks) => self.quote(None, blocks),
            DocumentBlock::Callout { kind, blocks } => self.quote(Some(*kind), blocks),
            DocumentBlock::Details { summary, blocks } => self.details(summary, blocks),
            DocumentBlock::List { start, items } => self.list(*start, items, false),
            DocumentBlock::Table { head, rows } => self.table(head, rows),
            // Dashes after the dash of an item would form one rule.
            DocumentBlock::Rule => self.line(if begins_item { "___" } else { "---" }),
        }
    }

    /// Writes `<details>`. Its summary is HTML too, because Markdown is not parsed there.
    fn details(&mut self, summary: &[Inline], blocks: &[DocumentBlock]) {
        self.line("<details>");
        self.line(&format!("<summary>{}</summary>", markup::inlines(&normalize(summary.to_vec()))));
        self.line("");
        if blocks.iter().any(|block| !is_empty(block)) {
            self.blocks(blocks, false);
            self.line("");
        }
        self.line("</details>");
    }

    fn quote(&mut self, kind: Option<Callout>, blocks: &[DocumentBlock]) {
        let length = self.prefix.len();
        self.open("> ", "> ");
        if let Some(kind) = kind {
            self.line(&format!("[!{}]", name(kind)));
            // Only a paragraph may follow directly without becoming part of this line.
            let first = blocks.iter().find(|block| !is_empty(block));
            if first.is_some_and(|first| !matches!(first, DocumentBlock::Paragraph(_))) {
                self.line("");
            }
        }
        self.blocks(blocks, false);
        self.close(length);
    }

    fn list(&mut self, start: Option<u64>, items: &[Item], other_marker: bool) {
        let mut number = start.map(|start| start.min(999_999_999 - items.len() as u64));
        // Empty items are written only between others: at the end of a list they would end more than the list.
        let length = items.iter().rposition(|item| !is_blank(item)).map_or(0, |last| last + 1);
        for item in &items[..length] {
            let marker = match (number, other_marker) {
                (None, false) => "- ".to_owned(),
                (None, true) => "* ".to_owned(),
                (Some(number), false) => format!("{number}. "),
                (Some(number), true) => format!("{number}) "),
            };
            let length = self.prefix.len();
            self.open(&marker, &" ".repeat(marker.len()));
            if let Some(checked) = item.checked {
                self.task(checked, &item.blocks);
            } else {
                self.blocks(&item.blocks, true);
            }
            self.close(length);
            number = number.map(|number| number + 1);
        }
    }

    fn task(&mut self, checked: bool, blocks: &[DocumentBlock]) {
        let mark = if checked { "[x]" } else { "[ ]" };
        let mut rest = blocks.iter().filter(|block| !is_empty(block)).peekable();
        let text = match rest.peek() {
            Some(DocumentBlock::Paragraph(text)) => {
                rest.next();
                line(text, LineContext::Paragraph)
            }
            // A checkbox must be followed by content, and this has none.
            _ => "<br>".to_owned(),
        };
        self.lines(&format!("{mark} {text}"));
        let Some(first) = rest.peek() else { return };
        if !follows_tightly(first) {
            self.line("");
        }
        let rest: Vec<DocumentBlock> = rest.cloned().collect();
        self.blocks(&rest, false);
    }

    fn code(&mut self, language: &str, text: &str) {
        let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
        let is_shown = |c: &char| !c.is_control() && !"`\\&".contains(*c);
        let language: String = language.trim().chars().filter(is_shown).collect();
        self.line(&format!("{fence}{language}"));
        let text = text.strip_suffix('\n').unwrap_or(text);
        if !text.is_empty() {
            self.lines(text);
        }
        self.line(&fence);
    }

    fn equation(&mut self, text: &str) {
        let short = format!("$${}$$", text.trim());
        if !text.trim().contains('\n') && read::read(&short) == [DocumentBlock::Equation(text.trim().to_owned())] {
            return self.line(&short);
        }
        self.code("math", text);
    }

    fn table(&mut self, head: &[Cell], rows: &[Vec<Cell>]) {
        let width = rows.iter().map(Vec::len).max().unwrap_or_default().max(head.len()).max(1);
        self.row(head, width);
        self.line(&format!("|{}", " --- |".repeat(width)));
        for row in rows {
            self.row(row, if width > PADDED_WIDTH_MAX { row.len() } else { width });
        }
    }

    fn row(&mut self, cells: &[Cell], width: usize) {
        let mut text = "|".to_owned();
        for index in 0..width.max(1) {
            let cell = cells.get(index).map(|cell| line(cell, LineContext::Cell)).unwrap_or_default();
            let _ = write!(text, " {cell} |");
        }
        self.line(&text);
    }

    fn open(&mut self, first: &str, then: &str) {
        let base = self.first.take().unwrap_or_else(|| self.prefix.clone());
        self.first = Some(base + first);
        self.prefix.push_str(then);
    }

    /// Closes what was opened when the prefix had this length. An empty block still gets a line.
    fn close(&mut self, length: usize) {
        if self.first.is_some() {
            self.line("");
        }
        self.prefix.truncate(length);
    }

    fn lines(&mut self, text: &str) {
        for line in text.split('\n') {
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let prefix = self.first.take();
        let prefix = prefix.as_deref().unwrap_or(&self.prefix);
        self.text.push_str(if line.is_empty() { prefix.trim_end() } else { prefix });
        self.text.push_str(line);
    }
}

/// Returns `true` for blocks without content, which are not written.
pub(in crate::convert) fn is_empty(block: &DocumentBlock) -> bool {
    match block {
        DocumentBlock::Paragraph(text) | DocumentBlock::Heading { text, .. } => normalize(text.clone()).is_empty(),
        DocumentBlock::Equation(text) => text.trim().is_empty(),
        DocumentBlock::Quote(blocks) => blocks.iter().all(is_empty),
        DocumentBlock::List { items, .. } => items.iter().all(is_blank),
        DocumentBlock::Table { head, rows } => head.is_empty() && rows.iter().all(Vec::is_empty),
        _ => false,
    }
}

fn is_blank(item: &Item) -> bool {
    item.checked.is_none() && item.blocks.iter().all(is_empty)
}

/// Returns `true` if a block directly below a paragraph is parsed separately: only a list with the usual start may
/// interrupt a paragraph.
fn follows_tightly(block: &DocumentBlock) -> bool {
    let DocumentBlock::List { start, items } = block else { return false };
    let first = items.first().and_then(|item| item.blocks.iter().find(|block| !is_empty(block)));
    start.is_none_or(|start| start == 1) && matches!(first, Some(DocumentBlock::Paragraph(_)))
}

fn name(kind: Callout) -> &'static str {
    match kind {
        Callout::Note => "NOTE",
        Callout::Tip => "TIP",
        Callout::Important => "IMPORTANT",
        Callout::Warning => "WARNING",
        Callout::Caution => "CAUTION",
    }
}
