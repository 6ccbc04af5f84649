//! Pinned tool definitions: changes since the approval, side by side, to approve or block.

use askama::Template;
use axum::extract::Path;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::part;
use crate::context::PageContext;
use crate::form::SubmittedForm;
use crate::number;
use crate::page::{OrErrorPage, PageResult, redirect, show as page};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PinInfo {
    key: String,
    state: String,
    policy: String,
    /// Hash of the current definition.
    hash: Option<String>,
    decided_at: Option<String>,
    diff: Vec<PinChange>,
    before: Value,
    after: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PinChange {
    path: String,
    before: Value,
    after: Value,
}

/// Formats a string as is, other values as JSON.
fn formatted(value: &Value) -> String {
    value.as_str().map_or_else(|| serde_json::to_string_pretty(value).unwrap_or_default(), str::to_owned)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PinList {
    pins: Vec<PinInfo>,
}

#[derive(Template)]
#[template(path = "pins.html")]
struct PinsPage<'a> {
    context: &'a PageContext,
    pins: Vec<PinInfo>,
    state: String,
    /// Number of pins that are not shown.
    more: usize,
}

/// Rows per page.
const ROWS: usize = 200;

pub(crate) async fn list(context: PageContext) -> PageResult {
    let state = context.parameter("state").filter(|state| ["ok", "changed", "new", "blocked"].contains(state));
    let path = state.map_or_else(|| "/v1/pins".to_owned(), |state| format!("/v1/pins?state={state}"));
    let PinList { mut pins } = context.get(&path).await.or_error_page(&context)?;
    // Pins that need a decision come first.
    pins.sort_by_key(|pin| pin.state == "ok");
    let more = pins.len().saturating_sub(ROWS);
    pins.truncate(ROWS);
    page(&PinsPage { context: &context, pins, state: state.unwrap_or_default().to_owned(), more })
}

#[derive(Template)]
#[template(path = "pin.html")]
struct PinPage<'a> {
    context: &'a PageContext,
    pin: PinInfo,
}

pub(crate) async fn show(context: PageContext, Path(key): Path<String>) -> PageResult {
    let pin: PinInfo = context.get(&format!("/v1/pins/{}", part(&key))).await.or_error_page(&context)?;
    page(&PinPage { context: &context, pin })
}

pub(crate) async fn act(
    Path((key, action)): Path<(String, String)>,
    SubmittedForm { context, fields }: SubmittedForm,
) -> PageResult {
    let done = match &*action {
        "approve" => "approved",
        "block" => "blocked",
        _ => return redirect("/ui/pins"),
    };
    // Only the definition that was shown can be approved.
    let body = if action == "approve" { json!({ "hash": fields.text("hash") }) } else { json!({}) };
    context.post(&format!("/v1/pins/{}/{action}", part(&key)), &body).await.or_error_page(&context)?;
    redirect(&format!("/ui/pins?done={done}"))
}
