//! Request headers. Their names are fixed, and values hold no control characters, so that no argument can add a header.

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::violation::{self, Violation, step};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::definition_reader::DefinitionReader;
use crate::template::{TemplatePiece, TextTemplate};

/// Headers of the connection or the message framing, which tools may not set.
const RESERVED_HEADERS: [&str; 11] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];

#[derive(Default)]
pub(crate) struct HeaderTemplates {
    fixed: HeaderMap,
    filled: Vec<(HeaderName, TextTemplate)>,
    /// Fixed values of the definition. They may be credentials.
    secrets: Vec<Box<str>>,
}

impl HeaderTemplates {
    pub(crate) fn read(reader: &mut DefinitionReader<'_>, written: Option<&Raw>) -> Self {
        let mut headers = Self::default();
        match written.map(Raw::object) {
            Some(Some(members)) => {
                members.iter().for_each(|(name, value)| headers.add(reader, name, value));
            }
            Some(None) => reader.fault("/http/headers", "`headers` must be an object of names and values"),
            None => {}
        }
        headers.set_default(header::ACCEPT, "application/json, text/*;q=0.9, */*;q=0.5");
        headers.set_default(header::USER_AGENT, concat!("hikite/", env!("CARGO_PKG_VERSION")));
        headers
    }

    /// Sets a header that the definition does not set.
    pub(crate) fn set_default(&mut self, name: HeaderName, value: &'static str) {
        if !self.fixed.contains_key(&name) && self.filled.iter().all(|(filled, _)| *filled != name) {
            self.fixed.insert(name, HeaderValue::from_static(value));
        }
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.fixed.get(header::CONTENT_TYPE)?.to_str().ok()
    }

    pub(crate) fn secrets(&self) -> &[Box<str>] {
        &self.secrets
    }

    /// Builds the headers for these arguments. A header with an absent value is left out.
    pub(crate) fn fill(&self, arguments: &Object) -> Result<HeaderMap, Error> {
        let mut headers = self.fixed.clone();
        for (name, template) in &self.filled {
            let mut text = String::new();
            if !template.render(arguments, |value, out| out.push_str(value), &mut text) {
                continue;
            }
            match value(&text) {
                Some(value) => headers.insert(name.clone(), value),
                None => return Err(unsendable(template)),
            };
        }
        Ok(headers)
    }

    fn add(&mut self, reader: &mut DefinitionReader<'_>, written: &str, raw: &Raw) {
        let pointer = format!("/http/headers{}", step(written));
        let Ok(name) = HeaderName::try_from(written) else {
            return reader.fault(pointer, "this is not a valid header name; names cannot contain references");
        };
        if RESERVED_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
            return reader.fault(pointer, format!("`{name}` is set by hikite"));
        }
        if self.fixed.contains_key(&name) || self.filled.iter().any(|(filled, _)| *filled == name) {
            return reader.fault(pointer, format!("`{name}` is defined twice"));
        }
        let is_plain = !matches!(raw.bytes().first(), Some(b'{' | b'[' | b'n'));
        let template = match raw.text() {
            Some(text) => reader.template(&pointer, &text),
            None if is_plain => Some(TextTemplate::fixed(&raw.as_str())),
            None => return reader.fault(pointer, "a value must be a string, a number or a boolean"),
        };
        let Some(template) = template else { return };
        let Some(text) = template.as_fixed() else {
            if name == header::CONTENT_TYPE {
                return reader
                    .fault(pointer, "`content-type` sets the format of the body and cannot contain references");
            }
            let mut literals = template.pieces().iter().filter_map(|piece| match piece {
                TemplatePiece::Text(text) => Some(text),
                TemplatePiece::Value(_) => None,
            });
            if !literals.all(|text| value(text).is_some()) {
                return reader.fault(pointer, "a header must not contain control characters");
            }
            return self.filled.push((name, template));
        };
        match value(text) {
            Some(value) => {
                if name != header::CONTENT_TYPE && name != header::ACCEPT {
                    self.secrets.push(text.into());
                }
                self.fixed.insert(name, value);
            }
            None => reader.fault(pointer, "a header must not contain control characters"),
        }
    }
}

/// Returns a sensitive header value, or `None` if it is invalid.
fn value(text: &str) -> Option<HeaderValue> {
    if text.chars().any(char::is_control) {
        return None;
    }
    let mut value = HeaderValue::from_bytes(text.as_bytes()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn unsendable(template: &TextTemplate) -> Error {
    let faults: Vec<Violation> = template
        .pieces()
        .iter()
        .filter_map(|piece| match piece {
            TemplatePiece::Value(reference) => Some(reference),
            TemplatePiece::Text(_) => None,
        })
        .map(|reference| {
            let message = format!("Invalid value for parameter {}: no control characters", reference.written());
            Violation::new(step(reference.argument()), message)
        })
        .collect();
    violation::error(&faults)
}
