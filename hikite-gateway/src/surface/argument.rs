//! Argument reader of meta tools: reads members one by one and reports all faults at once.

use hikite_core::compact::AnswerFormat;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::selector::Selector;
use hikite_core::suggestion;
use hikite_core::violation::{self, Violation, step};
use serde_json::Value;

use super::arguments;
use crate::handle::ResultPart;
use crate::render::OutputOptions;

#[derive(Debug)]
pub(super) struct ArgumentReader {
    own: Object,
    faults: Vec<Violation>,
}

impl ArgumentReader {
    /// Reads the arguments of a `tools/call`, of which only the known ones are accepted.
    pub(super) fn read(params: &Object, known: &[&str]) -> Result<Self, Error> {
        arguments(params.get("arguments")).map(|own| Self::of(own, known))
    }

    pub(super) fn of(own: Object, known: &[&str]) -> Self {
        let fault = |name: &str| {
            let near = suggestion::did_you_mean(name, known.iter().copied()).map(|near| format!(" {near}"));
            Violation::new(step(name), format!("`{name}` is not an argument of this tool.{}", near.unwrap_or_default()))
        };
        let faults = own.unknown(known).map(fault).collect();
        Self { own, faults }
    }

    /// Returns an argument that is present and not `null`.
    pub(super) fn argument(&self, name: &str) -> Option<&Raw> {
        self.own.get(name).filter(|raw| !raw.is_null())
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let raw = self.argument(name)?;
        raw.text().or_else(|| self.refuse(name, "must be a string"))
    }

    /// Reads a string that must not be empty.
    pub(super) fn non_empty_text(&mut self, name: &str) -> Option<String> {
        let text = self.text(name)?;
        if text.is_empty() { self.refuse(name, "must not be empty") } else { Some(text) }
    }

    /// Reads a list of strings; a single string counts as a list. Empty strings are dropped.
    pub(super) fn texts(&mut self, name: &str, most: usize) -> Option<Vec<String>> {
        let raw = self.argument(name)?;
        let texts = raw.text().map(|one| vec![one]).or_else(|| raw.decode::<Vec<String>>().ok());
        let Some(mut texts) = texts else { return self.refuse(name, "must be a list of strings") };
        texts.retain(|text| !text.trim().is_empty());
        if texts.len() > most { self.refuse(name, &format!("has more than {most} entries")) } else { Some(texts) }
    }

    /// Returns the only one of these synonyms that is present; several are rejected.
    pub(super) fn only_one(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let mut argument = words.iter().copied().filter(|word| self.argument(word).is_some());
        let (first, second) = (argument.next()?, argument.next());
        match second {
            None => Some(first),
            Some(second) => self.refuse(second, &format!("cannot be combined with `{first}`")),
        }
    }

    /// Rejects arguments that do not go with the others.
    pub(super) fn reject_with(&mut self, names: &[&str], why: &str) {
        for name in names.iter().filter(|name| self.own.get(name).is_some_and(|raw| !raw.is_null())) {
            self.faults.push(Violation::new(step(name), format!("`{name}` {why}.")));
        }
    }

    /// Reads the output options `format` and `select`.
    pub(super) fn wanted(&mut self) -> OutputOptions {
        let format = self.word("format", &AnswerFormat::ALL);
        let select = self.text("select").map(|text| Selector::parse(&text));
        let select = match select {
            Some(Err(what)) => self.refuse("select", &what),
            Some(Ok(selector)) => Some(selector),
            None => None,
        };
        OutputOptions { format, select }
    }

    /// Reads the part of a stored result: `page`, `jq` or `search`.
    pub(super) fn part(&mut self) -> ResultPart {
        ResultPart {
            page: self.count("page", u32::MAX),
            jq: self.non_empty_text("jq"),
            search: self.non_empty_text("search"),
        }
    }

    pub(super) fn flag(&mut self, name: &str) -> Option<bool> {
        let raw = self.argument(name)?;
        raw.decode().ok().or_else(|| self.refuse(name, "must be true or false"))
    }

    /// Reads an integer from 1 to `most`.
    pub(super) fn count(&mut self, name: &str, most: u32) -> Option<u32> {
        let raw = self.argument(name)?;
        let count = raw.whole().filter(|count| (1..=most).contains(count));
        count.or_else(|| self.refuse(name, &format!("must be an integer from 1 to {most}")))
    }

    /// Reads one of a few words.
    pub(super) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.argument(name)?.text();
        let found = words.iter().find(|(word, _)| text.as_deref() == Some(word)).map(|(_, meaning)| *meaning);
        found.or_else(|| {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            let (last, first) = words.split_last()?;
            self.refuse(name, &format!("must be {} or {last}", first.join(", ")))
        })
    }

    /// Reads an object, empty if absent. Some models send it as a string.
    pub(super) fn object(&mut self, name: &str) -> Object {
        match arguments(self.own.get(name)) {
            Ok(object) => object,
            Err(_) => self.refuse(name, "must be a JSON object").unwrap_or_default(),
        }
    }

    /// Records a fault and returns `None`.
    pub(super) fn refuse<T>(&mut self, name: &str, what: &str) -> Option<T> {
        self.faults.push(Violation::new(step(name), format!("`{name}` {what}.")));
        None
    }

    /// Returns `true` if there are no faults so far.
    pub(super) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// Returns all recorded faults as one error.
    pub(super) fn end(&self) -> Result<(), Error> {
        if self.is_valid() {
            return Ok(());
        }
        Err(violation::error(&self.faults).hint("Correct the arguments; `schema` is the schema they must match."))
    }

    /// Returns the value, or all recorded faults as one error.
    pub(super) fn end_with<T>(&self, read: Option<T>) -> Result<T, Error> {
        self.end()?;
        read.ok_or_else(|| Error::new(ErrorKind::Validation, "The arguments are incomplete."))
    }
}

/// Adds the schema of the arguments to an error.
pub(super) fn with_schema(schema: impl FnOnce() -> Value) -> impl FnOnce(Error) -> Error {
    move |error| Error { schema: Some(Raw::of(&schema())), ..error }
}
