//! Markdown parser: GitHub Flavored Markdown (tables, strikethrough, task lists, alerts), equations, and a few HTML
//! tags. No input is rejected; content beyond the depth limit is flattened.

mod frame;
mod inline;

use pulldown_cmark::{BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::super::html;
use super::{Callout, Cell, DocumentBlock, normalize};
use frame::{ContainerKind, ContainerStack};
use inline::InlineReader;

pub(in crate::convert) fn read(text: &str) -> Vec<DocumentBlock> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM
        | Options::ENABLE_MATH;
    let mut reader = MarkdownReader::default();
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(tag) => reader.start(tag),
            Event::End(tag) => reader.end(tag),
            Event::Text(words) => reader.text(&words),
            Event::Html(words) => reader.html.push_str(&words),
            Event::Rule => reader.push(DocumentBlock::Rule),
            Event::TaskListMarker(checked) => reader.containers.check(checked),
            Event::InlineMath(_) if is_beside_word(text, range.start, range.end) => {
                reader.line.text(&text[range]);
            }
            other => reader.line.event(other),
        }
    }
    reader.finish()
}

/// Returns `true` if a dollar sign touches a word: `$HOME/$PATH` is not an equation.
fn is_beside_word(text: &str, start: usize, end: usize) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let before = start.checked_sub(1).and_then(|before| text.as_bytes().get(before));
    is_word(before) || is_word(text.as_bytes().get(end))
}

#[derive(Default)]
struct MarkdownReader {
    containers: ContainerStack,
    line: InlineReader,
    code: Option<CodeBlock>,
    html: String,
    table: Vec<Vec<Cell>>,
}

struct CodeBlock {
    language: String,
    text: String,
}

impl MarkdownReader {
    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::BlockQuote(kind) => self.open(match kind.map(callout) {
                Some(kind) => ContainerKind::Callout(kind),
                None => ContainerKind::Quote,
            }),
            Tag::List(start) => self.open(ContainerKind::List(start)),
            Tag::Item => self.open(ContainerKind::Item),
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(CodeBlock { language, text: String::new() });
            }
            Tag::Paragraph | Tag::Heading { .. } | Tag::HtmlBlock => self.flush(),
            Tag::Table(_) => {
                self.flush();
                self.table.clear();
            }
            Tag::TableHead | Tag::TableRow => self.table.push(Vec::new()),
            Tag::TableCell => {}
            other => self.line.start(other),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => {
                self.flush();
                self.containers.close();
            }
            TagEnd::CodeBlock => {
                if let Some(CodeBlock { language, text }) = self.code.take() {
                    self.push(code_block(&language, text));
                }
            }
            TagEnd::Heading(level) => {
                let (text, _) = self.line.take();
                self.push(DocumentBlock::Heading { level: depth(level), text: normalize(text) });
            }
            TagEnd::Paragraph => self.flush(),
            TagEnd::HtmlBlock => self.html_block(),
            TagEnd::Table => {
                let mut rows = std::mem::take(&mut self.table).into_iter();
                let head = rows.next().unwrap_or_default();
                self.push(DocumentBlock::Table { head, rows: rows.collect() });
            }
            TagEnd::TableHead | TagEnd::TableRow => {}
            TagEnd::TableCell => {
                let (text, _) = self.line.take();
                if let Some(row) = self.table.last_mut() {
                    row.push(normalize(text));
                }
            }
            other => self.line.end(other),
        }
    }

    fn text(&mut self, words: &str) {
        match &mut self.code {
            Some(code) => code.text.push_str(words),
            None => self.line.text(words),
        }
    }

    fn open(&mut self, container: ContainerKind) {
        self.flush();
        self.containers.open(container);
    }

    fn push(&mut self, block: DocumentBlock) {
        self.flush();
        self.containers.push(block);
    }

    /// Ends the current line as a paragraph, also in a tight list item, where the parser reports none.
    fn flush(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let (text, is_equation) = self.line.take();
        let text = normalize(text);
        let block = match text.as_slice() {
            [] => return,
            [super::Inline { kind: super::InlineKind::Math(text), .. }] if is_equation => {
                DocumentBlock::Equation(text.clone())
            }
            _ => DocumentBlock::Paragraph(text),
        };
        self.containers.push(block);
    }

    /// Handles HTML blocks. `<details>` may stay open across the blocks that follow.
    fn html_block(&mut self) {
        let text = std::mem::take(&mut self.html);
        let mut rest = text.trim_start();
        while let Some(after) = strip_close(rest) {
            self.containers.close_details();
            rest = after;
        }
        let lower = rest.to_ascii_lowercase();
        let opens = lower.matches("<details").count();
        let closes = lower.matches("</details").count();
        let mut blocks = html::blocks(rest);
        for _ in closes..opens {
            let Some(DocumentBlock::Details { summary, blocks: inner }) =
                blocks.pop_if(|last| matches!(last, DocumentBlock::Details { .. }))
            else {
                break;
            };
            self.containers.extend(blocks);
            self.containers.open(ContainerKind::Details(summary));
            blocks = inner;
        }
        self.containers.extend(blocks);
        for _ in opens..closes {
            self.containers.close_details();
        }
    }

    fn finish(mut self) -> Vec<DocumentBlock> {
        self.flush();
        self.containers.finish()
    }
}

fn strip_close(text: &str) -> Option<&str> {
    let start = text.get(..9).filter(|start| start.eq_ignore_ascii_case("</details"))?;
    let (_, rest) = text[start.len()..].split_once('>')?;
    Some(rest.trim_start())
}

fn code_block(language: &str, mut text: String) -> DocumentBlock {
    if text.ends_with('\n') {
        text.pop();
    }
    if language.trim() == "math" {
        return DocumentBlock::Equation(text.trim().to_owned());
    }
    DocumentBlock::Code { language: language.trim().to_owned(), text }
}

fn depth(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

fn callout(kind: BlockQuoteKind) -> Callout {
    match kind {
        BlockQuoteKind::Note => Callout::Note,
        BlockQuoteKind::Tip => Callout::Tip,
        BlockQuoteKind::Important => Callout::Important,
        BlockQuoteKind::Warning => Callout::Warning,
        BlockQuoteKind::Caution => Callout::Caution,
    }
}
