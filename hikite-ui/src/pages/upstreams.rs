//! Adding and changing MCP servers over HTTP. Local programs can only be configured in the config file.

use askama::Template;
use axum::extract::Path;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::api::{Refused, part};
use crate::form::{Fields, Form};
use crate::page::{Answer, OrTrouble, go, show as page, with_status};
use crate::seat::Seat;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Upstream {
    entry: Entry,
}

/// An upstream as in the config file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
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
struct Edit<'a> {
    seat: &'a Seat,
    is_new: bool,
    name: String,
    url: String,
    kind: String,
    description: String,
    headers: String,
    timeout: String,
    refused: Option<Refused>,
}

pub(crate) async fn add(seat: Seat) -> Answer {
    page(&form(&seat, &Fields::default(), true, None))
}

pub(crate) async fn edit(seat: Seat, Path(name): Path<String>) -> Answer {
    let path = format!("/v1/upstreams/{}", part(&name));
    let Upstream { entry: upstream } = seat.get(&path).await.or_trouble(&seat)?;
    let headers = upstream
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.as_str().unwrap_or_default()));
    let timeout = match &upstream.timeout {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    page(&Edit {
        seat: &seat,
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

pub(crate) async fn save(Form { seat, fields }: Form) -> Answer {
    let name = fields.text("name");
    let path = format!("/v1/upstreams/{}", part(name));
    match seat.send(Method::PUT, &path, Some(&definition(&fields))).await {
        Ok(_) => go(&format!("/ui/modules/{}?done=saved", part(name))),
        Err(refused) => {
            let status = refused.status;
            let is_new = fields.is_checked("new");
            Ok(with_status(status, &form(&seat, &fields, is_new, Some(refused))))
        }
    }
}

pub(crate) async fn remove(Path(name): Path<String>, Form { seat, .. }: Form) -> Answer {
    seat.send(Method::DELETE, &format!("/v1/upstreams/{}", part(&name)), None).await.or_trouble(&seat)?;
    go("/ui/modules?done=removed")
}

fn form<'a>(seat: &'a Seat, fields: &Fields, is_new: bool, refused: Option<Refused>) -> Edit<'a> {
    let text = |name| fields.text(name).to_owned();
    Edit {
        seat,
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
fn definition(fields: &Fields) -> Value {
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
        let fields = filled(&[
            ("url", " https://a.example/mcp "),
            ("type", ""),
            ("headers", "X-Key: a:b\nnonsense\n"),
        ]);
        assert_eq!(
            definition(&fields),
            json!({ "url": "https://a.example/mcp", "headers": { "X-Key": "a:b" } })
        );
    }
}
