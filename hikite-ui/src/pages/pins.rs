//! Pinned tool definitions: changes since the approval, side by side, to approve or block.

use askama::Template;
use axum::extract::Path;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::part;
use crate::form::Form;
use crate::number;
use crate::page::{Answer, OrTrouble, go, show as page};
use crate::seat::Seat;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Pin {
    key: String,
    state: String,
    policy: String,
    /// Hash of the current definition.
    hash: Option<String>,
    decided_at: Option<String>,
    diff: Vec<Change>,
    before: Value,
    after: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Change {
    path: String,
    before: Value,
    after: Value,
}

/// Formats a string as is, other values as JSON.
fn told(value: &Value) -> String {
    value.as_str().map_or_else(|| serde_json::to_string_pretty(value).unwrap_or_default(), str::to_owned)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pins {
    pins: Vec<Pin>,
}

#[derive(Template)]
#[template(path = "pins.html")]
struct List<'a> {
    seat: &'a Seat,
    pins: Vec<Pin>,
    state: String,
    /// Number of pins that are not shown.
    more: usize,
}

/// Rows per page.
const ROWS: usize = 200;

pub(crate) async fn list(seat: Seat) -> Answer {
    let state = seat.asked("state").filter(|state| ["ok", "changed", "new", "blocked"].contains(state));
    let path = state.map_or_else(|| "/v1/pins".to_owned(), |state| format!("/v1/pins?state={state}"));
    let Pins { mut pins } = seat.get(&path).await.or_trouble(&seat)?;
    // Pins that need a decision come first.
    pins.sort_by_key(|pin| pin.state == "ok");
    let more = pins.len().saturating_sub(ROWS);
    pins.truncate(ROWS);
    page(&List { seat: &seat, pins, state: state.unwrap_or_default().to_owned(), more })
}

#[derive(Template)]
#[template(path = "pin.html")]
struct One<'a> {
    seat: &'a Seat,
    pin: Pin,
}

pub(crate) async fn show(seat: Seat, Path(key): Path<String>) -> Answer {
    let pin: Pin = seat.get(&format!("/v1/pins/{}", part(&key))).await.or_trouble(&seat)?;
    page(&One { seat: &seat, pin })
}

pub(crate) async fn act(Path((key, deed)): Path<(String, String)>, Form { seat, fields }: Form) -> Answer {
    let done = match &*deed {
        "approve" => "approved",
        "block" => "blocked",
        _ => return go("/ui/pins"),
    };
    // Only the definition that was shown can be approved.
    let body = if deed == "approve" { json!({ "hash": fields.text("hash") }) } else { json!({}) };
    seat.post(&format!("/v1/pins/{}/{deed}", part(&key)), &body).await.or_trouble(&seat)?;
    go(&format!("/ui/pins?done={done}"))
}
