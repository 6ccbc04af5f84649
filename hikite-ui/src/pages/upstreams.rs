//! Adding and changing MCP servers over HTTP. Local programs can only be configured in the config file.

use askama::Template;
use axum::extract::Path;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::api::{ApiError, part};
use crate::context::PageContext;
use crate::form::{SubmittedFields, SubmittedForm};
use crate::page::{OrErrorPage, PageResult, redirect, show as page, with_status};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UpstreamInfo {
    entry: UpstreamEntry,
}

/// An upstream as in the config file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UpstreamEntry {
    description: Option<String>,
    url: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Values are masked.
    headers: Map<String, Value>,
    timeout: Value,
}

#[derive(Template)]
#[template(path = "upstream.html")]
struct UpstreamPage<'a> {
    context: &'a PageContext,
    is_new: bool,
    name: String,
    url: String,
    kind: String,
    description: String,
    headers: String,
    timeout: String,
    refused: Option<ApiError>,
}

pub(crate) async fn add(context: PageContext) -> PageResult {
    page(&form(&context, &SubmittedFields::default(), true, None))
}

pub(crate) async fn edit(context: PageContext, Path(name): Path<String>) -> PageResult {
    let path = format!("/v1/upstreams/{}", part(&name));
    let UpstreamInfo { entry: upstream } = context.get(&path).await.or_error_page(&context)?;
    let headers =
        upstream.headers.iter().map(|(name, value)| format!("{name}: {}", value.as_str().unwrap_or_default()));
    let timeout = match &upstream.timeout {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    page(&UpstreamPage {
        context: &context,
        is_new: false,
        name,
        url: upstream.url.unwrap_or_default(),
        kind: upstream.kind.unwrap_or_default(),
        description: upstream.description.unwrap_or_default(),
        headers: headers.collect::<Vec<_>>().join("\n"),
        timeout,
        refused: None,
    })
}

pub(crate) async fn save(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let name = fields.text("name");
    let path = format!("/v1/upstreams/{}", part(name));
    match context.send(Method::PUT, &path, Some(&definition(&fields))).await {
        Ok(_) => redirect(&format!("/ui/modules/{}?done=saved", part(name))),
        Err(refused) => {
            let status = refused.status;
            let is_new = fields.is_checked("new");
            Ok(with_status(status, &form(&context, &fields, is_new, Some(refused))))
        }
    }
}

pub(crate) async fn remove(Path(name): Path<String>, SubmittedForm { context, .. }: SubmittedForm) -> PageResult {
    context.send(Method::DELETE, &format!("/v1/upstreams/{}", part(&name)), None).await.or_error_page(&context)?;
    redirect("/ui/modules?done=removed")
}

fn form<'a>(
    context: &'a PageContext,
    fields: &SubmittedFields,
    is_new: bool,
    refused: Option<ApiError>,
) -> UpstreamPage<'a> {
    let text = |name| fields.text(name).to_owned();
    UpstreamPage {
        context,
        is_new,
        name: text("name"),
        url: text("url"),
        kind: text("type"),
        description: text("description"),
        headers: text("headers"),
        timeout: text("timeout"),
        refused,
    }
}

/// Builds the API request. Each header line has a name and a value; empty fields are left out.
fn definition(fields: &SubmittedFields) -> Value {
    let mut definition = json!({ "url": fields.text("url") });
    for name in ["type", "description", "timeout"] {
        if let Some(text) = fields.some(name) {
            definition[name] = Value::from(text);
        }
    }
    let headers: Map<String, Value> = fields
        .text("headers")
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), Value::from(value.trim())))
        .collect();
    if !headers.is_empty() {
        definition["headers"] = Value::Object(headers);
    }
    definition
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::tests::filled;

    #[test]
    fn a_form_becomes_a_definition_and_what_is_empty_is_left_out() {
        let fields = filled(&[("url", " https://a.example/mcp "), ("type", ""), ("headers", "X-Key: a:b\nnonsense\n")]);
        assert_eq!(definition(&fields), json!({ "url": "https://a.example/mcp", "headers": { "X-Key": "a:b" } }));
    }
}
