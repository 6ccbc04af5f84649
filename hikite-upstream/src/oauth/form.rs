//! Encoding of `application/x-www-form-urlencoded` queries and bodies.

use std::fmt::Write as _;

/// Encodes pairs.
pub(super) fn write<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::new();
    for (name, value) in pairs {
        if !out.is_empty() {
            out.push('&');
        }
        escape_into(&mut out, name);
        out.push('=');
        escape_into(&mut out, value);
    }
    out
}

pub(super) fn escape(text: &str) -> String {
    let mut out = String::new();
    escape_into(&mut out, text);
    out
}

fn escape_into(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// Decodes a query. Returns `None` for duplicate names and invalid escapes.
pub(super) fn read(query: &str) -> Option<Vec<(String, String)>> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let (name, value) = (unescape(name)?, unescape(value)?);
        if pairs.iter().any(|(known, _)| *known == name) {
            return None;
        }
        pairs.push((name, value));
    }
    Some(pairs)
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let (high, low) = (rest.next()?, rest.next()?);
                let digit = |byte: u8| char::from(byte).to_digit(16);
                u8::try_from(digit(high)? * 16 + digit(low)?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_query_that_says_something_twice_is_no_query() {
        assert_eq!(read("code=a&state=b").map(|pairs| pairs.len()), Some(2));
        assert_eq!(read("code=a&code=b"), None);
        assert_eq!(read("c%6Fde=a&code=b"), None);
        assert_eq!(read("code=%2"), None);
        assert_eq!(read("code=%zz"), None);
        assert_eq!(read("code=%ff"), None);
        assert_eq!(read("").map(|pairs| pairs.len()), Some(0));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(name in "\\PC+", value in "\\PC*") {
            let read = read(&write([(&*name, &*value)])).expect("a query");
            prop_assert_eq!(read, vec![(name, value)]);
        }
    }
}
