//! Markdown parser: GitHub Flavored Markdown (tables, strikethrough, task lists, alerts), equations, and a few HTML
//! tags. No input is rejected; content beyond the depth limit is flattened.

mod frame;
mod inline;

use pulldown_cmark::{BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::super::html;
use super::{Block, Callout, Cell, tidy};
use frame::{Frames, Holder};
use inline::Inlines;

pub(in crate::convert) fn read(text: &str) -> Vec<Block> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM
        | Options::ENABLE_MATH;
    let mut reader = Reader::default();
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(tag) => reader.start(tag),
            Event::End(tag) => reader.end(tag),
            Event::Text(words) => reader.text(&words),
            Event::Html(words) => reader.html.push_str(&words),
            Event::Rule => reader.push(Block::Rule),
            Event::TaskListMarker(checked) => reader.frames.check(checked),
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
struct Reader {
    frames: Frames,
    line: Inlines,
    code: Option<Code>,
    html: String,
    table: Vec<Vec<Cell>>,
}

struct Code {
    language: String,
    text: String,
}

impl Reader {
    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::BlockQuote(kind) => self.open(match kind.map(callout) {
                Some(kind) => Holder::Callout(kind),
                None => Holder::Quote,
            }),
            Tag::List(start) => self.open(Holder::List(start)),
            Tag::Item => self.open(Holder::Item),
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(Code { language, text: String::new() });
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
                self.frames.close();
            }
            TagEnd::CodeBlock => {
                if let Some(Code { language, text }) = self.code.take() {
                    self.push(code_block(&language, text));
                }
            }
            TagEnd::Heading(level) => {
                let (text, _) = self.line.take();
                self.push(Block::Heading { level: depth(level), text: tidy(text) });
            }
            TagEnd::Paragraph => self.flush(),
            TagEnd::HtmlBlock => self.html_block(),
            TagEnd::Table => {
                let mut rows = std::mem::take(&mut self.table).into_iter();
                let head = rows.next().unwrap_or_default();
                self.push(Block::Table { head, rows: rows.collect() });
            }
            TagEnd::TableHead | TagEnd::TableRow => {}
            TagEnd::TableCell => {
                let (text, _) = self.line.take();
                if let Some(row) = self.table.last_mut() {
                    row.push(tidy(text));
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

    fn open(&mut self, holder: Holder) {
        self.flush();
        self.frames.open(holder);
    }

    fn push(&mut self, block: Block) {
        self.flush();
        self.frames.push(block);
    }

    /// Ends the current line as a paragraph, also in a tight list item, where the parser reports none.
    fn flush(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let (text, is_equation) = self.line.take();
        let text = tidy(text);
        let block = match text.as_slice() {
            [] => return,
            [super::Inline { kind: super::Kind::Math(text), .. }] if is_equation => {
                Block::Equation(text.clone())
            }
            _ => Block::Paragraph(text),
        };
        self.frames.push(block);
    }

    /// Handles HTML blocks. `<details>` may stay open across the blocks that follow.
    fn html_block(&mut self) {
        let text = std::mem::take(&mut self.html);
        let mut rest = text.trim_start();
        while let Some(after) = strip_close(rest) {
            self.frames.close_details();
            rest = after;
        }
        let lower = rest.to_ascii_lowercase();
        let opens = lower.matches("<details").count();
        let closes = lower.matches("</details").count();
        let mut blocks = html::blocks(rest);
        for _ in closes..opens {
            let Some(Block::Details { summary, blocks: inner }) =
                blocks.pop_if(|last| matches!(last, Block::Details { .. }))
            else {
                break;
            };
            self.frames.extend(blocks);
            self.frames.open(Holder::Details(summary));
            blocks = inner;
        }
        self.frames.extend(blocks);
        for _ in opens..closes {
            self.frames.close_details();
        }
    }

    fn finish(mut self) -> Vec<Block> {
        self.flush();
        self.frames.finish()
    }
}

fn strip_close(text: &str) -> Option<&str> {
    let start = text.get(..9).filter(|start| start.eq_ignore_ascii_case("</details"))?;
    let (_, rest) = text[start.len()..].split_once('>')?;
    Some(rest.trim_start())
}

fn code_block(language: &str, mut text: String) -> Block {
    if text.ends_with('\n') {
        text.pop();
    }
    if language.trim() == "math" {
        return Block::Equation(text.trim().to_owned());
    }
    Block::Code { language: language.trim().to_owned(), text }
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
