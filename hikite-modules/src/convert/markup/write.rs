//! Writes text and lines as well-formed XML.

use super::super::markdown::{Inline, InlineKind, Marks, tag};

/// Appends escaped text. Characters that XML forbids become U+FFFD.
pub(in crate::convert) fn text(words: &str, out: &mut String) {
    for c in words.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ => out.push(printable(c)),
        }
    }
}

/// Appends ` name="value"`.
pub(in crate::convert) fn attribute(name: &str, value: &str, out: &mut String) {
    out.extend([" ", name, "=\""]);
    for c in value.chars() {
        match c {
            '"' => out.push_str("&quot;"),
            '\n' | '\r' | '\t' => out.push(' '),
            _ => text(c.encode_utf8(&mut [0; 4]), out),
        }
    }
    out.push('"');
}

/// Replaces characters that XML 1.0 (2.2) forbids.
pub(in crate::convert) fn printable(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' => c,
        '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        _ => c,
    }
}

/// Writes a line with tags for its marks.
pub(in crate::convert) fn inlines(line: &[Inline]) -> String {
    let mut out = String::new();
    for inline in line {
        let target = inline.style.link.as_deref();
        if let Some(url) = target {
            out.push_str("<a");
            attribute("href", url, &mut out);
            out.push('>');
        }
        marked(inline.style.marks, &mut out, |out| match &inline.kind {
            InlineKind::Text(words) => text(words, out),
            InlineKind::Break => out.push_str("<br/>"),
            InlineKind::Image { alt, url } => {
                out.push_str("<img");
                attribute("src", url, out);
                attribute("alt", alt, out);
                out.push_str("/>");
            }
            InlineKind::Math(words) => {
                out.push('$');
                text(words, out);
                out.push('$');
            }
        });
        if target.is_some() {
            out.push_str("</a>");
        }
    }
    out
}

/// Appends content enclosed in the tags of its marks.
pub(in crate::convert) fn marked(marks: Marks, out: &mut String, inner: impl FnOnce(&mut String)) {
    let all = Marks::ALL.into_iter().filter(|mark| marks.has(*mark));
    let tags: Vec<&str> = all.map(tag).collect();
    for tag in &tags {
        out.extend(["<", tag, ">"]);
    }
    inner(out);
    for tag in tags.iter().rev() {
        out.extend(["</", tag, ">"]);
    }
}
