//! The batch page: checks and draws a batch before it runs, then shows every task while it runs.

use askama::Template;
use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::{ApiError, ApiRequest};
use crate::context::PageContext;
use crate::form::{SubmittedFields, SubmittedForm};
use crate::graph::{self, GraphNode};
use crate::page::{PageResult, show as page, with_status};

const EXAMPLE: &str = r#"{"id": "a", "module": "…", "tool": "…", "params": {}}
{"id": "b", "module": "…", "tool": "…", "params": {"of": "${a.id}"}, "output": true}"#;

#[derive(Template)]
#[template(path = "batch.html")]
struct BatchPage<'a> {
    context: &'a PageContext,
    commands: String,
    drawing: String,
    nodes: Vec<GraphNode>,
    answer: String,
    refused: Option<ApiError>,
}

impl<'a> BatchPage<'a> {
    fn new(context: &'a PageContext, commands: &str) -> Self {
        Self {
            context,
            commands: commands.to_owned(),
            drawing: String::new(),
            nodes: Vec::new(),
            answer: String::new(),
            refused: None,
        }
    }
}

pub(crate) async fn show(context: PageContext) -> PageResult {
    page(&BatchPage::new(&context, ""))
}

/// Checks and draws the batch; also runs it for browsers without scripts.
pub(crate) async fn check(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let commands = fields.find("commands").unwrap_or_default();
    let mut shown = BatchPage::new(&context, commands);
    let preview = match context.post("/v1/batch", &batch_request(&fields, true)).await {
        Ok(answer) => answer.get("result").cloned().unwrap_or_default(),
        Err(refused) => {
            let status = refused.status;
            shown.refused = Some(refused);
            return Ok(with_status(status, &shown));
        }
    };
    shown.nodes = nodes(&preview);
    let mut status = StatusCode::OK;
    if fields.text("mode") == "run" {
        match context.post("/v1/batch", &batch_request(&fields, false)).await {
            Ok(answer) => {
                let result = answer.get("result").cloned().unwrap_or_default();
                set_statuses(&mut shown.nodes, &result);
                shown.answer = serde_json::to_string_pretty(&result).unwrap_or_default();
            }
            Err(refused) => {
                status = refused.status;
                shown.refused = Some(refused);
            }
        }
    }
    shown.drawing = graph::draw(context.t("Task graph"), &graph::waves(&preview), &shown.nodes);
    Ok(with_status(status, &shown))
}

/// Runs the batch and streams the events of the API.
pub(crate) async fn run(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let body = batch_request(&fields, false);
    let parameter =
        ApiRequest { method: Method::POST, path: "/v1/batch", body: Some(&body), accept: "text/event-stream" };
    let answer = context.api.ask(&context.visitor, parameter).await;
    let kind = answer.headers().get(CONTENT_TYPE).cloned();
    let status = answer.status();
    let mut response = Response::new(Body::new(answer.into_body()));
    *response.status_mut() = status;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(CONTENT_TYPE, kind.unwrap_or_else(|| HeaderValue::from_static("text/plain")));
    Ok(response)
}

/// Builds the request: a JSON list, or else lines.
fn batch_request(fields: &SubmittedFields, dry_run: bool) -> Value {
    let text = fields.find("commands").unwrap_or_default();
    let list = serde_json::from_str::<Value>(text).ok().filter(Value::is_array);
    json!({ "commands": list.unwrap_or_else(|| Value::from(text)), "dry_run": dry_run })
}

fn nodes(preview: &Value) -> Vec<GraphNode> {
    let tasks = preview.get("tasks").and_then(Value::as_array).into_iter().flatten();
    let text = |task: &Value, name: &str| task.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    tasks
        .map(|task| GraphNode {
            id: text(task, "id"),
            tool: text(task, "tool"),
            after: task
                .get("after")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|id| Some(id.as_str()?.to_owned()))
                .collect(),
            status: String::new(),
        })
        .collect()
}

/// Sets the final status of each task.
fn set_statuses(nodes: &mut [GraphNode], report: &Value) {
    let tasks: Vec<&Value> = report.get("tasks").and_then(Value::as_array).into_iter().flatten().collect();
    for node in nodes {
        let task = tasks.iter().find(|task| task.get("id").and_then(Value::as_str) == Some(&node.id));
        let status = task.and_then(|task| task.get("status")?.as_str());
        node.status = status.unwrap_or_default().to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::tests::filled;

    #[test]
    fn a_list_is_sent_as_one_and_lines_as_they_are() {
        assert_eq!(
            batch_request(&filled(&[("commands", "[{\"id\":\"a\"}]")]), true)["commands"],
            json!([{ "id": "a" }])
        );
        assert_eq!(
            batch_request(&filled(&[("commands", "{\"id\":\"a\"}\n")]), false)["commands"],
            json!("{\"id\":\"a\"}\n")
        );
    }

    #[test]
    fn tasks_know_how_they_ended() {
        let mut nodes = nodes(&json!({ "tasks": [{ "id": "a", "tool": "m:t", "after": ["z"] }] }));
        set_statuses(&mut nodes, &json!({ "tasks": [{ "id": "a", "status": "ok" }] }));
        assert_eq!((&*nodes[0].status, &nodes[0].after), ("ok", &vec!["z".to_owned()]));
    }
}
