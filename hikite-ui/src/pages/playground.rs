//! Searching as a model does, with relevance and explanation of each hit and a link to try the tool.

use askama::Template;
use serde::Deserialize;
use serde_json::json;

use crate::api::Refused;
use crate::number;
use crate::page::{Answer, show as page};
use crate::seat::Seat;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Hit {
    key: String,
    description: String,
    /// From 0 to 1.
    relevance: Option<f64>,
    explanation: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Found {
    results: Vec<Hit>,
    total: u64,
}

#[derive(Template)]
#[template(path = "playground.html")]
struct Playground<'a> {
    seat: &'a Seat,
    found: Option<Found>,
    ms: String,
    refused: Option<Refused>,
}

pub(crate) async fn show(seat: Seat) -> Answer {
    let (mut found, mut refused, mut ms) = (None, None, String::new());
    if let Some(query) = seat.asked("q") {
        let began = std::time::Instant::now();
        match seat.post("/v1/tools/search", &json!({ "query": query, "limit": 20 })).await {
            Ok(answer) => found = Found::deserialize(answer).ok(),
            Err(why) => refused = Some(why),
        }
        ms = format!("{:.1}", began.elapsed().as_secs_f64() * 1000.0);
    }
    page(&Playground { seat: &seat, found, ms, refused })
}
