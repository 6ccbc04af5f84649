//! Reads the members of a request object; collects all faults and reports them together.

use std::ops::RangeInclusive;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::suggestion;
use hikite_core::violation::{self, Violation, step};

pub(crate) struct RequestForm {
    members: Object,
    /// JSON pointer of the object itself.
    place: String,
    pub(crate) faults: Vec<Violation>,
}

impl RequestForm {
    pub(crate) fn new(members: Object, known: &[&str]) -> Self {
        Self::at(String::new(), members, known)
    }

    fn at(place: String, members: Object, known: &[&str]) -> Self {
        let faults = members
            .unknown(known)
            .map(|name| Violation::new(place.clone() + &step(name), unknown_member("member", name, known)))
            .collect();
        Self { members, place, faults }
    }

    /// Returns a member as raw JSON.
    pub(crate) fn raw(&self, name: &str) -> Option<Raw> {
        self.members.get(name).cloned()
    }

    pub(crate) fn text(&mut self, name: &str, longest: usize) -> Option<String> {
        let raw = self.raw(name)?;
        match raw.text() {
            Some(text) if text.chars().count() <= longest => return Some(text),
            Some(_) => self.fault(name, format!("`{name}` is longer than {longest} characters")),
            None => self.fault(name, format!("`{name}` must be a string")),
        }
        None
    }

    pub(crate) fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        let texts = self.raw(name)?.decode().ok();
        if texts.is_none() {
            self.fault(name, format!("`{name}` must be a list of strings"));
        }
        texts
    }

    pub(crate) fn whole(&mut self, name: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let whole = self.raw(name)?.whole().filter(|number| range.contains(number));
        if whole.is_none() {
            self.fault(name, out_of_range(name, &range));
        }
        whole
    }

    pub(crate) fn flag(&mut self, name: &str) -> Option<bool> {
        let flag = self.raw(name)?.decode().ok();
        if flag.is_none() {
            self.fault(name, format!("`{name}` must be true or false"));
        }
        flag
    }

    /// Returns a nested object.
    pub(crate) fn inner(&mut self, name: &str, known: &[&str]) -> Option<Self> {
        let raw = self.raw(name)?;
        let Some(members) = raw.object() else {
            self.fault(name, format!("`{name}` must be an object"));
            return None;
        };
        Some(Self::at(self.place.clone() + &step(name), members, known))
    }

    /// Adds the faults of a nested object.
    pub(crate) fn join(&mut self, inner: Self) {
        self.faults.extend(inner.faults);
    }

    pub(crate) fn fault(&mut self, name: &str, message: impl Into<String>) {
        self.faults.push(Violation::new(self.place.clone() + &step(name), message));
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        failed(&self.faults)
    }
}

/// Returns `Validation failed` with all faults, or `Ok` without any.
pub(crate) fn failed(faults: &[Violation]) -> Result<(), Error> {
    let Some(first) = faults.first() else { return Ok(()) };
    let details = violation::error(faults).details;
    let more =
        if faults.len() > 1 { format!(" (and {} more, see `details`)", faults.len() - 1) } else { String::new() };
    Err(Error { details, ..Error::new(ErrorKind::Validation, "Validation failed").hint(first.message.clone() + &more) })
}

pub(crate) fn unknown_member(what: &str, name: &str, known: &[&str]) -> String {
    let shown: String = name.chars().take(64).collect();
    let near = suggestion::did_you_mean(name, known.iter().copied());
    let hint = near.unwrap_or_else(|| format!("there are: {}", known.join(", ")));
    format!("unknown {what} `{shown}`; {hint}")
}

pub(crate) fn out_of_range(name: &str, range: &RangeInclusive<u32>) -> String {
    format!("`{name}` must be a whole number from {} to {}", range.start(), range.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str, known: &[&str]) -> RequestForm {
        let raw = Raw::parse(text.to_owned()).expect("JSON");
        RequestForm::new(raw.object().expect("an object"), known)
    }

    #[test]
    fn everything_wrong_is_told_at_once_and_where() {
        let mut form = form(r#"{"names":1,"name":2,"options":{"retri":1,"retry":99}}"#, &["name", "options"]);
        assert_eq!(form.text("name", 9), None);
        let mut options = form.inner("options", &["retry"]).expect("an object");
        assert_eq!(options.whole("retry", 0..=5), None);
        form.join(options);
        let error = form.finish().expect_err("it is wrong");
        assert_eq!(&*error.message, "Validation failed");
        let details = error.details.expect("details").value();
        let pointers: Vec<&str> =
            details.as_array().expect("a list").iter().filter_map(|fault| fault["pointer"].as_str()).collect();
        assert_eq!(pointers, ["/names", "/name", "/options/retri", "/options/retry"]);
        assert_eq!(details[0]["message"], "unknown member `names`. Did you mean `name`?");
    }
}
