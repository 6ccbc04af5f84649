//! The Search API: ranks the tools in the request. It lets one hikite act as the search provider of another. The
//! caller's own tools are not searched.

use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use hikite_api::catalog::{CONTEXT_CHARS, QUERIES_MAX, RESULTS_DEFAULT, RESULTS_MAX, TOOLS_MAX};
use hikite_api::tool::QUERY_CHARS;
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::search::provider::{AvailableTool, RankedTool};
use http::{HeaderMap, Uri};
use serde::Deserialize;

use super::form::RequestForm;
use super::query;
use super::{RestResult, body, ok};
use crate::app::App;
use crate::request_context::RequestContext;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CandidateTool {
    tool_key: String,
    tool_name: String,
    server_name: String,
    #[serde(default)]
    description: Option<String>,
}

pub(crate) async fn search(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let members = body::read(&app, &headers, body).await?;
    let mut form = RequestForm::new(members, &["query", "context", "tools", "maxResults"]);
    let queries = queries(&mut form);
    let context = form.text("context", CONTEXT_CHARS);
    let limit = form.whole("maxResults", 1..=RESULTS_MAX).unwrap_or(RESULTS_DEFAULT);
    let tools = tools(&mut form);
    form.finish()?;
    let names: Vec<(ToolKey, Raw)> = tools.iter().map(|(tool, shown)| (tool.key.clone(), shown.clone())).collect();
    let candidates = tools.into_iter().map(|(tool, _)| tool).collect();
    let ranking = app
        .gateway
        .discovery()
        .search_candidates((&caller, &origin), queries, context, candidates, limit as usize)
        .await?;
    let results: Vec<Raw> = ranking.tools.iter().filter_map(|chosen| result(&names, chosen)).collect();
    let mut meta = Object::default()
        .with("provider", ranking.provider)
        .with("indexed", Raw::of(&names.len()))
        .with("total", Raw::of(&names.len()));
    if ranking.unencoded > 0 {
        meta.set("unencoded", Raw::of(&ranking.unencoded));
    }
    let body = Object::default()
        .with("results", Raw::array(&results))
        .with("_meta", Object::default().with("hikite/search", meta));
    Ok(ok(&body.raw()))
}

/// Returns the tool as sent, with its relevance and explanation.
fn result(names: &[(ToolKey, Raw)], chosen: &RankedTool) -> Option<Raw> {
    let (_, shown) = names.iter().find(|(key, _)| *key == chosen.key)?;
    let relevance = (chosen.relevance * 1000.0).round() / 1000.0;
    let mut result = shown.object()?.with("relevance", Raw::of(&relevance));
    if let Some(explanation) = &chosen.explanation {
        result.set("explanation", explanation.as_str());
    }
    Some(result.raw())
}

fn queries(form: &mut RequestForm) -> Vec<String> {
    let Some(raw) = form.raw("query") else {
        form.fault("query", "`query` is required: a list of strings.");
        return Vec::new();
    };
    let queries = match raw.text() {
        Some(one) => vec![one],
        None => form.texts("query").unwrap_or_default(),
    };
    let is_long = |query: &String| query.chars().count() > QUERY_CHARS;
    if queries.len() > QUERIES_MAX || queries.iter().any(is_long) {
        form.fault("query", format!("`query` may have at most {QUERIES_MAX} strings of {QUERY_CHARS} characters."));
    } else if queries.iter().all(|query| query.trim().is_empty()) {
        form.fault("query", "`query` must say what to search for.");
    }
    queries
}

/// Parses the tools; of two with the same key the first one counts.
fn tools(form: &mut RequestForm) -> Vec<(AvailableTool, Raw)> {
    let items = form.raw("tools").and_then(|raw| raw.items());
    let Some(items) = items else {
        form.fault("tools", "`tools` must be a list of tools.");
        return Vec::new();
    };
    if items.len() > TOOLS_MAX {
        form.fault("tools", format!("`tools` has more than {TOOLS_MAX} tools."));
        return Vec::new();
    }
    let mut tools = Vec::with_capacity(items.len());
    let mut seen: HashSet<ToolKey> = HashSet::with_capacity(items.len());
    for (at, item) in items.into_iter().enumerate() {
        let Ok(tool) = item.decode::<CandidateTool>() else {
            form.fault("tools", format!("`tools[{at}]` must have the strings `toolKey`, `toolName` and `serverName`."));
            return Vec::new();
        };
        let key = match tool.tool_key.split_once(':') {
            Some((module, name)) => ToolKey::new(module, name),
            None => ToolKey::new(tool.server_name.as_str(), tool.tool_key.as_str()),
        };
        if !seen.insert(key.clone()) {
            continue;
        }
        let mut shown = Object::default()
            .with("toolKey", tool.tool_key.as_str())
            .with("toolName", tool.tool_name.as_str())
            .with("serverName", tool.server_name.as_str());
        if let Some(description) = &tool.description {
            shown.set("description", description.as_str());
        }
        let available = AvailableTool {
            key,
            name: tool.tool_name.into(),
            module: tool.server_name.into(),
            description: tool.description.unwrap_or_default(),
        };
        tools.push((available, shown.raw()));
    }
    tools
}
