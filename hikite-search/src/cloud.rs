//! Client of a search service that implements `POST /catalog/search`, such as another hikite. Each request carries the
//! tools along with the query.

use std::collections::HashMap;

use hikite_core::json::Raw;
use hikite_core::search::provider::{AvailableTool, ProviderFailure, ProviderRequest, RankedTool, SearchProvider};
use hikite_core::source::BoxFuture;
use hikite_egress::EgressClient;
use serde::{Deserialize, Serialize};

use crate::endpoint::{EndpointClient, InvalidEndpoint, SearchEndpoint};

#[derive(Debug)]
pub struct CloudSearchClient(EndpointClient);

/// Maximum length of a hit's explanation, in characters.
const EXPLANATION_CHARS_MAX: usize = 500;

impl CloudSearchClient {
    pub fn new(client: EgressClient, endpoint: &SearchEndpoint) -> Result<Self, InvalidEndpoint> {
        EndpointClient::new(client, endpoint, "the cloud service").map(Self)
    }
}

impl SearchProvider for CloudSearchClient {
    fn search<'a>(&'a self, request: ProviderRequest<'a>) -> BoxFuture<'a, Result<Vec<RankedTool>, ProviderFailure>> {
        Box::pin(async move {
            let body = CloudSearchRequest::of(&request);
            let body = serde_json::to_vec(&body).map_err(|_| ProviderFailure::Unreadable)?;
            self.0.post_json(body, |response| read(&response, request.tools, request.limit)).await
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CloudSearchRequest<'a> {
    query: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a str>,
    tools: Vec<CloudDocument<'a>>,
    max_results: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CloudDocument<'a> {
    tool_key: String,
    tool_name: &'a str,
    server_name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
}

impl<'a> CloudSearchRequest<'a> {
    fn of(request: &ProviderRequest<'a>) -> Self {
        let tools = request.tools.iter().map(|tool| CloudDocument {
            tool_key: tool.key.to_string(),
            tool_name: &tool.name,
            server_name: &tool.module,
            description: &tool.description,
        });
        Self { query: request.queries, context: request.context, tools: tools.collect(), max_results: request.limit }
    }
}

#[derive(Deserialize)]
struct CloudSearchResponse {
    results: Vec<CloudHit>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CloudHit {
    tool_key: String,
    relevance: f64,
    explanation: Option<String>,
}

/// Parses the response. Hits for unknown tools and repeated hits are dropped; a response with no other hits is invalid.
fn read(response: &Raw, tools: &[AvailableTool], limit: usize) -> Option<Vec<RankedTool>> {
    let response: CloudSearchResponse = response.decode().ok()?;
    let mut sent: HashMap<String, &AvailableTool> = tools.iter().map(|tool| (tool.key.to_string(), tool)).collect();
    let named = !response.results.is_empty();
    let known = response.results.into_iter().filter_map(|found| {
        let tool = sent.remove(&found.tool_key)?;
        let explanation = found.explanation.map(|text| text.chars().take(EXPLANATION_CHARS_MAX).collect());
        Some(RankedTool { key: tool.key.clone(), relevance: found.relevance.clamp(0.0, 1.0), explanation })
    });
    let mut chosen: Vec<RankedTool> = known.collect();
    chosen.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    chosen.truncate(limit);
    (!named || !chosen.is_empty()).then_some(chosen)
}
