//! Parser state of one line: open marks and the current link.

use std::rc::Rc;

use pulldown_cmark::{CowStr, Event, LinkType, Tag, TagEnd};

use super::super::super::markup::{self, MarkupToken};
use super::super::{Inline, InlineKind, InlineStyle, Marks};

#[derive(Default)]
pub(super) struct InlineReader {
    pieces: Vec<Inline>,
    /// Open marks, links and tags, innermost last.
    open: Vec<OpenInline>,
    style: InlineStyle,
    /// URLs of open images. Text inside them is the alternative text.
    images: Vec<String>,
    alt: String,
    soft: bool,
    is_equation: bool,
}

enum OpenInline {
    Mark(Marks),
    Link(Option<Rc<str>>),
    Tag(String, InlineStyle),
}

impl InlineReader {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the line, and whether it contains a display equation.
    pub(super) fn take(&mut self) -> (Vec<Inline>, bool) {
        let line = std::mem::take(self);
        (line.pieces, line.is_equation)
    }

    pub(super) fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis => self.mark(Marks::EMPHASIS),
            Tag::Strong => self.mark(Marks::STRONG),
            Tag::Strikethrough => self.mark(Marks::STRIKE),
            Tag::Link { link_type, dest_url, .. } => {
                self.open.push(OpenInline::Link(self.style.link.clone()));
                let scheme = if link_type == LinkType::Email { "mailto:" } else { "" };
                self.style = self.style.to(&format!("{scheme}{dest_url}"));
            }
            Tag::Image { dest_url, .. } => {
                if self.images.is_empty() {
                    self.alt.clear();
                }
                self.images.push(dest_url.into_string());
            }
            _ => {}
        }
    }

    pub(super) fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link => self.close(),
            TagEnd::Image => {
                let url = self.images.pop();
                if let Some(url) = url.filter(|_| self.images.is_empty()) {
                    let alt = std::mem::take(&mut self.alt);
                    self.push(InlineKind::Image { alt, url });
                }
            }
            _ => {}
        }
    }

    pub(super) fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Code(text) if self.images.is_empty() => {
                let style = self.style.marked(Marks::CODE);
                self.spaced(&text);
                self.pieces.push(Inline::text(text.into_string(), &style));
            }
            Event::Code(text) | Event::Text(text) => self.text(&text),
            Event::InlineMath(text) => self.math(text),
            Event::DisplayMath(text) => {
                self.is_equation = true;
                self.math(text);
            }
            Event::InlineHtml(text) | Event::Html(text) => self.tag(&text),
            Event::SoftBreak => self.soft = true,
            Event::HardBreak => self.push(InlineKind::Break),
            _ => {}
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        if !self.images.is_empty() {
            self.alt.push_str(text);
            return;
        }
        self.spaced(text);
        if let Some(Inline { kind: InlineKind::Text(last), style }) = self.pieces.last_mut()
            && *style == self.style
        {
            last.push_str(text);
            return;
        }
        self.pieces.push(Inline::text(text, &self.style));
    }

    fn math(&mut self, text: CowStr<'_>) {
        if self.images.is_empty() {
            self.push(InlineKind::Math(text.into_string()));
        } else {
            self.alt.push_str(&text);
        }
    }

    fn push(&mut self, kind: InlineKind) {
        if !self.images.is_empty() {
            self.alt.push(' ');
            return;
        }
        if kind != InlineKind::Break {
            self.spaced("");
        }
        self.soft = false;
        self.pieces.push(Inline::new(kind, &self.style));
    }

    /// Inserts a blank for a soft line break, except between two characters of a script without spaces.
    fn spaced(&mut self, text: &str) {
        if !std::mem::take(&mut self.soft) {
            return;
        }
        let before = match self.pieces.last().map(|last| &last.kind) {
            Some(InlineKind::Text(text)) => text.chars().next_back(),
            _ => None,
        };
        let after = text.chars().next();
        if !(before.is_some_and(is_unspaced) && after.is_some_and(is_unspaced)) {
            self.pieces.push(Inline::text(" ", &InlineStyle::default()));
        }
    }

    fn mark(&mut self, mark: Marks) {
        // The mark may already be open, and then stays open.
        let fresh = if self.style.marks.has(mark) { Marks::default() } else { mark };
        self.open.push(OpenInline::Mark(fresh));
        self.style = self.style.marked(mark);
    }

    /// Closes the innermost mark or link, and every unclosed tag in it.
    fn close(&mut self) {
        while let Some(open) = self.open.pop() {
            match open {
                OpenInline::Mark(mark) => {
                    self.style.marks = self.style.marks.without(mark);
                    return;
                }
                OpenInline::Link(link) => {
                    self.style.link = link;
                    return;
                }
                OpenInline::Tag(_, style) => self.style = style,
            }
        }
    }

    /// Handles an inline HTML tag. Unknown tags are text.
    fn tag(&mut self, text: &str) {
        if text.starts_with("<!--") || text.starts_with("<?") || text.starts_with("<!") {
            return;
        }
        let mut tokens = markup::tokens(text);
        match (tokens.next(), tokens.next()) {
            (Some(MarkupToken::Open(tag)), None) if tag.name == "br" => self.push(InlineKind::Break),
            (Some(MarkupToken::Open(tag)), None) if tag.name == "img" => {
                let (alt, url) = (tag.attribute("alt").to_owned(), tag.attribute("src").to_owned());
                self.push(InlineKind::Image { alt, url });
            }
            (Some(MarkupToken::Open(tag)), None) if markup::is_known(&tag.name) => {
                let style = match markup::mark(&tag.name) {
                    Some(mark) => self.style.marked(mark),
                    None if tag.name == "a" => self.style.to(tag.attribute("href")),
                    None => self.style.clone(),
                };
                if !tag.is_closed {
                    let before = std::mem::replace(&mut self.style, style);
                    self.open.push(OpenInline::Tag(tag.name, before));
                }
            }
            (Some(MarkupToken::Close(name)), None) if markup::is_known(&name) => {
                if let Some(OpenInline::Tag(last, _)) = self.open.last()
                    && *last == name
                    && let Some(OpenInline::Tag(_, style)) = self.open.pop()
                {
                    self.style = style;
                }
            }
            _ => self.text(text),
        }
    }
}

/// Returns `true` for scripts without spaces between words: ideographic marks through kana and Han, and full-width
/// forms. Hangul uses spaces.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}
