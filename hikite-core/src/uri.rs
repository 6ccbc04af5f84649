//! URI templates (RFC 6570), as far as needed to route a read to the module that lists the template, and URI helpers.

use crate::hex::hex;

/// Longest URI that is matched against templates, in bytes: there may be many templates.
const LONGEST: usize = 64 * 1024;

/// Returns `true` if the URI may come from the template. Literals must appear in order; each expression matches any run
/// of characters.
pub fn matches(template: &str, uri: &str) -> bool {
    if uri.len() > LONGEST {
        return false;
    }
    let mut rest = uri;
    let mut literals = literals(template).into_iter().peekable();
    let Some(first) = literals.next() else { return false };
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    while let Some(literal) = literals.next() {
        if literals.peek().is_none() {
            return rest.ends_with(literal);
        }
        let Some(at) = rest.find(literal) else { return false };
        rest = &rest[at + literal.len()..];
    }
    rest.is_empty()
}

/// Returns the text before, between and after the expressions.
fn literals(template: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        parts.push(before);
        let Some((_, tail)) = after.split_once('}') else { return vec![template] };
        rest = tail;
    }
    parts.push(rest);
    parts
}

/// Returns the scheme of a URI.
pub fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let begins = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_valid = begins && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_valid.then_some(scheme)
}

/// Returns scheme and authority of a URI.
pub fn origin(uri: &str) -> &str {
    let Some(start) = uri.find("://").map(|at| at + "://".len()) else { return uri };
    let end = uri[start..].find(['/', '?', '#']).map_or(uri.len(), |at| start + at);
    &uri[..end]
}

/// Returns `true` if scheme and authority of a URI or template contain no expressions.
pub fn is_complete(template: &str) -> bool {
    !origin(template).contains('{')
}

/// Percent-encodes a URI component or form value: everything but letters, digits and `-._~`.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&hex(&[byte]).to_ascii_uppercase());
        }
    }
    out
}

/// Decodes a URI component or form value; `None` if it is not valid UTF-8.
pub fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
            }
            b'+' => bytes.push(b' '),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{is_complete, matches, origin, scheme};

    #[test]
    fn an_address_begins_with_its_scheme_and_authority() {
        assert_eq!((scheme("test://a/b"), scheme("mailto:x@y")), (Some("test"), Some("mailto")));
        assert_eq!((scheme("no scheme"), scheme("1x:a"), scheme("{s}://a")), (None, None, None));
        assert_eq!((origin("https://a.example/b?c"), origin("file:///a")), ("https://a.example", "file://"));
        assert_eq!((origin("test://a"), origin("mailto:x")), ("test://a", "mailto:x"));
        assert!(is_complete("test://a/{b}") && !is_complete("test://{a}/b"));
    }

    #[test]
    fn expressions_stand_for_anything_literals_for_themselves() {
        assert!(matches("test://template/{id}/data", "test://template/42/data"));
        assert!(!matches("test://template/{id}/data", "test://template/42/meta"));
        assert!(matches("file:///{+path}", "file:///a/b/c"));
        assert!(matches("db://{table}{?limit}", "db://users?limit=3"));
        assert!(matches("plain://x", "plain://x"));
        assert!(!matches("plain://x", "plain://xy"));
        assert!(!matches("a{b}c", "a"));
    }
}
