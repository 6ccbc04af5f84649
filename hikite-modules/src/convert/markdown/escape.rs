//! Escaping of text in Markdown. A character is escaped only where a parser would treat it as markup. `write::line`
//! verifies the result by parsing it; if it differs, all possible markup is escaped.

use super::{Inline, InlineKind};

/// Characters of a line that are markup only in pairs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PairedMarkers {
    tildes: bool,
    dollars: bool,
}

/// Context of a piece of text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextContext {
    pub(super) before: Option<char>,
    pub(super) after: Option<char>,
    pub(super) begins_line: bool,
    pub(super) in_link: bool,
    pub(super) in_cell: bool,
    pub(super) pairs: PairedMarkers,
}

impl PairedMarkers {
    pub(super) fn of(line: &[Inline]) -> Self {
        let mut tildes = 0;
        let mut may_open = false;
        let mut dollars = false;
        for inline in line {
            let text = match &inline.kind {
                InlineKind::Text(text) if !inline.style.is_code() => text,
                InlineKind::Math(_) => {
                    dollars |= may_open;
                    may_open = true;
                    continue;
                }
                _ => continue,
            };
            tildes += text.matches('~').count();
            let mut before = ' ';
            let mut rest = text.chars().peekable();
            while let Some(c) = rest.next() {
                if c == '$' {
                    dollars |= may_open && !before.is_whitespace();
                    may_open |= rest.peek().is_some_and(|next| !next.is_whitespace());
                }
                before = c;
            }
            may_open |= text.ends_with('$');
        }
        Self { tildes: tildes > 1, dollars }
    }
}

/// Appends text with as few backslashes as possible.
pub(super) fn escape_minimal(text: &str, text_context: TextContext, out: &mut String) {
    let first = if text_context.begins_line { line_start(text) } else { None };
    let mut before = text_context.before;
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        let after = rest.chars().next().or(text_context.after);
        if first == Some(at) || is_markup(c, before, after, rest, text_context) {
            out.push('\\');
        }
        out.push(c);
        before = Some(c);
    }
}

/// Appends text with all possible markup escaped.
pub(super) fn escape_all(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\u{3000}' if out.is_empty() => out.push_str("&#12288;"),
            _ => {
                if c.is_ascii_punctuation() {
                    out.push('\\');
                }
                out.push(c);
            }
        }
    }
}

fn is_markup(c: char, before: Option<char>, after: Option<char>, rest: &str, text_context: TextContext) -> bool {
    let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    match c {
        '\\' => after.is_none_or(|next| next.is_ascii_punctuation() || next == '\n'),
        '`' => true,
        '*' => !(is_blank(before) && is_blank(after)),
        '_' => !(is_blank(before) && is_blank(after) || is_word(before) && is_word(after)),
        '~' => text_context.pairs.tildes,
        '$' => text_context.pairs.dollars && !(is_blank(before) && is_blank(after)),
        '<' => after.is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?')),
        '&' => is_entity(rest),
        '[' => text_context.in_link,
        ']' => text_context.in_link || matches!(after, Some('(' | '[')),
        '!' => after == Some('['),
        '|' => text_context.in_cell,
        _ => false,
    }
}

/// Returns `true` if `rest`, after `&`, completes an entity. No entity name is longer than 32 characters.
fn is_entity(rest: &str) -> bool {
    let name = rest.as_bytes().iter().take(33).position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'#'));
    name.is_some_and(|end| end > 0 && rest.as_bytes()[end] == b';')
}

/// Returns the position of a character at the start of a line that would make it a heading, item, quote, rule or
/// definition.
fn line_start(text: &str) -> Option<usize> {
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t']);
    match text.chars().next()? {
        '#' => is_end(text.trim_start_matches('#')).then_some(0),
        '>' | '|' => Some(0),
        '=' => text.trim_end().bytes().all(|byte| byte == b'=').then_some(0),
        sign @ ('-' | '+' | '*') => {
            let is_rule =
                || text.bytes().all(|byte| byte == sign as u8 || byte == b' ' || byte == b'|' || byte == b':');
            (is_end(&text[1..]) || is_rule()).then_some(0)
        }
        ':' => text.bytes().all(|byte| b":-| ".contains(&byte)).then_some(0),
        '_' => text.bytes().all(|byte| byte == b'_' || byte == b' ').then_some(0),
        '[' => {
            let is_box = ["[ ]", "[x]", "[X]", "[!"].iter().any(|start| text.starts_with(start));
            let defines = || text.find("]:").is_some();
            (is_box || defines()).then_some(0)
        }
        '0'..='9' => {
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            let is_item = digits < 10 && text[digits..].starts_with(['.', ')']) && is_end(&text[digits + 1..]);
            is_item.then_some(digits)
        }
        _ => None,
    }
}
