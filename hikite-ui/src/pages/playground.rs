//! Searching as a model does, with relevance and explanation of each hit and a link to try the tool.

use askama::Template;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::ApiError;
use crate::context::PageContext;
use crate::number;
use crate::page::{PageResult, show as page};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PlaygroundHit {
    key: String,
    description: String,
    /// From 0 to 1.
    relevance: Option<f64>,
    explanation: Option<String>,
    /// It fits poorly.
    weak: bool,
}

/// A tool that needs an account first.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PlaygroundNeed {
    module: String,
    tool: String,
    how: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SearchResults {
    results: Vec<PlaygroundHit>,
    total: u64,
    needs: Vec<PlaygroundNeed>,
    #[serde(rename = "_meta")]
    meta: Value,
}

impl SearchResults {
    fn fitting(&self) -> impl Iterator<Item = &PlaygroundHit> {
        self.results.iter().filter(|hit| !hit.weak)
    }

    fn weak(&self) -> Vec<&PlaygroundHit> {
        self.results.iter().filter(|hit| hit.weak).collect()
    }

    /// Returns the number of tools that cannot be found by meaning yet.
    fn unencoded(&self) -> u64 {
        self.meta["hikite/search"]["unencoded"].as_u64().unwrap_or(0)
    }
}

#[derive(Template)]
#[template(path = "playground.html")]
struct PlaygroundPage<'a> {
    context: &'a PageContext,
    found: Option<SearchResults>,
    ms: String,
    refused: Option<ApiError>,
}

pub(crate) async fn show(context: PageContext) -> PageResult {
    let (mut found, mut refused, mut ms) = (None, None, String::new());
    if let Some(query) = context.parameter("q") {
        let began = std::time::Instant::now();
        match context.post("/v1/tools/search", &json!({ "query": query, "limit": 20 })).await {
            Ok(answer) => found = SearchResults::deserialize(answer).ok(),
            Err(why) => refused = Some(why),
        }
        ms = format!("{:.1}", began.elapsed().as_secs_f64() * 1000.0);
    }
    page(&PlaygroundPage { context: &context, found, ms, refused })
}
