//! Properties of HTML tags by name.

use super::super::markdown::Marks;

const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "center",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "hr",
    "html",
    "legend",
    "li",
    "main",
    "menu",
    "nav",
    "ol",
    "p",
    "pre",
    "search",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
];

const INLINES: &[&str] = &[
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "button", "caption", "cite", "code", "col", "colgroup",
    "data", "del", "dfn", "em", "font", "head", "i", "img", "input", "ins", "kbd", "label", "link", "mark", "meta",
    "picture", "q", "rp", "rt", "ruby", "s", "samp", "script", "small", "source", "span", "strike", "strong", "style",
    "sub", "sup", "template", "time", "title", "tt", "u", "var", "wbr",
];

const VOIDS: &[&str] =
    &["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];

/// Returns `true` for block-level tags.
pub(in crate::convert) fn is_block(name: &str) -> bool {
    BLOCKS.contains(&name)
}

/// Returns `true` for HTML tags that occur in texts.
pub(in crate::convert) fn is_known(name: &str) -> bool {
    is_block(name) || INLINES.contains(&name)
}

/// Returns `true` for tags without content.
pub(super) fn is_void(name: &str) -> bool {
    VOIDS.contains(&name)
}

/// Returns the mark of a tag.
pub(in crate::convert) fn mark(name: &str) -> Option<Marks> {
    Some(match name {
        "b" | "strong" => Marks::STRONG,
        "i" | "em" | "cite" | "var" | "dfn" => Marks::EMPHASIS,
        "s" | "del" | "strike" => Marks::STRIKE,
        "u" | "ins" => Marks::UNDERLINE,
        "sub" => Marks::SUBSCRIPT,
        "sup" => Marks::SUPERSCRIPT,
        "code" | "tt" | "kbd" | "samp" => Marks::CODE,
        _ => return None,
    })
}

/// Returns `true` if an open tag is implicitly closed before the next one.
pub(super) fn ends_before(open: &str, next: &str) -> bool {
    match open {
        "p" => is_block(next) && !matches!(next, "summary"),
        "li" => next == "li",
        "dt" | "dd" => matches!(next, "dt" | "dd"),
        "td" | "th" => matches!(next, "td" | "th" | "tr" | "tbody" | "thead" | "tfoot"),
        "tr" => matches!(next, "tr" | "tbody" | "thead" | "tfoot"),
        "tbody" | "thead" | "tfoot" => matches!(next, "tbody" | "thead" | "tfoot"),
        _ => false,
    }
}
