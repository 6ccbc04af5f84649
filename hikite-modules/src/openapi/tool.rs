//! Converts one operation to a tool of a module file.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::ApiOperation;
use super::list::{self, ResponseSchema};
use super::parameter::{self, OperationParameter, OperationParameters, ParameterLocation};
use super::schema::SchemaResolver;
use super::{page, shape, yaml};

/// Pagination styles by name, without duplicates.
#[derive(Debug, Default)]
pub(super) struct PaginationStyles(Vec<(String, Value)>);

#[derive(Debug)]
pub(super) struct ToolDraft {
    name: String,
    risk: (&'static str, String),
    description: String,
    params: Vec<(String, Value)>,
    request: Map<String, Value>,
    headers: Map<String, Value>,
    /// Headers with a constant value. Those common to all tools are written at the top of the file.
    pub(super) fixed: Map<String, Value>,
    pages: Option<(String, u64)>,
    out: Option<Value>,
    unsupported: Vec<String>,
}

pub(super) fn make(
    operation: &ApiOperation<'_>,
    schemas: SchemaResolver<'_>,
    pagination_styles: &mut PaginationStyles,
) -> ToolDraft {
    let OperationParameters { mut all, whole_body, fixed, unsupported } = parameter::of(operation, schemas);
    let answer = list::of(operation, schemas);
    let paging = page::guess(&all, &answer, schemas);
    let pages = paging.map(|paging| {
        all.retain(|parameter| !paging.taken.contains(&(parameter.location, parameter.wire.clone())));
        (pagination_styles.name(paging.way), paging.default)
    });
    let mut request = Map::new();
    request.insert(operation.method.into(), json!(path(operation.path, &all)));
    let query = slots(&all, ParameterLocation::Query);
    if !query.is_empty() {
        request.insert("query".into(), Value::Object(query));
    }
    let in_body = pages.as_ref().is_some_and(|(way, _)| pagination_styles.is_in_body(way));
    if operation.method == "GET" {
        all.retain(|parameter| parameter.location != ParameterLocation::Body);
    } else if let Some(name) = &whole_body {
        request.insert("body".into(), json!(format!("${name}")));
    } else {
        let members = slots(&all, ParameterLocation::Body);
        let wanted = !members.is_empty() || in_body;
        request.extend(wanted.then(|| ("body".to_owned(), Value::Object(members))));
    }
    if matches!(answer, ResponseSchema::Text) {
        request.insert("answer".into(), json!("text"));
    }
    let headers = all.iter().filter(|parameter| parameter.location == ParameterLocation::Header);
    let headers = headers.map(|header| (header.wire.clone(), json!(format!("{{{}}}", header.name)))).collect();
    ToolDraft {
        name: operation.name.clone(),
        risk: operation.risk(),
        description: operation.summary.clone(),
        params: all.iter().map(|parameter| (parameter.name.clone(), parameter.written())).collect(),
        request,
        headers,
        fixed,
        pages,
        out: shape::guess(&answer, &operation.entity(), schemas),
        unsupported,
    }
}

impl PaginationStyles {
    pub(super) fn named(&self) -> &[(String, Value)] {
        &self.0
    }

    fn name(&mut self, way: Value) -> String {
        if let Some((name, _)) = self.0.iter().find(|(_, known)| *known == way) {
            return name.clone();
        }
        let style = way["style"].as_str().unwrap_or("pages");
        let alike = self.0.iter().filter(|(_, known)| known["style"] == way["style"]).count();
        let name = if alike == 0 { style.to_owned() } else { format!("{style}_{}", alike + 1) };
        self.0.push((name.clone(), way));
        name
    }

    fn is_in_body(&self, name: &str) -> bool {
        self.0.iter().any(|(known, way)| known == name && way["in"] == "body")
    }
}

impl ToolDraft {
    /// Writes the tool, without the shared headers.
    pub(super) fn write(&self, shared: &Map<String, Value>, text: &mut String) {
        let (risk, why) = &self.risk;
        let _ = writeln!(text, "  {}:\n    risk: {risk} # guessed: {why}", self.name);
        let _ = writeln!(text, "    description: {}", yaml::quoted(&self.description));
        if !self.unsupported.is_empty() {
            let _ = writeln!(text, "    # left out: {}", super::text::single(&self.unsupported.join(", ")));
        }
        if !self.params.is_empty() {
            text.push_str("    params:\n");
            for (name, written) in &self.params {
                let _ = writeln!(text, "      {}: {}", yaml::word(name), yaml::flow(written));
            }
        }
        let mut request = self.request.clone();
        let fixed = self.fixed.iter().filter(|(name, _)| !shared.contains_key(*name));
        let mut headers = self.headers.clone();
        headers.extend(fixed.map(|(name, value)| (name.clone(), value.clone())));
        if !headers.is_empty() {
            request.insert("headers".into(), Value::Object(headers));
        }
        let _ = writeln!(text, "    request: {}", yaml::flow(&Value::Object(request)));
        if let Some((way, default)) = &self.pages {
            let _ = writeln!(text, "    pages: {{ use: {way}, default: {default} }} # guessed");
        }
        if let Some(out) = &self.out {
            let _ = writeln!(text, "    out: {} # guessed", yaml::flow(out));
        }
    }
}

fn slots(all: &[OperationParameter], location: ParameterLocation) -> Map<String, Value> {
    let here = all.iter().filter(|parameter| parameter.location == location);
    here.map(|parameter| (parameter.wire.clone(), parameter.slot())).collect()
}

/// Returns the path with our parameter names.
fn path(written: &str, all: &[OperationParameter]) -> String {
    let mut path = String::new();
    let mut rest = written;
    while let Some((text, after)) = rest.split_once('{') {
        let (inside, after) = after.split_once('}').unwrap_or((after, ""));
        let location =
            all.iter().find(|parameter| parameter.location == ParameterLocation::Path && parameter.wire == inside);
        let _ = write!(path, "{text}{{{}}}", location.map_or(inside, |location| &location.name));
        rest = after;
    }
    path.push_str(rest);
    path
}
