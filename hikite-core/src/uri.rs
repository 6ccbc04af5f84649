//! URI templates (RFC 6570), as far as needed to route a read to the module that lists the template, and URI helpers.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

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

/// Everything but letters, digits and `-._~`: the unreserved characters of RFC 3986.
pub const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes a URI component or form value: everything but letters, digits and `-._~`.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Decodes a form value, in which `+` is a space; `None` as for `decode_percent`.
pub fn decode(text: &str) -> Option<String> {
    decode_percent(&text.replace('+', " "))
}

/// Decodes percent escapes; `None` if a `%` begins none, which the library would let pass, or if the result is not
/// UTF-8.
pub fn decode_percent(text: &str) -> Option<String> {
    let is_escape = |after: &str| after.as_bytes().get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    let decoded = percent_decode_str(text).decode_utf8().ok().filter(|_| text.split('%').skip(1).all(is_escape));
    decoded.map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::{decode, decode_percent, encode, is_complete, matches, origin, scheme};

    #[test]
    fn components_are_encoded_and_decoded_exactly() {
        let text = "a-b._~/ü?&+ %\r\n";
        assert_eq!(encode(text), "a-b._~%2F%C3%BC%3F%26%2B%20%25%0D%0A");
        assert_eq!(decode(&encode(text)).as_deref(), Some(text));
        assert_eq!(
            (decode("a+b%2Bc").as_deref(), decode_percent("a+b%2bc").as_deref()),
            (Some("a b+c"), Some("a+b+c"))
        );
        for wrong in ["%", "a%4", "%zz", "%+1", "%-1", "% 1", "%FF", "%C3", "%é", "%%41"] {
            assert_eq!((decode(wrong), decode_percent(wrong)), (None, None), "{wrong}");
        }
    }

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
