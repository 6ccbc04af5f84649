//! Percent-encoding of values, which must not change the structure of a URL, and of URLs as people write them.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// ASCII characters that a URL cannot contain.
const UNWRITABLE: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');

/// Appends a value with everything encoded but unreserved characters (RFC 3986, 2.3).
pub(crate) fn value(text: &str, out: &mut String) {
    out.extend(utf8_percent_encode(text, hikite_core::uri::RESERVED));
}

/// Appends a part of a URL template, encoding only characters that a URL cannot contain.
pub(crate) fn written(text: &str, out: &mut String) {
    out.extend(utf8_percent_encode(text, UNWRITABLE));
}

/// Returns `true` if a decoded path contains a `.` or `..` segment.
pub(crate) fn has_dot_segment(path: &str) -> bool {
    let decoded: Cow<'_, [u8]> = percent_decode_str(path).into();
    let mut segments = decoded.split(|byte| matches!(byte, b'/' | b'\\'));
    segments.any(|segment| segment == b"." || segment == b"..")
}

/// Decodes a name or value of a query.
pub(crate) fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lose_every_meaning() {
        let mut out = String::new();
        value("a/b?c=d&e#f%2F ü:@\r\n", &mut out);
        assert_eq!(out, "a%2Fb%3Fc%3Dd%26e%23f%252F%20%C3%BC%3A%40%0D%0A");
    }

    #[test]
    fn what_is_written_stays_as_far_as_it_can() {
        let mut out = String::new();
        written("/a%20b/ü x/{c}", &mut out);
        assert_eq!(out, "/a%20b/%C3%BC%20x/%7Bc%7D");
    }

    #[test]
    fn dots_are_seen_however_they_are_spelt() {
        for path in ["/a/..", "/./a", "/%2e%2E/a", "/.%2e", "/a%2F..%2Fb", "/a\\..", "..", "/x%5c..%5Cy"] {
            assert!(has_dot_segment(path), "{path}");
        }
        for path in ["/a..b/", "/...", "/%252e%252e/", "/a.b", "/%2", "/"] {
            assert!(!has_dot_segment(path), "{path}");
        }
    }
}
