//! Request template of a module: method, path, query, headers and body. No value can change the method, the host or the
//! structure of the path.

use hikite_core::error::{Error, ErrorKind};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;

use super::placeholder::PlaceholderText;
use super::value_template::ValueTemplate;
use crate::escape;
use crate::expression::{Expression, ExpressionNames};
use crate::file::{ResponseFormat, ServiceRequestFile};
use crate::scope::VariableScope;

#[derive(Debug)]
pub(crate) struct RequestTemplate {
    pub(crate) method: Method,
    path: PlaceholderText,
    query: Vec<(String, ValueTemplate)>,
    headers: Vec<(HeaderName, PlaceholderText)>,
    body: Option<ValueTemplate>,
    pub(crate) answer: ResponseFormat,
    /// Error statuses that count as null.
    pub(crate) allow: Vec<u16>,
}

/// A request with all values filled in, without the host.
#[derive(Clone, Debug)]
pub(crate) struct FilledRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// Names and values, not yet encoded.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Value>,
}

impl RequestTemplate {
    pub(crate) fn new(file: &ServiceRequestFile, names: &ExpressionNames) -> Result<Self, String> {
        let methods = [
            (Method::GET, &file.get),
            (Method::POST, &file.post),
            (Method::PUT, &file.put),
            (Method::PATCH, &file.patch),
            (Method::DELETE, &file.delete),
        ];
        let mut specified = methods.into_iter().filter_map(|(method, path)| Some((method, path.as_ref()?)));
        let (Some((method, path)), None) = (specified.next(), specified.next()) else {
            return Err("a request must have exactly one of GET, POST, PUT, PATCH and DELETE".into());
        };
        if !path.starts_with('/') || path.contains(['?', '#', '\\']) || escape::has_dot_segment(path) {
            return Err("a path starts with `/` and has no query, no `.` and no `..`".into());
        }
        if method == Method::GET && file.body.is_some() {
            return Err("a GET has no body".into());
        }
        let headers = file.headers.iter().map(|(name, value)| header(name, value, names));
        Ok(Self {
            method,
            path: PlaceholderText::new(path, names)?,
            query: file.query.iter().map(|(name, value)| (name.to_owned(), ValueTemplate::new(value, names))).collect(),
            headers: headers.collect::<Result<_, _>>()?,
            body: file.body.as_ref().map(|body| ValueTemplate::new(body, names)),
            answer: file.answer,
            allow: file.allow.clone(),
        })
    }

    /// Builds a GET request without placeholders.
    pub(crate) fn get(path: &str, answer: ResponseFormat) -> Result<Self, String> {
        let file = ServiceRequestFile { get: Some(path.to_owned()), answer, ..ServiceRequestFile::default() };
        Self::new(&file, &ExpressionNames::default())
    }

    pub(crate) fn fill(&self, scope: &VariableScope<'_>) -> Result<FilledRequest, Error> {
        let mut query = Vec::new();
        for (name, value_template) in &self.query {
            add_pairs(name, &value_template.fill(scope)?, &mut query);
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let value = HeaderValue::try_from(value.header(scope)?)
                .map_err(|_| Error::new(ErrorKind::Validation, format!("The header `{name}` cannot be sent.")))?;
            headers.insert(name.clone(), value);
        }
        let body = self.body.as_ref().map(|body| body.fill(scope)).transpose()?;
        Ok(FilledRequest { method: self.method.clone(), path: self.path.path(scope)?, query, headers, body })
    }

    /// Returns the placeholders of its path.
    #[cfg(test)]
    pub(crate) fn places(&self) -> impl Iterator<Item = &str> {
        self.path.names()
    }

    #[cfg(test)]
    pub(crate) fn path(&self, scope: &VariableScope<'_>) -> Result<String, Error> {
        self.path.path(scope)
    }

    pub(crate) fn expressions<'a>(&'a self, found: &mut Vec<&'a Expression>) {
        self.path.expressions(found);
        self.query.iter().for_each(|(_, value_template)| value_template.expressions(found));
        self.headers.iter().for_each(|(_, places)| places.expressions(found));
        self.body.iter().for_each(|body| body.expressions(found));
    }

    /// Returns the variables that it uses.
    pub(crate) fn variables<'a>(&'a self, found: &mut Vec<&'a str>) {
        let mut expressions = Vec::new();
        self.expressions(&mut expressions);
        found.extend(expressions.into_iter().flat_map(Expression::variables));
        found.extend(self.path.names());
        found.extend(self.headers.iter().flat_map(|(_, places)| places.names()));
    }
}

impl FilledRequest {
    /// Returns the encoded path and query.
    pub(crate) fn target(&self) -> String {
        let mut out = self.path.clone();
        for (at, (name, value)) in self.query.iter().enumerate() {
            out.push(if at == 0 { '?' } else { '&' });
            escape::value(name, &mut out);
            out.push('=');
            escape::value(value, &mut out);
        }
        out
    }

    /// Sets a query parameter, replacing any previous value.
    pub(crate) fn set_query(&mut self, name: &str, value: String) {
        self.query.retain(|(other, _)| other != name);
        self.query.push((name.to_owned(), value));
    }

    pub(crate) fn set_body(&mut self, name: &str, value: Value) {
        let body = self.body.get_or_insert_with(|| Value::Object(serde_json::Map::new()));
        if let Some(members) = body.as_object_mut() {
            members.insert(name.to_owned(), value);
        }
    }
}

pub(super) fn header(
    name: &str,
    value: &str,
    names: &ExpressionNames,
) -> Result<(HeaderName, PlaceholderText), String> {
    let name = HeaderName::try_from(name).map_err(|_| format!("`{name}` is not a valid header name"))?;
    if matches!(name.as_str(), "authorization" | "host" | "content-length" | "transfer-encoding" | "connection") {
        return Err(format!("a module cannot set the header `{name}`"));
    }
    Ok((name, PlaceholderText::new(value, names)?))
}

/// Adds query pairs: one per element of a list, none for null.
fn add_pairs(name: &str, value: &Value, query: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Array(items) => items.iter().for_each(|item| add_pairs(name, item, query)),
        Value::String(text) => query.push((name.to_owned(), text.clone())),
        other => query.push((name.to_owned(), other.to_string())),
    }
}
