//! Writes a line as rich text: texts of at most 2000 UTF-16 code units, each with its marks.

use serde_json::{Map, Value, json};

use super::super::super::markdown::{Inline, InlineKind, InlineStyle, plain};
use super::super::rich_text::ANNOTATIONS;

/// Maximum number of pieces in a block.
pub(super) const PIECES_MAX: usize = 100;
/// Maximum length of an equation.
pub(super) const EXPRESSION_MAX: usize = 1000;
const TEXT_MAX: usize = 2000;
const ADDRESS_MAX: usize = 2000;

pub(super) fn pieces(line: &[Inline]) -> Vec<Value> {
    let mut pieces = RichTextWriter::default();
    for group in line.chunk_by(|a, b| a.style.link == b.style.link) {
        pieces.group(group);
    }
    pieces.flush();
    pieces.done
}

/// Returns plain text as rich text.
pub(super) fn texts(text: &str) -> Vec<Value> {
    let mut pieces = RichTextWriter::default();
    pieces.text(text, &InlineStyle::default());
    pieces.flush();
    pieces.done
}

/// Returns `true` for HTTP URLs.
pub(super) fn is_web(url: &str) -> bool {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    is_web && url.len() <= ADDRESS_MAX && !url.contains(char::is_whitespace)
}

/// Returns `true` if Notion accepts this URL as a link.
fn is_link(url: &str) -> bool {
    is_web(url) || url.starts_with("mailto:") || url.starts_with("tel:")
}

#[derive(Default)]
struct RichTextWriter {
    done: Vec<Value>,
    /// Collected text of the current style.
    text: String,
    style: InlineStyle,
}

impl RichTextWriter {
    /// Writes pieces with the same link.
    fn group(&mut self, group: &[Inline]) {
        let url = group[0].style.link.as_deref();
        if let Some(id) = url.and_then(|url| url.strip_prefix("user:"))
            && is_id(id)
            && plain(group).starts_with('@')
        {
            self.flush();
            self.done.push(json!({ "type": "mention", "mention": { "type": "user", "user": { "id": id } } }));
            return;
        }
        for piece in group {
            self.piece(piece);
        }
        // A URL that Notion would reject is written into the text.
        if let Some(url) = url.filter(|url| !is_link(url)) {
            self.text(&format!(" ({url})"), &InlineStyle::default());
        }
    }

    fn piece(&mut self, piece: &Inline) {
        let link = piece.style.link.clone().filter(|url| is_link(url));
        let style = InlineStyle { marks: piece.style.marks, link };
        match &piece.kind {
            InlineKind::Text(text) => self.text(text, &style),
            InlineKind::Break => self.text("\n", &self.style.clone()),
            InlineKind::Image { alt, url } => {
                let shown = if alt.is_empty() { "image" } else { alt };
                if style.link.is_none() && is_link(url) {
                    self.text(shown, &style.to(url));
                } else {
                    self.text(&format!("{shown} ({url})"), &style);
                }
            }
            InlineKind::Math(text) if text.chars().count() > EXPRESSION_MAX => self.text(text, &style),
            InlineKind::Math(text) => {
                self.flush();
                let mut piece = json!({ "type": "equation", "equation": { "expression": text } });
                annotate(&style, &mut piece);
                self.done.push(piece);
            }
        }
    }

    fn text(&mut self, text: &str, style: &InlineStyle) {
        if *style != self.style {
            self.flush();
            self.style = style.clone();
        }
        self.text.push_str(text);
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        for content in chunks(&text) {
            let mut body = json!({ "content": content });
            if let Some(url) = &self.style.link {
                body["link"] = json!({ "url": &**url });
            }
            let mut piece = json!({ "type": "text", "text": body });
            annotate(&self.style, &mut piece);
            self.done.push(piece);
        }
    }
}

/// Adds the marks that are set.
fn annotate(style: &InlineStyle, piece: &mut Value) {
    let there = ANNOTATIONS.iter().filter(|(_, mark)| style.marks.has(*mark));
    let annotations: Map<String, Value> = there.map(|(name, _)| ((*name).to_owned(), Value::Bool(true))).collect();
    if !annotations.is_empty() {
        piece["annotations"] = Value::Object(annotations);
    }
}

/// Splits text at the limit, but never inside a character.
fn chunks(text: &str) -> Vec<&str> {
    let mut chunks = Vec::new();
    let (mut start, mut length) = (0, 0);
    for (at, c) in text.char_indices() {
        if length + c.len_utf16() > TEXT_MAX {
            chunks.push(&text[start..at]);
            (start, length) = (at, 0);
        }
        length += c.len_utf16();
    }
    if start < text.len() {
        chunks.push(&text[start..]);
    }
    chunks
}

/// Returns `true` if this can be a user id.
fn is_id(id: &str) -> bool {
    let digits = id.bytes().filter(u8::is_ascii_hexdigit).count();
    digits == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
