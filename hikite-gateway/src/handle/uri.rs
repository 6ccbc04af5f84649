//! URIs of stored results and their parts: `result://ID`, `?page=2`, `?jq=…`, `?search=…`.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Object;

use super::ResultPart;
use super::result_store::PROCESS_CHARS;

/// Prefix of the URI of a stored result.
const SCHEME: &str = "result://";
const ID_CHARS: usize = 32;
/// Hint that lists the accepted parameters.
const TAKES: &str = "Use `page`, `jq` or `search`.";
const PAGES: u32 = 1_000_000;

/// A parsed URI of ours.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResultUri<'a> {
    pub(super) id: &'a str,
    pub(super) part: ResultPart,
}

pub(crate) fn result_uri(id: &str) -> String {
    format!("{SCHEME}{id}")
}

/// Returns `true` if the params of a read may name a stored result. Compares bytes, because almost none do.
pub(crate) fn is_stored_result(params: &Object) -> bool {
    params.get("uri").is_some_and(|uri| uri.bytes().starts_with(b"\"result:"))
}

/// Returns the prefix of the id of the process that stores a result, if a text refers to one.
pub(crate) fn process_in(text: &[u8]) -> Option<&str> {
    let at = memchr::memmem::find(text, SCHEME.as_bytes())? + SCHEME.len();
    let id = text.get(at..at + ID_CHARS)?;
    let is_id = id.iter().all(u8::is_ascii_hexdigit);
    is_id.then(|| std::str::from_utf8(&id[..PROCESS_CHARS]).ok()).flatten()
}

impl<'a> ResultUri<'a> {
    /// Parses a URI. Returns `None` for foreign ones: a server may have resources with the same scheme.
    pub(super) fn read(uri: &'a str) -> Option<Result<Self, Error>> {
        let rest = uri.strip_prefix(SCHEME)?;
        let (id, query) = rest.split_once('?').map_or((rest, ""), |(id, query)| (id, query));
        let is_id = id.len() == ID_CHARS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| Ok(Self { id, part: part(query)? }))
    }
}

impl ResultPart {
    /// Reads the tool arguments that select a part; any others are refused.
    pub fn read(arguments: &Object) -> Result<Self, Error> {
        let mut part = Self::default();
        for (name, value) in arguments.iter().filter(|(_, value)| !value.is_null()) {
            let wrong = |what: &str| Error::new(ErrorKind::Validation, format!("`{name}` {what}."));
            let text = || value.text().ok_or_else(|| wrong("must be a string"));
            match name {
                "page" => {
                    part.page = Some(value.whole().ok_or_else(|| wrong("must be an integer from 1"))?);
                }
                "jq" => part.jq = Some(text()?),
                "search" => part.search = Some(text()?),
                _ => return Err(wrong("is not an argument for reading a stored result").hint(TAKES)),
            }
        }
        joined(part, Self::default())
    }
}

/// Merges a part in the URI with one beside it. Only one way to select a part is allowed.
pub(super) fn joined(address: ResultPart, beside: ResultPart) -> Result<ResultPart, Error> {
    let part = ResultPart {
        page: beside.page.or(address.page),
        jq: beside.jq.or(address.jq),
        search: beside.search.or(address.search),
    };
    let ways = usize::from(part.page.is_some()) + usize::from(part.jq.is_some()) + usize::from(part.search.is_some());
    if ways > 1 {
        return Err(Error::new(ErrorKind::Validation, "Only one of `page`, `jq` and `search` can be used at a time."));
    }
    if part.page == Some(0) {
        return Err(Error::new(ErrorKind::Validation, "`page` must be an integer from 1."));
    }
    if part.search.as_deref().is_some_and(|text| text.trim().is_empty()) {
        return Err(Error::new(ErrorKind::Validation, "`search` must not be empty."));
    }
    Ok(part)
}

fn part(query: &str) -> Result<ResultPart, Error> {
    let mut part = ResultPart::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value).ok_or_else(|| {
            Error::new(ErrorKind::Validation, format!("`{name}` in the address is not encoded correctly."))
        })?;
        match name {
            "page" => {
                let page = value.parse().ok().filter(|page| (1..=PAGES).contains(page));
                let wrong = || Error::new(ErrorKind::Validation, "`page` must be an integer from 1.");
                part.page = Some(page.ok_or_else(wrong)?);
            }
            "jq" => part.jq = Some(value),
            "search" => part.search = Some(value),
            _ => {
                let message = format!("`{name}` is not a parameter of a stored result's address.");
                return Err(Error::new(ErrorKind::Validation, message).hint(TAKES));
            }
        }
    }
    Ok(part)
}

/// Percent-decodes a value. A plus stays a plus, because jq programs add.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let pair = digit(bytes.next())? * 16 + digit(bytes.next())?;
        out.push(u8::try_from(pair).ok()?);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[track_caller]
    fn part_of(query: &str) -> Result<ResultPart, Error> {
        let uri = format!("result://{ID}{query}");
        let address = ResultUri::read(&uri).expect("ours")?;
        assert_eq!(address.id, ID);
        joined(address.part, ResultPart::default())
    }

    #[test]
    fn a_part_is_named_in_the_address() {
        assert_eq!(part_of("").expect("right"), ResultPart::default());
        assert_eq!(part_of("?page=7").expect("right").page, Some(7));
        assert_eq!(part_of("?jq=.%5B0%5D+1").expect("right").jq.as_deref(), Some(".[0]+1"));
        assert_eq!(part_of("?jq=.a==1").expect("right").jq.as_deref(), Some(".a==1"));
        assert_eq!(part_of("?search=%E8%A8%AD%E8%A8%88").expect("right").search.as_deref(), Some("設計"));
        assert_eq!(part_of("?search=設計").expect("right").search.as_deref(), Some("設計"));
    }

    #[test]
    fn what_is_wrong_with_it_is_told() {
        for query in
            ["?page=0", "?page=x", "?page=", "?pages=1", "?jq=%5", "?jq=%ff", "?search=", "?page=1&jq=.", "?search=%20"]
        {
            let error = part_of(query).expect_err(query);
            assert_eq!(error.kind, ErrorKind::Validation, "{query}");
        }
    }

    #[test]
    fn addresses_of_others_are_not_ours() {
        for uri in ["result://", "result://x", "results://0123456789abcdef0123456789abcdef", "file:///a", ""] {
            assert!(ResultUri::read(uri).is_none(), "{uri}");
        }
        assert!(ResultUri::read(&format!("result://{ID}/x")).is_none());
        let object = |uri: &str| Object::default().with("uri", uri);
        assert!(
            is_stored_result(&object(&result_uri(ID)))
                && !is_stored_result(&object("x:y"))
                && !is_stored_result(&Object::default())
        );
    }
}
