//! Query parameters, parsed strictly: unknown, repeated and out-of-range ones are refused, all in one error.

use std::ops::RangeInclusive;

use hikite_core::error::Error;
use hikite_core::time::read as read_moment;
use hikite_core::violation::{self, Violation, step};
use http::Uri;

use super::form::{failed, out_of_range, unknown_member};

pub(crate) struct QueryParams {
    pairs: Vec<(String, String)>,
    faults: Vec<Violation>,
}

impl QueryParams {
    pub(crate) fn read(uri: &Uri, known: &[&str]) -> Self {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
        let pairs = pairs.map(|pairs| pairs.0).unwrap_or_default();
        let unknown = pairs.iter().map(|(name, _)| name.as_str()).filter(|name| !known.contains(name));
        let faults = unknown
            .take(violation::REPORTED_MAX)
            .map(|name| Violation::new(step(name), unknown_member("parameter", name, known)))
            .collect();
        Self { pairs, faults }
    }

    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        self.pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.clone()).collect()
    }

    pub(crate) fn one(&mut self, name: &str) -> Option<String> {
        let mut values = self.all(name);
        if values.len() > 1 {
            self.fault(name, format!("`{name}` is given more than once"));
        }
        values.pop()
    }

    pub(crate) fn flag(&mut self, name: &str) -> Option<bool> {
        let value = self.one(name)?;
        let flag = value.parse().ok();
        if flag.is_none() {
            self.fault(name, format!("`{name}` must be `true` or `false`"));
        }
        flag
    }

    /// Returns one of the given values.
    pub(crate) fn one_of(&mut self, name: &str, words: &[&str]) -> Option<String> {
        let value = self.one(name)?;
        if !words.contains(&value.as_str()) {
            self.fault(name, format!("`{name}` must be one of: {}", words.join(", ")));
            return None;
        }
        Some(value)
    }

    pub(crate) fn whole(&mut self, name: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let value = self.one(name)?;
        let digits = value.bytes().all(|byte| byte.is_ascii_digit());
        let number = value.parse().ok().filter(|number| digits && range.contains(number));
        if number.is_none() {
            self.fault(name, out_of_range(name, &range));
        }
        number
    }

    /// Returns an unbounded whole number.
    pub(crate) fn number(&mut self, name: &str) -> Option<u64> {
        let value = self.one(name)?;
        let number = value.parse().ok().filter(|_| value.bytes().all(|byte| byte.is_ascii_digit()));
        if number.is_none() {
            self.fault(name, format!("`{name}` must be a whole number"));
        }
        number
    }

    /// Returns a time: milliseconds since 1970, or RFC 3339.
    pub(crate) fn moment(&mut self, name: &str) -> Option<u64> {
        let value = self.one(name)?;
        let moment = read_moment(&value);
        if moment.is_none() {
            let form = "milliseconds since 1970, or like `2026-11-15T08:30:00Z`";
            self.fault(name, format!("`{name}` must be a moment: {form}"));
        }
        moment
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        failed(&self.faults)
    }

    pub(crate) fn fault(&mut self, name: &str, message: String) {
        self.faults.push(Violation::new(step(name), message));
    }
}

/// Checks that there are no query parameters.
pub(crate) fn none(uri: &Uri) -> Result<(), Error> {
    match uri.query() {
        None | Some("") => Ok(()),
        Some(_) => QueryParams::read(uri, &[]).finish(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> QueryParams {
        let uri: Uri = format!("/x?{text}").parse().expect("an address");
        QueryParams::read(&uri, &["page", "enabled", "tag"])
    }

    #[test]
    fn values_are_read_strictly() {
        assert_eq!(query("page=7").whole("page", 1..=9), Some(7));
        for wrong in ["0", "10", "+7", "7.0", "x", "", "99999999999999999999", "-1", "%2B7", "0x7"] {
            let mut query = query(&format!("page={wrong}"));
            assert_eq!(query.whole("page", 1..=9), None, "{wrong}");
            assert!(query.finish().is_err(), "{wrong}");
        }
        assert_eq!(query("enabled=true").flag("enabled"), Some(true));
        assert_eq!(query("enabled=TRUE").flag("enabled"), None);
        assert_eq!(query("tag=a&tag=b%20c").all("tag"), ["a", "b c"]);
    }

    #[test]
    fn what_is_unknown_or_doubled_is_refused() {
        let error = query("pages=1").finish().expect_err("unknown");
        assert_eq!(error.hint.as_deref(), Some("unknown parameter `pages`. Did you mean `page`?"));
        let mut twice = query("page=1&page=2");
        twice.whole("page", 1..=9);
        assert!(twice.finish().is_err());
    }
}
