//! Percent-encoding of values, which must not change the structure of a URL, and of URLs as people write them.

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Appends a value with everything encoded but unreserved characters (RFC 3986, 2.3).
pub(crate) fn value(text: &str, out: &mut String) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    escape(text, is_plain, out);
}

/// Appends a part of a URL template, encoding only characters that a URL cannot contain.
pub(crate) fn written(text: &str, out: &mut String) {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    escape(text, is_plain, out);
}

/// Returns `true` if a decoded path contains a `.` or `..` segment.
pub(crate) fn has_dot_segment(path: &str) -> bool {
    let decoded = decode(path.as_bytes());
    let mut segments = decoded.split(|byte| matches!(byte, b'/' | b'\\'));
    segments.any(|segment| segment == b"." || segment == b"..")
}

/// Decodes a name or value of a query.
pub(crate) fn decoded(text: &str) -> String {
    String::from_utf8_lossy(&decode(text.replace('+', " ").as_bytes())).into_owned()
}

fn escape(text: &str, is_plain: impl Fn(u8) -> bool, out: &mut String) {
    for byte in text.bytes() {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

fn decode(text: &[u8]) -> Vec<u8> {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match (text[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.extend(u8::try_from(high * 16 + low));
                at += 3;
            }
            (byte, _, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
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
