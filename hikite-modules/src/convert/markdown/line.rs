//! Canonical form of a line. Adjacent pieces with equal style are merged, blanks beside a break are removed, and a
//! blank gets the style common to its neighbours, because Markdown cannot mark a blank at the edge of marked text. The
//! parser returns lines in this form, so that written text can be verified.

use super::{Inline, InlineKind, InlineStyle, Marks};

pub(in crate::convert) fn normalize(inlines: Vec<Inline>) -> Vec<Inline> {
    let mut pieces = trim(split(inlines));
    style_blanks(&mut pieces);
    merge(pieces)
}

/// Splits text at line ends, and into blanks and words.
fn split(inlines: Vec<Inline>) -> Vec<Inline> {
    let mut pieces = Vec::with_capacity(inlines.len());
    for Inline { kind, style } in inlines {
        match kind {
            InlineKind::Text(text) => split_text(&text, &style, &mut pieces),
            InlineKind::Break => pieces.push(Inline::line_break()),
            InlineKind::Image { alt, url } => {
                let style = without_code(&style);
                let url = url.trim().to_owned();
                pieces.push(Inline { kind: InlineKind::Image { alt: one_line(&alt), url }, style });
            }
            InlineKind::Math(text) => {
                let text = one_line(&text);
                if !text.is_empty() {
                    pieces.push(Inline { kind: InlineKind::Math(text), style: without_code(&style) });
                }
            }
        }
    }
    pieces
}

/// Removes the code mark: images and equations cannot be code.
fn without_code(style: &InlineStyle) -> InlineStyle {
    InlineStyle { marks: style.marks.without(Marks::CODE), link: style.link.clone() }
}

fn split_text(text: &str, style: &InlineStyle, pieces: &mut Vec<Inline>) {
    let text = text.replace("\r\n", "\n");
    for (index, line) in text.split(['\n', '\r', '\u{2028}', '\u{2029}']).enumerate() {
        if index > 0 {
            pieces.push(Inline::line_break());
        }
        let line: String = line.chars().map(printable).collect();
        let core = line.trim();
        let lead = line.len() - line.trim_start().len();
        push(line[..lead].to_owned(), &InlineStyle::default(), pieces);
        push(core.to_owned(), style, pieces);
        push(line[lead + core.len()..].to_owned(), &InlineStyle::default(), pieces);
    }
}

/// Replaces blanks that Markdown parsers disagree on, and NUL.
fn printable(c: char) -> char {
    match c {
        '\0' => '\u{fffd}',
        '\t' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{1680}' => ' ',
        _ => c,
    }
}

fn push(text: String, style: &InlineStyle, pieces: &mut Vec<Inline>) {
    if !text.is_empty() {
        pieces.push(Inline { kind: InlineKind::Text(text), style: style.clone() });
    }
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('\0', "\u{fffd}")
}

fn is_blank(piece: &Inline) -> bool {
    match &piece.kind {
        InlineKind::Text(text) => text.trim().is_empty(),
        InlineKind::Break => true,
        _ => false,
    }
}

/// Removes blanks at line ends and breaks at both ends. An ideographic space at the start of a line is preserved:
/// Japanese paragraphs begin with it.
fn trim(pieces: Vec<Inline>) -> Vec<Inline> {
    let mut kept: Vec<Inline> = Vec::with_capacity(pieces.len());
    for mut piece in pieces {
        let begins = matches!(kept.last(), None | Some(Inline { kind: InlineKind::Break, .. }));
        match &mut piece.kind {
            InlineKind::Break => {
                drop_blanks(&mut kept);
                if !kept.is_empty() {
                    kept.push(piece);
                }
            }
            InlineKind::Text(text) if begins => {
                let rest = text.trim_start_matches(|c: char| c.is_whitespace() && c != '\u{3000}');
                if !rest.is_empty() {
                    *text = rest.to_owned();
                    kept.push(piece);
                }
            }
            _ => kept.push(piece),
        }
    }
    while kept.last().is_some_and(is_blank) {
        kept.pop();
    }
    kept
}

fn drop_blanks(kept: &mut Vec<Inline>) {
    while kept.last().is_some_and(|last| is_blank(last) && last.kind != InlineKind::Break) {
        kept.pop();
    }
}

fn style_blanks(pieces: &mut [Inline]) {
    let mut before: Option<InlineStyle> = None;
    let mut at = 0;
    while at < pieces.len() {
        if !is_blank(&pieces[at]) {
            before = Some(pieces[at].style.clone());
            at += 1;
            continue;
        }
        let end = pieces[at..].iter().position(|piece| !is_blank(piece)).map_or(pieces.len(), |next| at + next);
        let style = match (&before, pieces.get(end)) {
            (Some(before), Some(after)) => before.both(&after.style),
            _ => InlineStyle::default(),
        };
        for blank in &mut pieces[at..end] {
            blank.style = style.clone();
        }
        at = end;
    }
}

fn merge(pieces: Vec<Inline>) -> Vec<Inline> {
    let mut merged: Vec<Inline> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        if let (Some(Inline { kind: InlineKind::Text(text), style }), InlineKind::Text(more)) =
            (merged.last_mut(), &piece.kind)
            && *style == piece.style
        {
            text.push_str(more);
            continue;
        }
        merged.push(piece);
    }
    merged
}
