//! Parser for the `Bearer` challenge of `WWW-Authenticate` (RFC 9110, 11.6.1; RFC 6750, 3). Its content is untrusted.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// Maximum number of scopes taken from one challenge.
const SCOPES: usize = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BearerChallenge {
    /// URL of the protected resource metadata.
    pub(super) resource_metadata: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) error: Option<String>,
}

impl BearerChallenge {
    /// Returns the first `Bearer` challenge of all headers.
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        values.find_map(Self::of_value).unwrap_or_default()
    }

    pub(crate) fn wants_more_scopes(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    fn of_value(value: &str) -> Option<Self> {
        let mut found: Option<Self> = None;
        for word in words(value) {
            match word {
                ChallengeToken::Scheme(_) if found.is_some() => break,
                ChallengeToken::Scheme(scheme) if scheme.eq_ignore_ascii_case("bearer") => {
                    found = Some(Self::default());
                }
                ChallengeToken::Scheme(_) => {}
                ChallengeToken::Parameter(name, value) => {
                    let Some(challenge) = &mut found else { continue };
                    match name.to_ascii_lowercase().as_str() {
                        "resource_metadata" => challenge.resource_metadata = Some(value),
                        "scope" => challenge.scopes = scopes(&value),
                        "error" => challenge.error = Some(value),
                        _ => {}
                    }
                }
            }
        }
        found
    }
}

/// Parses a scope list, in order and without duplicates. Invalid scopes (RFC 6749, 3.3) are skipped.
pub(super) fn scopes(text: &str) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    for scope in text.split(' ').filter(|scope| is_scope(scope)).take(SCOPES) {
        if !scopes.iter().any(|known| known == scope) {
            scopes.push(scope.to_owned());
        }
    }
    scopes
}

pub(super) fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

enum ChallengeToken<'a> {
    Scheme(&'a str),
    Parameter(&'a str, String),
}

/// Splits a header value into schemes and parameters. Stops at the first syntax error.
fn words(value: &str) -> Vec<ChallengeToken<'_>> {
    let mut words = Vec::new();
    let mut rest = value;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if name.is_empty() {
            return words;
        }
        let parameter = after.trim_start_matches([' ', '\t']);
        match parameter.strip_prefix('=').filter(|text| !text.starts_with('=')) {
            None => {
                words.push(ChallengeToken::Scheme(name));
                rest = after.trim_start_matches('=');
            }
            Some(text) => {
                let Some((value, after)) = parameter_value(text.trim_start_matches([' ', '\t'])) else {
                    return words;
                };
                words.push(ChallengeToken::Parameter(name, value));
                rest = after;
            }
        }
    }
}

fn parameter_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(value: &str, metadata: Option<&str>, scopes: &[&str], error: Option<&str>) {
        let mut headers = HeaderMap::new();
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(value).expect("a value"));
        let read = BearerChallenge::read(&headers);
        assert_eq!(read.resource_metadata.as_deref(), metadata, "{value}");
        assert_eq!(read.scopes, scopes, "{value}");
        assert_eq!(read.error.as_deref(), error, "{value}");
    }

    #[test]
    fn a_challenge_is_read_however_it_is_written() {
        check("Bearer", None, &[], None);
        check(r#"Bearer resource_metadata="https://a/x""#, Some("https://a/x"), &[], None);
        check(r#"bearer SCOPE="a b a", error=invalid_token"#, None, &["a", "b"], Some("invalid_token"));
        check(r#"Bearer scope = "a" , error = "x""#, None, &["a"], Some("x"));
        check(r#"Bearer realm="a, scope=\"no\"", scope="yes""#, None, &["yes"], None);
        check(r#"Basic realm="x", Bearer scope="a", DPoP scope="b""#, None, &["a"], None);
        check(r#"Negotiate abc==, Bearer scope="a""#, None, &["a"], None);
        check(r#"DPoP scope="b""#, None, &[], None);
        check(r#"Bearer scope="open"#, None, &[], None);
        check("", None, &[], None);
    }

    #[test]
    fn of_several_headers_the_first_that_fits_counts() {
        let mut headers = HeaderMap::new();
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"x\""));
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer error=\"insufficient_scope\""));
        assert!(BearerChallenge::read(&headers).wants_more_scopes());
    }

    #[test]
    fn what_is_no_scope_is_not_asked_for() {
        assert_eq!(scopes("a  b\t c\" d\\ é e"), ["a", "e"]);
        assert_eq!(scopes(&"x ".repeat(500)), ["x"]);
    }

    proptest! {
        #[test]
        fn no_header_breaks_the_reader(value in "[ -~]*") {
            let mut headers = HeaderMap::new();
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(&value).expect("a value"));
            BearerChallenge::read(&headers);
        }
    }
}
