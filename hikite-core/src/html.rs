//! Escapes untrusted text for HTML. Makes hidden characters visible as replacement characters.

use crate::sanitize::is_hidden;

pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // These reorder or hide text, so one name could look like another.
            c if is_hidden(c) => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_a_mark_and_nothing_hides() {
        assert_eq!(escape("<b a='\"&"), "&lt;b a=&#39;&quot;&amp;");
        assert_eq!(escape("a\u{202e}b\u{200b}c\nd"), "a\u{fffd}b\u{fffd}c\u{fffd}d");
        assert_eq!(escape("設計 ✓"), "設計 ✓");
    }
}
