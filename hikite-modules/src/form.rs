//! Parser for the `http` member of a registration: `{method?, url, headers?, query?, body?, result?}`. It reports all
//! violations at once; its result needs no further checks at call time.

use hikite_core::fault::{Fault, step};
use hikite_core::json::{Object, Raw};
use hikite_core::suggest;
use http::Method;

use crate::address::Address;
use crate::body::{Body, Encoding, Part};
use crate::header::Headers;
use crate::parameter::Parameters;
use crate::pick::Pick;
use crate::reference::text;
use crate::template::Template;

const KEYS: [&str; 6] = ["method", "url", "headers", "query", "body", "result"];
const METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

pub(crate) struct Form {
    pub(crate) method: Method,
    pub(crate) address: Address,
    pub(crate) headers: Headers,
    pub(crate) body: Option<Body>,
    /// Arguments that no template mentions, if they are sent in the query.
    pub(crate) query_rest: Option<Rest>,
    pub(crate) pick: Option<Pick>,
}

/// Arguments that no template mentions.
#[derive(Clone, Default)]
pub(crate) struct Rest {
    names: Vec<Box<str>>,
    /// Arguments already used. Set only if the schema is open.
    taken: Option<Vec<Box<str>>>,
}

impl Rest {
    pub(crate) fn of<'a>(&'a self, arguments: &'a Object) -> impl Iterator<Item = (&'a str, &'a Raw)> {
        let is_known = |name: &str| self.names.iter().any(|known| &**known == name);
        let is_free = move |name: &str| {
            self.taken.as_ref().is_some_and(|taken| taken.iter().all(|taken| &**taken != name))
        };
        arguments.iter().filter(move |(name, _)| is_known(name) || is_free(name))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.taken.is_none()
    }
}

pub(crate) struct Reader<'a> {
    parameters: &'a Parameters,
    mentioned: Vec<Box<str>>,
    faults: Vec<Fault>,
}

impl Form {
    pub(crate) fn read(http: &Raw, schema: &Raw) -> Result<Self, Vec<Fault>> {
        let Some(form) = http.object() else {
            return Err(vec![Fault::new("/http", "`http` is an object with a `url`")]);
        };
        let parameters = Parameters::read(schema);
        let mut reader = Reader { parameters: &parameters, mentioned: Vec::new(), faults: Vec::new() };
        reader.keys(&form);
        let method = reader.method(form.get("method"));
        let address = Address::read(&mut reader, form.get("url"), form.get("query"));
        let headers = Headers::read(&mut reader, form.get("headers"));
        let encoding = Encoding::of(&headers);
        let part = form.get("body").map(|body| Part::read(&mut reader, body));
        let has_body = method != Method::GET && method != Method::HEAD;
        if part.is_some() && !has_body {
            reader.fault("/http/body", format!("a {method} request has no body: give another `method`"));
        }
        if encoding == Encoding::Text && part.as_ref().is_some_and(|part| !part.is_text()) {
            reader.fault("/http/body", "a body that is neither JSON nor a form is a string");
        }
        let pick = form.get("result").and_then(|result| reader.pick(result));
        let into_query = !has_body || method == Method::DELETE;
        let fixed = address.as_ref().map(Address::names).into_iter().flatten().filter(|_| into_query);
        let rest = reader.rest(fixed);
        let body = match part {
            Some(part) => Some(Body { encoding, part }),
            None if into_query || rest.is_empty() => None,
            None => Some(Body { encoding, part: Part::Rest(rest.clone()) }),
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

impl Reader<'_> {
    pub(crate) fn fault(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.faults.push(Fault::new(pointer, message));
    }

    /// Parses a template and records its violations.
    pub(crate) fn template(&mut self, pointer: &str, written: &str) -> Option<Template> {
        let (parameters, mentioned) = (self.parameters, &mut self.mentioned);
        let parsed = Template::parse(written, &mut |name| {
            let reference = parameters.reference(name)?;
            mentioned.push(reference.argument().into());
            Ok(reference)
        });
        parsed.map_err(|faults| faults.into_iter().for_each(|fault| self.fault(pointer, fault))).ok()
    }

    fn keys(&mut self, form: &Object) {
        for name in form.unknown(&KEYS) {
            let near = suggest::did_you_mean(name, KEYS);
            let hint = near.unwrap_or_else(|| format!("the members of `http` are `{}`", KEYS.join("`, `")));
            self.fault(format!("/http{}", step(name)), format!("`{name}` is not known here; {hint}"));
        }
    }

    fn method(&mut self, written: Option<&Raw>) -> Method {
        let Some(written) = written else { return Method::GET };
        let word = written.text().unwrap_or_default().to_ascii_uppercase();
        let known = METHODS.iter().find(|method| method.as_str() == word);
        known.cloned().unwrap_or_else(|| {
            let words: Vec<&str> = METHODS.iter().map(Method::as_str).collect();
            self.fault("/http/method", format!("a method is one of {}", words.join(", ")));
            Method::GET
        })
    }

    fn pick(&mut self, written: &Raw) -> Option<Pick> {
        let pick = Pick::parse(&text(written)).filter(|_| written.text().is_some());
        if pick.is_none() {
            self.fault("/http/result", "a result path is written `data.items[0]` or `/data/items/0`");
        }
        pick
    }

    fn rest<'n>(&self, fixed: impl Iterator<Item = &'n str>) -> Rest {
        let taken: Vec<Box<str>> = self.mentioned.iter().cloned().chain(fixed.map(Into::into)).collect();
        let is_free = |name: &&str| taken.iter().all(|taken| &**taken != *name);
        let names = self.parameters.names().filter(is_free).map(Into::into).collect();
        Rest { names, taken: self.parameters.is_open().then_some(taken) }
    }
}

#[cfg(test)]
mod tests;
