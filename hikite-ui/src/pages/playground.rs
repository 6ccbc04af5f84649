//! Searching as a model does, with how sure each hit is and why; from there to a form of the tool.

use askama::Template;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::Refused;
use crate::number;
use crate::page::{Answer, show as page};
use crate::seat::Seat;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Hit {
    key: String,
    module: String,
    name: String,
    title: Option<String>,
    description: String,
    score: Option<f64>,
    relevance: Option<Value>,
    reason: Value,
    reasons: Vec<String>,
}

impl Hit {
    fn why(&self) -> Vec<String> {
        match &self.reason {
            Value::String(reason) => vec![reason.clone()],
            Value::Array(reasons) => reasons.iter().map(|reason| reason.as_str().map_or_else(|| reason.to_string(), str::to_owned)).collect(),
            _ => self.reasons.clone(),
        }
    }

    fn sure(&self) -> String {
        let relevance = self.relevance.as_ref().and_then(Value::as_str).unwrap_or_default();
        match self.score {
            Some(score) => format!("{score:.2} {relevance}"),
            None => relevance.to_owned(),
        }
    }
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
        match seat.post("/v1/tools/search", &json!({ "query": query, "limit": 20, "explain": true })).await {
            Ok(answer) => found = Found::deserialize(answer).ok(),
            Err(why) => refused = Some(why),
        }
        ms = format!("{:.1}", began.elapsed().as_secs_f64() * 1000.0);
    }
    page(&Playground { seat: &seat, found, ms, refused })
}
