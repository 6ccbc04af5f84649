//! First steps: connecting clients, checking the connection, and importing their configs.

use askama::Template;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::ApiError;
use crate::context::PageContext;
use crate::form::SubmittedForm;
use crate::page::{PageResult, redirect, show as page, with_status};
use crate::snippet::{Snippet, snippets};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ImportEntry {
    name: String,
    kind: String,
    action: String,
    before: Value,
    after: Value,
    command: Option<String>,
    message: Option<String>,
}

impl ImportEntry {
    fn told(value: &Value) -> String {
        serde_json::to_string_pretty(value).unwrap_or_default()
    }

    fn before_text(&self) -> String {
        Self::told(&self.before)
    }

    fn after_text(&self) -> String {
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
struct ImportOutcome {
    entries: Vec<ImportEntry>,
    applied: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SessionList {
    sessions: Vec<Value>,
}

#[derive(Template)]
#[template(path = "start.html")]
struct StartPage<'a> {
    context: &'a PageContext,
    snippets: Vec<Snippet>,
    connected: Vec<String>,
    config: String,
    imported: Option<ImportOutcome>,
    refused: Option<ApiError>,
}

impl StartPage<'_> {
    fn can_apply(&self) -> bool {
        let new = |entry: &ImportEntry| entry.kind != "stdio" && matches!(&*entry.action, "add" | "change");
        self.imported.as_ref().is_some_and(|imported| imported.entries.iter().any(new))
    }
}

pub(crate) async fn show(context: PageContext) -> PageResult {
    let start = start_page(&context, "").await;
    page(&start)
}

/// Previews an import, or applies it.
pub(crate) async fn import(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let config = fields.find("config").unwrap_or_default();
    let apply = fields.text("mode") == "apply";
    let outcome = context.post("/v1/upstreams/import", &json!({ "config": config, "apply": apply })).await;
    let mut start = start_page(&context, config).await;
    let mut status = StatusCode::OK;
    match outcome.map(|answer| ImportOutcome::deserialize(answer).unwrap_or_default()) {
        Ok(imported) if apply && !imported.applied.is_empty() => {
            return redirect("/ui/modules?done=imported");
        }
        Ok(imported) => start.imported = Some(imported),
        Err(refused) => {
            status = refused.status;
            start.refused = Some(refused);
        }
    }
    Ok(with_status(status, &start))
}

async fn start_page<'a>(context: &'a PageContext, config: &str) -> StartPage<'a> {
    let SessionList { sessions } = context.get_or_default("/v1/sessions").await;
    let name = |session: &Value| {
        let client = session.get("client")?;
        client.as_str().or_else(|| client.get("name")?.as_str()).map(str::to_owned)
    };
    let mut connected: Vec<String> = sessions.iter().filter_map(name).collect();
    connected.sort();
    connected.dedup();
    StartPage {
        context,
        snippets: snippets(&context.visitor.base),
        connected,
        config: config.to_owned(),
        imported: None,
        refused: None,
    }
}
