//! First steps: connecting clients, checking the connection, and importing their configs.

use askama::Template;
use hikite_api::{ImportAnswer, ImportEntry, ImportRequest, Session, Sessions};
use hikite_core::json::Raw;
use http::StatusCode;

use crate::api::{ApiError, read};
use crate::context::PageContext;
use crate::form::SubmittedForm;
use crate::page::{PageResult, redirect, show as page, with_status};
use crate::snippet::{Snippet, snippets};

/// An entry of an import as text.
trait ImportText {
    fn before_text(&self) -> String;
    fn after_text(&self) -> String;
    fn tone(&self) -> &'static str;
}

fn told(value: Option<&Raw>) -> String {
    serde_json::to_string_pretty(&value.map(Raw::value)).unwrap_or_default()
}

impl ImportText for ImportEntry {
    fn before_text(&self) -> String {
        told(self.before.as_ref())
    }

    fn after_text(&self) -> String {
        told(self.after.as_ref())
    }

    fn tone(&self) -> &'static str {
        match &*self.action {
            "add" | "change" => "good",
            "refused" => "alarm",
            _ => "",
        }
    }
}

#[derive(Template)]
#[template(path = "start.html")]
struct StartPage<'a> {
    context: &'a PageContext,
    snippets: Vec<Snippet>,
    connected: Vec<String>,
    config: String,
    imported: Option<ImportAnswer>,
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
    let request = ImportRequest { config: Raw::from(config), apply: Some(apply) };
    let outcome = context.post("/v1/upstreams/import", &request).await.and_then(read::<ImportAnswer>);
    let mut start = start_page(&context, config).await;
    let mut status = StatusCode::OK;
    match outcome {
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
    let Sessions { sessions } = context.get_or_default("/v1/sessions").await;
    let name = |session: &Session| session.client.object()?.text("name");
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
