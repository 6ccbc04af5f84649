//! First steps: connecting clients, checking the connection, and importing their configs.

use askama::Template;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::Refused;
use crate::form::Form;
use crate::page::{Answer, go, show as page, with_status};
use crate::seat::Seat;
use crate::snippet::{Snippet, snippets};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    name: String,
    kind: String,
    action: String,
    before: Value,
    after: Value,
    command: Option<String>,
    message: Option<String>,
}

impl Entry {
    fn told(value: &Value) -> String {
        serde_json::to_string_pretty(value).unwrap_or_default()
    }

    fn what_was(&self) -> String {
        Self::told(&self.before)
    }

    fn what_will_be(&self) -> String {
        Self::told(&self.after)
    }

    fn tone(&self) -> &'static str {
        match &*self.action {
            "add" | "change" => "good",
            "refused" => "alarm",
            _ => "",
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Imported {
    entries: Vec<Entry>,
    applied: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Sessions {
    sessions: Vec<Value>,
}

#[derive(Template)]
#[template(path = "start.html")]
struct Start<'a> {
    seat: &'a Seat,
    snippets: Vec<Snippet>,
    connected: Vec<String>,
    config: String,
    imported: Option<Imported>,
    refused: Option<Refused>,
}

impl Start<'_> {
    fn can_apply(&self) -> bool {
        let new = |entry: &Entry| entry.kind != "stdio" && matches!(&*entry.action, "add" | "change");
        self.imported.as_ref().is_some_and(|imported| imported.entries.iter().any(new))
    }
}

pub(crate) async fn show(seat: Seat) -> Answer {
    let start = whole(&seat, "").await;
    page(&start)
}

/// Previews an import, or applies it.
pub(crate) async fn import(Form { seat, fields }: Form) -> Answer {
    let config = fields.find("config").unwrap_or_default();
    let apply = fields.text("deed") == "apply";
    let outcome = seat.post("/v1/upstreams/import", &json!({ "config": config, "apply": apply })).await;
    let mut start = whole(&seat, config).await;
    let mut status = StatusCode::OK;
    match outcome.map(|answer| Imported::deserialize(answer).unwrap_or_default()) {
        Ok(imported) if apply && !imported.applied.is_empty() => return go("/ui/modules?done=imported"),
        Ok(imported) => start.imported = Some(imported),
        Err(refused) => {
            status = refused.status;
            start.refused = Some(refused);
        }
    }
    Ok(with_status(status, &start))
}

async fn whole<'a>(seat: &'a Seat, config: &str) -> Start<'a> {
    let Sessions { sessions } = seat.get_or_default("/v1/sessions").await;
    let name = |session: &Value| {
        let client = session.get("client")?;
        client.as_str().or_else(|| client.get("name")?.as_str()).map(str::to_owned)
    };
    let mut connected: Vec<String> = sessions.iter().filter_map(name).collect();
    connected.sort();
    connected.dedup();
    Start {
        seat,
        snippets: snippets(&seat.visitor.base),
        connected,
        config: config.to_owned(),
        imported: None,
        refused: None,
    }
}
