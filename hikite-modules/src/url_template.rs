//! URL of a request. Scheme and host are fixed; argument values are percent-encoded into the path and the query, so a
//! value can never redirect a request to another host or path.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::violation::{self, Violation, step};
use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

use crate::definition_reader::{DefinitionReader, RemainingArguments};
use crate::escape;
use crate::reference::text;
use crate::template::{TemplatePiece, TextTemplate};

pub(crate) struct UrlTemplate {
    scheme: Scheme,
    authority: Authority,
    path: TextTemplate,
    pairs: Vec<QueryPair>,
}

struct QueryPair {
    name: Box<str>,
    escaped_name: Box<str>,
    /// `None` for a name without a value.
    value: Option<TextTemplate>,
}

impl UrlTemplate {
    pub(crate) fn read(reader: &mut DefinitionReader<'_>, url: Option<&Raw>, query: Option<&Raw>) -> Option<Self> {
        let more = query.map(|query| object_pairs(reader, query)).unwrap_or_default();
        let Some(url) = url.and_then(Raw::text) else {
            reader.fault("/http/url", "`url` is required: the address as a string");
            return None;
        };
        let mut fail = |message: &str| {
            reader.fault("/http/url", message);
            None
        };
        let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| !scheme.contains('{')) else {
            return fail("an address starts with `https://` or `http://`, without references before the path");
        };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::HTTP,
            "https" => Scheme::HTTPS,
            _ => return fail("an address must be `https://…` or `http://…`"),
        };
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let authority = match self::authority(authority) {
            Ok(authority) => authority,
            Err(message) => return fail(message),
        };
        if rest.contains('#') {
            return fail("the part after `#` is never sent; leave it out");
        }
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let path = if path.is_empty() { "/" } else { path };
        let path = reader.template("/http/url", path)?.map_texts(escape::written);
        let literal: String = path.pieces().iter().map(literal).collect();
        if escape::has_dot_segment(&literal) {
            reader.fault("/http/url", "a path must not contain `.` or `..`");
        }
        let mut pairs = query.map(|query| written_pairs(reader, query)).unwrap_or_default();
        pairs.extend(more);
        Some(Self { scheme, authority, path, pairs })
    }

    /// Returns the names in the query.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|pair| &*pair.name)
    }

    /// Returns the query values without references. They may be keys.
    pub(crate) fn fixed_values(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter_map(|pair| pair.value.as_ref()?.as_fixed())
    }

    pub(crate) fn host(&self) -> &str {
        self.authority.host()
    }

    /// Builds the URL for these arguments. The `rest` of them become query pairs.
    pub(crate) fn fill(&self, arguments: &Object, rest: Option<&RemainingArguments>) -> Result<Uri, Error> {
        let mut out = String::with_capacity(128);
        self.fill_path(arguments, &mut out)?;
        let path_end = out.len();
        for pair in &self.pairs {
            pair.write(arguments, &mut out);
        }
        for (name, value) in rest.into_iter().flat_map(|rest| rest.of(arguments)) {
            write_pairs(name, value, &mut out);
        }
        if out.len() > path_end {
            // Every pair was written with a leading ampersand.
            out.replace_range(path_end..=path_end, "?");
        }
        let path = PathAndQuery::try_from(out).ok();
        let uri = path.and_then(|path| {
            let uri = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone());
            uri.path_and_query(path).build().ok()
        });
        uri.ok_or_else(|| Error::new(ErrorKind::Validation, "The arguments result in an address that is too long."))
    }

    fn fill_path(&self, arguments: &Object, out: &mut String) -> Result<(), Error> {
        let mut filled = false;
        for piece in self.path.pieces() {
            let reference = match piece {
                TemplatePiece::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                TemplatePiece::Value(reference) => reference,
            };
            let refuse = |message: String| violation::error(&[Violation::new(step(reference.argument()), message)]);
            let Some(value) = reference.find(arguments) else {
                return Err(refuse(format!("Required parameter missing: {}", reference.written())));
            };
            let value = text(&value);
            if value.is_empty() {
                return Err(refuse(format!("Invalid value for parameter {}: it is empty", reference.written())));
            }
            escape::value(&value, out);
            filled = true;
        }
        if filled && escape::has_dot_segment(out) {
            let names: Vec<Violation> = self
                .path
                .pieces()
                .iter()
                .filter_map(|piece| match piece {
                    TemplatePiece::Value(reference) => Some(reference),
                    TemplatePiece::Text(_) => None,
                })
                .map(|reference| {
                    let message =
                        format!("Invalid value for parameter {}: no `.` or `..` in a path", reference.written());
                    Violation::new(step(reference.argument()), message)
                })
                .collect();
            return Err(violation::error(&names));
        }
        Ok(())
    }
}

impl QueryPair {
    /// Writes nothing if a value that it needs is absent.
    fn write(&self, arguments: &Object, out: &mut String) {
        let Some(value) = &self.value else {
            out.push('&');
            out.push_str(&self.escaped_name);
            return;
        };
        if let Some(reference) = value.as_single_reference() {
            if let Some(value) = reference.find(arguments) {
                write_pairs(&self.name, &value, out);
            }
            return;
        }
        let start = out.len();
        out.push('&');
        out.push_str(&self.escaped_name);
        out.push('=');
        if !value.render(arguments, escape::value, out) {
            out.truncate(start);
        }
    }
}

/// Appends `&name=value`, once per element of a list, and nothing for `null`.
pub(crate) fn write_pairs(name: &str, value: &Raw, out: &mut String) {
    let mut write = |value: &Raw| {
        if !value.is_null() {
            out.push('&');
            escape::value(name, out);
            out.push('=');
            escape::value(&text(value), out);
        }
    };
    match value.items() {
        Some(items) => items.iter().for_each(&mut write),
        None => write(value),
    }
}

fn authority(written: &str) -> Result<Authority, &'static str> {
    if written.contains(['{', '}']) {
        return Err("the host must not contain references: it is fixed when the tool is registered");
    }
    if written.contains('@') {
        return Err("an address must not contain credentials; put them in `headers`");
    }
    let authority: Authority = written.parse().map_err(|_| "the host of the address is not valid")?;
    let tail = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    if authority.host().is_empty() {
        return Err("the address has no host");
    }
    if !tail.is_empty() && authority.port_u16().is_none() {
        return Err("a port must be a number up to 65535");
    }
    Ok(authority)
}

/// Parses the query part of a URL template.
fn written_pairs(reader: &mut DefinitionReader<'_>, query: &str) -> Vec<QueryPair> {
    let mut pairs = Vec::new();
    for written in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = written.split_once('=').map_or((written, None), |(n, v)| (n, Some(v)));
        let name = reader.template("/http/url", name);
        let Some(name) = name.as_ref().and_then(TextTemplate::as_fixed) else {
            if name.is_some() {
                reader.fault("/http/url", "references are allowed in the values of a query, not in its names");
            }
            continue;
        };
        let value = value.map(|value| reader.template("/http/url", value));
        let mut escaped = String::new();
        escape::written(name, &mut escaped);
        let value = value.flatten().map(|value| value.map_texts(escape::written));
        pairs.push(QueryPair { name: name.into(), escaped_name: escaped.into(), value });
    }
    pairs
}

/// Parses the `query` member.
fn object_pairs(reader: &mut DefinitionReader<'_>, query: &Raw) -> Vec<QueryPair> {
    let Some(members) = query.object() else {
        reader.fault("/http/query", "`query` must be an object of names and values");
        return Vec::new();
    };
    let mut pairs = Vec::new();
    for (name, value) in members.iter() {
        let pointer = format!("/http/query{}", step(name));
        let mut escaped = String::new();
        escape::value(name, &mut escaped);
        for value in value.items().unwrap_or_else(|| vec![value.clone()]) {
            let is_plain = !matches!(value.bytes().first(), Some(b'{' | b'[' | b'n'));
            let template = match value.text() {
                Some(written) => reader.template(&pointer, &written),
                None if is_plain => Some(TextTemplate::fixed(&value.as_str())),
                None => {
                    reader.fault(pointer.as_str(), "a value must be a string, a number, a boolean or a list of them");
                    None
                }
            };
            let value = template.map(|template| template.map_texts(escape::value));
            pairs.push(QueryPair { name: name.into(), escaped_name: escaped.as_str().into(), value });
        }
    }
    pairs
}

/// Returns the text of a piece, with a letter in place of a value.
fn literal(piece: &TemplatePiece) -> &str {
    match piece {
        TemplatePiece::Text(text) => text,
        TemplatePiece::Value(_) => "x",
    }
}
