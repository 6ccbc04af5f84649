//! Parser for the `http` member of a registration: `{method?, url, headers?, query?, body?, result?}`. It reports all
//! violations at once; its result needs no further checks at call time.

use hikite_core::json::{Object, Raw};
use hikite_core::suggestion;
use hikite_core::violation::{Violation, step};
use http::Method;

use crate::body::{BodyEncoding, BodyPart, BodyTemplate};
use crate::header::HeaderTemplates;
use crate::parameter::ArgumentNames;
use crate::reference::text;
use crate::result_path::ResultPath;
use crate::template::TextTemplate;
use crate::url_template::UrlTemplate;

const KEYS: [&str; 6] = ["method", "url", "headers", "query", "body", "result"];
const METHODS: [Method; 6] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

pub(crate) struct HttpDefinition {
    pub(crate) method: Method,
    pub(crate) address: UrlTemplate,
    pub(crate) headers: HeaderTemplates,
    pub(crate) body: Option<BodyTemplate>,
    /// Arguments that no template mentions, if they are sent in the query.
    pub(crate) query_rest: Option<RemainingArguments>,
    pub(crate) pick: Option<ResultPath>,
}

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

pub(crate) struct DefinitionReader<'a> {
    parameters: &'a ArgumentNames,
    mentioned_names: Vec<Box<str>>,
    faults: Vec<Violation>,
}

impl HttpDefinition {
    pub(crate) fn read(http: &Raw, schema: &Raw) -> Result<Self, Vec<Violation>> {
        let Some(form) = http.object() else {
            return Err(vec![Violation::new("/http", "`http` must be an object with a `url`")]);
        };
        let parameters = ArgumentNames::read(schema);
        let mut reader = DefinitionReader { parameters: &parameters, mentioned_names: Vec::new(), faults: Vec::new() };
        reader.keys(&form);
        let method = reader.method(form.get("method"));
        let address = UrlTemplate::read(&mut reader, form.get("url"), form.get("query"));
        let headers = HeaderTemplates::read(&mut reader, form.get("headers"));
        let encoding = BodyEncoding::of(&headers);
        let part = form.get("body").map(|body| BodyPart::read(&mut reader, body));
        let has_body = method != Method::GET && method != Method::HEAD;
        if part.is_some() && !has_body {
            reader.fault("/http/body", format!("a {method} request has no body: use another `method`"));
        }
        if encoding == BodyEncoding::Text && part.as_ref().is_some_and(|part| !part.is_text()) {
            reader.fault("/http/body", "a body that is neither JSON nor a form must be a string");
        }
        let pick = form.get("result").and_then(|result| reader.pick(result));
        let into_query = !has_body || method == Method::DELETE;
        let fixed = address.as_ref().map(UrlTemplate::names).into_iter().flatten().filter(|_| into_query);
        let rest = reader.rest(fixed);
        let body = match part {
            Some(part) => Some(BodyTemplate { encoding, part }),
            None if into_query || rest.is_empty() => None,
            None => Some(BodyTemplate { encoding, part: BodyPart::Rest(rest.clone()) }),
        };
        match address {
            Some(address) if reader.faults.is_empty() => {
                let query_rest = into_query.then_some(rest);
                Ok(Self { method, address, headers, body, query_rest, pick })
            }
            _ => Err(reader.faults),
        }
    }
}

impl DefinitionReader<'_> {
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

    fn keys(&mut self, form: &Object) {
        for name in form.unknown(&KEYS) {
            let near = suggestion::did_you_mean(name, KEYS);
            let hint = near.unwrap_or_else(|| format!("The members of `http` are `{}`.", KEYS.join("`, `")));
            self.fault(format!("/http{}", step(name)), format!("`{name}` is not a known member. {hint}"));
        }
    }

    fn method(&mut self, written: Option<&Raw>) -> Method {
        let Some(written) = written else { return Method::GET };
        let word = written.text().unwrap_or_default().to_ascii_uppercase();
        let known = METHODS.iter().find(|method| method.as_str() == word);
        known.cloned().unwrap_or_else(|| {
            let words: Vec<&str> = METHODS.iter().map(Method::as_str).collect();
            self.fault("/http/method", format!("`method` must be one of {}", words.join(", ")));
            Method::GET
        })
    }

    fn pick(&mut self, written: &Raw) -> Option<ResultPath> {
        let pick = ResultPath::parse(&text(written)).filter(|_| written.text().is_some());
        if pick.is_none() {
            self.fault("/http/result", "write a result path as `data.items[0]` or `/data/items/0`");
        }
        pick
    }

    fn rest<'n>(&self, fixed: impl Iterator<Item = &'n str>) -> RemainingArguments {
        let used_names: Vec<Box<str>> = self.mentioned_names.iter().cloned().chain(fixed.map(Into::into)).collect();
        let is_free = |name: &&str| used_names.iter().all(|used_names| &**used_names != *name);
        let names = self.parameters.names().filter(is_free).map(Into::into).collect();
        RemainingArguments { names, used_names: self.parameters.is_open().then_some(used_names) }
    }
}

#[cfg(test)]
mod tests;
