//! A server for the public conformance suite on the Rust SDK, of both eras at one address. What it offers is what the
//! suite asks for; all that is protocol is done by `rmcp`.
//!
//!     rmcp-server 8001

#![expect(deprecated, reason = "the suite also asks for what 2026-07-28 took away")]

mod offer;
mod questions;
mod rounds;

use std::process::ExitCode;
use std::sync::Arc;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, ErrorCode, ErrorData,
    GetPromptRequestParams, GetPromptResponse, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::broadcast;

/// Changes that subscriptions hear of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Tools,
    Prompts,
}

#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) changes: broadcast::Sender<Change>,
}

/// A result that is written as JSON. In 2026-07-28 each says that it is one; the SDK leaves that out for others.
pub(crate) fn result<T: DeserializeOwned>(mut value: Value) -> T {
    value["resultType"] = json!("complete");
    typed(value)
}

/// Converts JSON to the SDK's type.
pub(crate) fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("what is written here has the SDK's form")
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        typed(json!({
            "protocolVersion": "2025-11-25",
            "serverInfo": { "name": "rmcp-server", "version": "1" },
            "capabilities": {
                "tools": { "listChanged": true },
                "prompts": { "listChanged": true },
                "resources": { "subscribe": true, "listChanged": true },
                "logging": {},
                "completions": {},
            },
        }))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(result(json!({ "tools": offer::tools() })))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        offer::tools().into_iter().find(|tool| tool["name"] == name).map(typed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(answer) = rounds::answer(&request, &context) {
            return answer;
        }
        if let Some(answer) = questions::ask(&request, &context).await {
            return Ok(result::<rmcp::model::CallToolResult>(answer).into());
        }
        let answer = offer::call(self, &request, &context).await?;
        Ok(result::<rmcp::model::CallToolResult>(answer).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(result(json!({ "resources": offer::resources() })))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = json!({ "name": "template", "uriTemplate": "test://template/{id}/data", "mimeType": "application/json" });
        Ok(result(json!({ "resourceTemplates": [template] })))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match offer::read(&request.uri) {
            Some(contents) => {
                Ok(result::<rmcp::model::ReadResourceResult>(json!({ "contents": [contents] })).into())
            }
            None => {
                Err(ErrorData::resource_not_found("no such resource", Some(json!({ "uri": request.uri }))))
            }
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(result(json!({ "prompts": offer::prompts() })))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name == "test_input_required_result_prompt" {
            return Ok(rounds::prompt(request.input_responses.as_ref()));
        }
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        match offer::prompt(&request.name, &arguments) {
            Some(contents) => {
                let said = |content: Value| json!({ "role": "user", "content": content });
                let messages: Vec<Value> = contents.into_iter().map(said).collect();
                Ok(result::<rmcp::model::GetPromptResult>(json!({ "messages": messages })).into())
            }
            None => Err(ErrorData::invalid_params(format!("there is no prompt {}", request.name), None)),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let begun = request.argument.value;
        let values: Vec<&str> =
            ["paris", "park", "party"].into_iter().filter(|one| one.starts_with(&begun)).collect();
        Ok(result(json!({ "completion": { "values": values, "hasMore": false } })))
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            let told = match change {
                Ok(Change::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(Change::Prompts) => context.sink().notify_prompt_list_changed().await,
                Err(_) => return Ok(()),
            };
            // A filter may not want this kind of change.
            let _ = told;
        }
    }
}

/// There is no tool of this name.
pub(crate) fn unknown_tool(name: &str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_PARAMS, format!("there is no tool {name}"), None)
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(port) = std::env::args().nth(1).and_then(|port| port.parse::<u16>().ok()) else {
        say("usage: rmcp-server PORT");
        return ExitCode::from(2);
    };
    let server = Server { changes: broadcast::channel(16).0 };
    let mut config = StreamableHttpServerConfig::default();
    config.allowed_origins = vec![format!("http://127.0.0.1:{port}"), format!("http://localhost:{port}")];
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    let listener = match tokio::net::TcpListener::bind(("127.0.0.1", port)).await {
        Ok(listener) => listener,
        Err(error) => {
            say(&format!("cannot listen on {port}: {error}"));
            return ExitCode::FAILURE;
        }
    };
    say(&format!("listening on {port}"));
    match axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn say(words: &str) {
    eprintln!("{words}");
}
