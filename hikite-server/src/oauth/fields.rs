//! Form and query fields, parsed strictly: a duplicate field or invalid UTF-8 rejects the whole input.

use std::collections::HashSet;

use axum::body::Body;
pub(crate) use hikite_core::uri::{decode, encode};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Limited};

use crate::app::App;

/// Maximum length of a form.
const BODY_BYTES: usize = 64 * 1024;
/// Maximum number of fields.
const FIELDS_MAX: usize = 256;
/// The only field that may be repeated.
const RESOURCE: &str = "resource";

#[derive(Clone, Default)]
pub(crate) struct FormFields(Vec<(String, String)>);

/// Prints only the names, because values may be passwords, codes or tokens.
impl std::fmt::Debug for FormFields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// The reason why fields are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidFields(pub(crate) &'static str);

impl FormFields {
    pub(crate) fn read(text: &str) -> Result<Self, InvalidFields> {
        let mut fields: Vec<(String, String)> = Vec::new();
        let mut known = HashSet::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            if fields.len() == FIELDS_MAX {
                return Err(InvalidFields("The request has more than 256 fields."));
            }
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let decoded = (decode(name), decode(value));
            let (Some(name), Some(value)) = decoded else {
                return Err(InvalidFields("A field is not UTF-8."));
            };
            if name != RESOURCE && !known.insert(name.clone()) {
                return Err(InvalidFields("A field occurs more than once."));
            }
            fields.push((name, value));
        }
        Ok(Self(fields))
    }

    /// Reads the fields of a request body.
    pub(crate) async fn of(app: &App, headers: &HeaderMap, body: Body) -> Result<Self, InvalidFields> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(InvalidFields("The body must be application/x-www-form-urlencoded."));
        }
        let reading = Limited::new(body, BODY_BYTES).collect();
        let body = tokio::time::timeout(app.limits.body_timeout, reading).await;
        let body = body.ok().and_then(Result::ok).ok_or(InvalidFields("The body could not be read."))?;
        let body = body.to_bytes();
        Self::read(std::str::from_utf8(&body).map_err(|_| InvalidFields("The body is not UTF-8."))?)
    }

    /// Returns a field that is present and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        value.filter(|value| !value.is_empty())
    }

    pub(crate) fn resources(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(name, _)| name == RESOURCE).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_once_each_and_as_they_were_meant() {
        let fields = FormFields::read("a=1&b=x%20y+z&c=&d&resource=1&resource=2&e=%E6%97%A5").expect("fields");
        assert_eq!((fields.get("a"), fields.get("b"), fields.get("e")), (Some("1"), Some("x y z"), Some("日")));
        assert_eq!((fields.get("c"), fields.get("d"), fields.get("x")), (None, None, None));
        assert_eq!(fields.resources().collect::<Vec<_>>(), ["1", "2"]);
        for wrong in ["a=1&a=2", "a=%", "a=%4", "a=%zz", "a=%+1", "a=%FF", "%61=1&a=2"] {
            assert!(FormFields::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn more_fields_than_any_form_has_are_refused() {
        let fields = |count: usize| (0..count).map(|n| format!("f{n}=")).collect::<Vec<_>>().join("&");
        assert!(FormFields::read(&fields(FIELDS_MAX)).is_ok());
        assert!(FormFields::read(&fields(FIELDS_MAX + 1)).is_err());
    }

    #[test]
    fn what_is_encoded_is_read_as_it_was() {
        for text in ["", "a b&c=d", "日本\"<>'%+", "\u{0}\n"] {
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
            assert!(encode(text).bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
        }
    }
}
