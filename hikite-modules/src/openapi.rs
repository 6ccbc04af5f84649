//! Generates a draft module file from an OpenAPI description: a person chooses operations, the rest is guessed, marked
//! as such, and reviewed by a person. Text in, text out; nothing is fetched.

mod list;
mod name;
mod operation;
mod operation_filter;
mod page;
mod parameter;
mod schema;
mod shape;
#[cfg(test)]
mod tests;
mod text;
mod tool;
mod yaml;

use std::fmt::Write;

use serde_json::{Map, Value};

pub use operation::ApiOperation;
pub use operation_filter::OperationFilter;
use schema::SchemaResolver;
use text::{line, single};
use tool::{PaginationStyles, ToolDraft};

/// Placeholder for a missing server URL.
const NOWHERE: &str = "https://api.example.com";

/// A parsed OpenAPI description.
#[derive(Debug)]
pub struct ApiDescription {
    document: Value,
}

impl ApiDescription {
    /// Parses JSON or YAML.
    pub fn read(text: &str) -> Result<Self, String> {
        let document: Value = match serde_json::from_str(text) {
            Ok(document) => document,
            Err(_) if text.trim_start().starts_with('{') => return Err(not_json(text)),
            Err(_) => serde_saphyr::from_str(text).map_err(|error| {
                let words = error.to_string();
                words.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
            })?,
        };
        if document.get("swagger").is_some() {
            return Err("this is Swagger 2; turn it into OpenAPI 3 first".into());
        }
        let version = document.get("openapi").and_then(Value::as_str).unwrap_or_default();
        if !version.starts_with("3.") || !document["paths"].is_object() {
            return Err("this is no OpenAPI 3 description: it needs `openapi: 3.…` and `paths`".into());
        }
        Ok(Self { document })
    }

    /// Returns the title of the service.
    pub fn title(&self) -> String {
        let title = single(self.document["info"]["title"].as_str().unwrap_or_default());
        if title.is_empty() { "A service".to_owned() } else { title }
    }

    /// Derives a module name from the title.
    pub fn name(&self) -> String {
        let title = self.title().to_lowercase();
        let words = title.split_whitespace().filter(|word| !matches!(*word, "api" | "rest" | "the" | "cloud"));
        name::snake(&words.collect::<Vec<_>>().join(" "), name::MODULE_CHARS)
    }

    /// Returns all operations in file order, each with the name of its tool.
    pub fn operations(&self) -> Vec<ApiOperation<'_>> {
        operation::all(&self.document)
    }

    /// Generates a module file with a tool per operation.
    pub fn module(&self, name: &str, chosen: &[&ApiOperation<'_>]) -> String {
        let schemas = SchemaResolver::new(&self.document);
        let mut pagination_styles = PaginationStyles::default();
        let tools: Vec<ToolDraft> =
            chosen.iter().map(|operation| tool::make(operation, schemas, &mut pagination_styles)).collect();
        let shared = shared_headers(&tools);
        let mut text = self.head(name);
        if !shared.is_empty() {
            let _ = writeln!(text, "headers: {}", yaml::flow(&Value::Object(shared.clone())));
        }
        if !pagination_styles.named().is_empty() {
            text.push_str("pages: # guessed\n");
            for (way, page) in pagination_styles.named() {
                let _ = writeln!(text, "  {way}: {}", yaml::flow(page));
            }
        }
        text.push_str("tools:\n");
        for made in &tools {
            made.write(&shared, &mut text);
        }
        text
    }

    /// Writes everything before the tools.
    fn head(&self, name: &str) -> String {
        let (base, base_is_known) = self.base();
        let info = &self.document["info"];
        let mut text = format!(
            "# Made by `hikite module import-openapi` from \u{201c}{}\u{201d} {}. Look it through before you use it:\n\
             # everything marked `guessed` is a guess by names and methods. What to look at first:\n\
             # - names and descriptions: models choose by them; make them short and plain\n\
             # - risk: `read` may be run without asking anybody, `destructive` cannot be undone\n\
             # - out: the columns that a model is shown instead of the whole answer\n",
            self.title(),
            single(info["version"].as_str().unwrap_or_default()),
        );
        for scheme in self.security() {
            let _ = writeln!(text, "# {scheme}");
        }
        text.push_str("# yaml-language-server: $schema=./module.schema.json\n");
        let description = line(info["description"].as_str().unwrap_or_default());
        let description = if description.is_empty() { self.title() } else { description };
        let _ = writeln!(text, "module: {name}\ntitle: {}", yaml::word(&self.title()));
        let _ = writeln!(text, "description: {}", yaml::word(&description));
        let version = single(info["version"].as_str().unwrap_or_default());
        if !version.is_empty() {
            let _ = writeln!(text, "api_version: {}", yaml::quoted(&version));
        }
        if let Some(docs) = self.document["externalDocs"]["url"].as_str() {
            let _ = writeln!(text, "docs: {}", yaml::quoted(&single(docs)));
        }
        let _ = writeln!(text, "provider: {name}");
        let mark = if base_is_known { "" } else { " # guessed: the description does not say where the service is" };
        let _ = writeln!(text, "base: {}{mark}", yaml::quoted(&base));
        text
    }

    /// Returns the first server URL with default variables, and whether it is absolute.
    fn base(&self) -> (String, bool) {
        let server = &self.document["servers"][0];
        let mut url = single(server["url"].as_str().unwrap_or_default());
        for (variable, rule) in server["variables"].as_object().into_iter().flatten() {
            let value = rule["default"].as_str().or_else(|| rule["enum"][0].as_str()).unwrap_or(variable);
            url = url.replace(&format!("{{{variable}}}"), value);
        }
        let url = url.trim_end_matches('/').replace(['{', '}'], "");
        if url.starts_with("https://") || url.starts_with("http://") {
            return (url, true);
        }
        let path = if url.starts_with('/') { url.as_str() } else { "" };
        (format!("{NOWHERE}{path}"), false)
    }

    /// Describes the security schemes.
    fn security(&self) -> Vec<String> {
        let schemes = self.document["components"]["securitySchemes"].as_object();
        let told = |(name, scheme): (&String, &Value)| {
            let kind = scheme["type"].as_str().unwrap_or_default();
            let how = match (kind, scheme["scheme"].as_str().unwrap_or_default()) {
                ("http", "basic") => "sent as `Basic` where the provider has an `email` beside its token",
                ("http" | "oauth2" | "openIdConnect", _) => "sent as `Authorization: Bearer TOKEN`",
                _ => "hikite sends `Authorization` alone; this one needs something else",
            };
            single(&format!("security: {name} ({kind}): {how}"))
        };
        schemes.into_iter().flatten().map(told).collect()
    }
}

/// Returns the headers that all tools send with the same value.
fn shared_headers(tools: &[ToolDraft]) -> Map<String, Value> {
    let Some(first) = tools.first() else { return Map::new() };
    let everywhere = |(name, value): &(&String, &Value)| tools.iter().all(|made| made.fixed.get(*name) == Some(*value));
    first.fixed.iter().filter(everywhere).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn not_json(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(_) => String::new(),
        Err(error) => format!("it is no JSON: {error}"),
    }
}
