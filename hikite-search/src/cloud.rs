//! Client of a search service that implements `POST /catalog/search`, such as another hikite. Each request carries the
//! tools along with the query.

use std::collections::HashMap;

use hikite_core::json::Raw;
use hikite_core::search::provider::{Available, Chosen, Request, SearchProvider, Trouble};
use hikite_core::source::BoxFuture;
use hikite_egress::Client;
use serde::{Deserialize, Serialize};

use crate::post::{BadPlace, Place, Post};

#[derive(Debug)]
pub struct Cloud(Post);

/// Maximum length of a hit's explanation, in characters.
const EXPLANATION_CHARS: usize = 500;

impl Cloud {
    pub fn new(client: Client, place: &Place) -> Result<Self, BadPlace> {
        Post::new(client, place, "the cloud").map(Self)
    }
}

impl SearchProvider for Cloud {
    fn search<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Vec<Chosen>, Trouble>> {
        Box::pin(async move {
            let body = Question::of(&request);
            let body = serde_json::to_vec(&body).map_err(|_| Trouble::Unreadable)?;
            self.0.ask(body, |answer| read(&answer, request.tools, request.limit)).await
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Question<'a> {
    query: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a str>,
    tools: Vec<Sent<'a>>,
    max_results: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent<'a> {
    tool_key: String,
    tool_name: &'a str,
    server_name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
}

impl<'a> Question<'a> {
    fn of(request: &Request<'a>) -> Self {
        let tools = request.tools.iter().map(|tool| Sent {
            tool_key: tool.key.to_string(),
            tool_name: &tool.name,
            server_name: &tool.module,
            description: &tool.description,
        });
        Self {
            query: request.queries,
            context: request.context,
            tools: tools.collect(),
            max_results: request.limit,
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Found>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    tool_key: String,
    relevance: f64,
    explanation: Option<String>,
}

/// Parses the response. Hits for unknown tools and repeated hits are dropped; a response with no other hits is invalid.
fn read(answer: &Raw, tools: &[Available], limit: usize) -> Option<Vec<Chosen>> {
    let answer: Answer = answer.decode().ok()?;
    let mut sent: HashMap<String, &Available> =
        tools.iter().map(|tool| (tool.key.to_string(), tool)).collect();
    let named = !answer.results.is_empty();
    let known = answer.results.into_iter().filter_map(|found| {
        let tool = sent.remove(&found.tool_key)?;
        let explanation = found.explanation.map(|text| text.chars().take(EXPLANATION_CHARS).collect());
        Some(Chosen { key: tool.key.clone(), relevance: found.relevance.clamp(0.0, 1.0), explanation })
    });
    let mut chosen: Vec<Chosen> = known.collect();
    chosen.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    chosen.truncate(limit);
    (!named || !chosen.is_empty()).then_some(chosen)
}
