//! Shared by the parsers of a definition's members: their templates, their violations, and the arguments that they leave.

use hikite_core::json::{Object, Raw};
use hikite_core::suggestion;
use hikite_core::violation::{Violation, step};
use http::Method;

use crate::parameter::ArgumentNames;
use crate::reference::text;
use crate::result_path::ResultPath;
use crate::template::TextTemplate;

const KEYS: [&str; 6] = ["method", "url", "headers", "query", "body", "result"];
const METHODS: [Method; 6] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Arguments that no template mentions.
#[derive(Clone, Default)]
pub(crate) struct RemainingArguments {
    names: Vec<Box<str>>,
    /// Arguments already used. Set only if the schema is open.
    used_names: Option<Vec<Box<str>>>,
}

impl RemainingArguments {
    pub(crate) fn of<'a>(&'a self, arguments: &'a Object) -> impl Iterator<Item = (&'a str, &'a Raw)> {
        let is_known = |name: &str| self.names.iter().any(|known| &**known == name);
        let is_free = move |name: &str| {
            self.used_names.as_ref().is_some_and(|used_names| used_names.iter().all(|used_names| &**used_names != name))
        };
        arguments.iter().filter(move |(name, _)| is_known(name) || is_free(name))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.used_names.is_none()
    }
}

/// Reader of a definition: knows the parameters of the tool, and collects the violations.
pub(crate) struct DefinitionReader<'a> {
    parameters: &'a ArgumentNames,
    mentioned_names: Vec<Box<str>>,
    pub(crate) faults: Vec<Violation>,
}

impl<'a> DefinitionReader<'a> {
    pub(crate) fn new(parameters: &'a ArgumentNames) -> Self {
        Self { parameters, mentioned_names: Vec::new(), faults: Vec::new() }
    }

    pub(crate) fn fault(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.faults.push(Violation::new(pointer, message));
    }

    /// Parses a template and records its violations.
    pub(crate) fn template(&mut self, pointer: &str, written: &str) -> Option<TextTemplate> {
        let (parameters, mentioned_names) = (self.parameters, &mut self.mentioned_names);
        let parsed = TextTemplate::parse(written, &mut |name| {
            let reference = parameters.reference(name)?;
            mentioned_names.push(reference.argument().into());
            Ok(reference)
        });
        parsed.map_err(|faults| faults.into_iter().for_each(|fault| self.fault(pointer, fault))).ok()
    }

    pub(crate) fn keys(&mut self, form: &Object) {
        for name in form.unknown(&KEYS) {
            let near = suggestion::did_you_mean(name, KEYS);
            let hint = near.unwrap_or_else(|| format!("The members of `http` are `{}`.", KEYS.join("`, `")));
            self.fault(format!("/http{}", step(name)), format!("`{name}` is not a known member. {hint}"));
        }
    }

    pub(crate) fn method(&mut self, written: Option<&Raw>) -> Method {
        let Some(written) = written else { return Method::GET };
        let word = written.text().unwrap_or_default().to_ascii_uppercase();
        let known = METHODS.iter().find(|method| method.as_str() == word);
        known.cloned().unwrap_or_else(|| {
            let words: Vec<&str> = METHODS.iter().map(Method::as_str).collect();
            self.fault("/http/method", format!("`method` must be one of {}", words.join(", ")));
            Method::GET
        })
    }

    pub(crate) fn pick(&mut self, written: &Raw) -> Option<ResultPath> {
        let pick = ResultPath::parse(&text(written)).filter(|_| written.text().is_some());
        if pick.is_none() {
            self.fault("/http/result", "write a result path as `data.items[0]` or `/data/items/0`");
        }
        pick
    }

    pub(crate) fn rest<'n>(&self, fixed: impl Iterator<Item = &'n str>) -> RemainingArguments {
        let used_names: Vec<Box<str>> = self.mentioned_names.iter().cloned().chain(fixed.map(Into::into)).collect();
        let is_free = |name: &&str| used_names.iter().all(|used_names| &**used_names != *name);
        let names = self.parameters.names().filter(is_free).map(Into::into).collect();
        RemainingArguments { names, used_names: self.parameters.is_open().then_some(used_names) }
    }
}
