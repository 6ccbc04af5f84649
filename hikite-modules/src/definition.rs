//! Parser for the `http` member of a registration: `{method?, url, headers?, query?, body?, result?}`. It reports all
//! violations at once; its result needs no further checks at call time.

use hikite_core::json::Raw;
use hikite_core::violation::Violation;
use http::Method;

use crate::body::{BodyEncoding, BodyPart, BodyTemplate};
use crate::definition_reader::{DefinitionReader, RemainingArguments};
use crate::header::HeaderTemplates;
use crate::parameter::ArgumentNames;
use crate::result_path::ResultPath;
use crate::url_template::UrlTemplate;

pub(crate) struct HttpDefinition {
    pub(crate) method: Method,
    pub(crate) address: UrlTemplate,
    pub(crate) headers: HeaderTemplates,
    pub(crate) body: Option<BodyTemplate>,
    /// Arguments that no template mentions, if they are sent in the query.
    pub(crate) query_rest: Option<RemainingArguments>,
    pub(crate) pick: Option<ResultPath>,
}

impl HttpDefinition {
    pub(crate) fn read(http: &Raw, schema: &Raw) -> Result<Self, Vec<Violation>> {
        let Some(form) = http.object() else {
            return Err(vec![Violation::new("/http", "`http` must be an object with a `url`")]);
        };
        let parameters = ArgumentNames::read(schema);
        let mut reader = DefinitionReader::new(&parameters);
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

#[cfg(test)]
mod tests;
