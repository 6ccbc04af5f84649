//! The arguments of a meta tool: read one by one, and everything that is wrong with them told at once.

use hikite_core::error::Error;
use hikite_core::fault::{self, Fault, step};
use hikite_core::json::{Object, Raw};
use hikite_core::suggest;
use serde_json::Value;

use super::arguments;

#[derive(Debug)]
pub(super) struct Form {
    own: Object,
    faults: Vec<Fault>,
}

impl Form {
    /// The arguments of a `tools/call`, of which only the known ones may be there.
    pub(super) fn read(params: &Object, known: &[&str]) -> Result<Self, Error> {
        let own = arguments(params.get("arguments"))?;
        let others = own.iter().map(|(name, _)| name).filter(|name| !known.contains(name));
        let fault = |name: &str| {
            let near = suggest::did_you_mean(name, known.iter().copied()).map(|near| format!("; {near}"));
            Fault::new(step(name), format!("`{name}` is not an argument here{}", near.unwrap_or_default()))
        };
        let faults = others.map(fault).collect();
        Ok(Self { own, faults })
    }

    /// An argument that is there; null counts as left out.
    pub(super) fn given(&self, name: &str) -> Option<&Raw> {
        self.own.get(name).filter(|raw| !raw.is_null())
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let raw = self.given(name)?;
        raw.text().or_else(|| self.refuse(name, "must be a string"))
    }

    pub(super) fn flag(&mut self, name: &str) -> Option<bool> {
        let raw = self.given(name)?;
        raw.decode().ok().or_else(|| self.refuse(name, "must be true or false"))
    }

    /// A whole number from 1 to `most`.
    pub(super) fn count(&mut self, name: &str, most: u32) -> Option<u32> {
        let raw = self.given(name)?;
        let count = raw.whole().filter(|count| (1..=most).contains(count));
        count.or_else(|| self.refuse(name, &format!("must be a whole number from 1 to {most}")))
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.given(name)?.text();
        let found = words.iter().find(|(word, _)| text.as_deref() == Some(word)).map(|(_, meaning)| *meaning);
        found.or_else(|| {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            let (last, first) = words.split_last()?;
            self.refuse(name, &format!("must be {} or {last}", first.join(", ")))
        })
    }

    /// An object; empty if it is left out. Some models send it as a string.
    pub(super) fn object(&mut self, name: &str) -> Object {
        match arguments(self.own.get(name)) {
            Ok(object) => object,
            Err(_) => self.refuse(name, "must be a JSON object").unwrap_or_default(),
        }
    }

    /// Notes a fault; gives nothing, in place of what was looked for.
    pub(super) fn refuse<T>(&mut self, name: &str, what: &str) -> Option<T> {
        self.faults.push(Fault::new(step(name), format!("`{name}` {what}")));
        None
    }

    /// The reading is over: whether all of it was right.
    pub(super) fn end(&self) -> Result<(), Error> {
        if self.faults.is_empty() {
            return Ok(());
        }
        Err(fault::error(&self.faults).hint("correct the arguments; `schema` says what they should be"))
    }
}

/// Adds to an error what the arguments should have been.
pub(super) fn with_schema(schema: impl FnOnce() -> Value) -> impl FnOnce(Error) -> Error {
    move |error| Error { schema: Some(Raw::of(&schema())), ..error }
}
