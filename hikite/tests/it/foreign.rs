//! A third-party client: the protocol's Rust SDK.

use std::process::Stdio;

use hikite_testkit::gateway::{TestGateway, eventually, marked};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    Implementation,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ErrorData, RoleClient, ServiceExt};
use serde_json::{Value, json};

use crate::{PROGRAMS, configured, gateway, http_fixture, stdio};

/// A user who answers every form with its message.
#[derive(Clone)]
struct EchoingUser;

impl ClientHandler for EchoingUser {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(rmcp::model::ElicitationCapability::new());
        ClientConfig::new(capabilities, Implementation::new("person", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "answer": message })))
    }
}

async fn over_http(gateway: &TestGateway, surface: &str) -> RunningService<RoleClient, EchoingUser> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(gateway.url(surface));
    config.auth_header = Some(gateway.token().to_owned());
    EchoingUser.serve(StreamableHttpClientTransport::from_config(config)).await.expect("a session")
}

fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

#[tokio::test]
async fn the_sdk_lists_and_calls_over_http() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "web": server, "program": stdio(&[]) })).await;
    let client = over_http(&gateway, "direct").await;
    let tools = client.list_all_tools().await.expect("tools");
    assert_eq!(tools.len(), 66);
    assert_eq!(client.list_all_prompts().await.expect("prompts").len(), 8);
    assert_eq!(client.list_all_resources().await.expect("resources").len(), 3);
    let result = client.call_tool(call("web__structured", json!({ "a": 40, "b": 2 }))).await.expect("a result");
    assert_eq!(serde_json::to_value(result).expect("JSON")["structuredContent"], json!({ "sum": 42.0 }));
    assert!(client.call_tool(call("nothing", json!({}))).await.is_err());
    client.cancel().await.expect("an end");
}

#[tokio::test]
async fn the_sdk_answers_a_question_through_a_category() {
    let config = json!({ "mcpServers": { "a": stdio(&["--ask-roots"]) }, "categories": { "c": { "description": "d", "server": "a" } } });
    let gateway = configured(config).await;
    let client = over_http(&gateway, "").await;
    assert_eq!(client.list_all_tools().await.expect("tools").len(), 2);
    let args = json!({ "category": "c", "name": "ask", "args": { "kind": "elicitation", "marker": "hello?" } });
    let result = client.call_tool(call("call-category-tool", args)).await.expect("a result");
    let text = serde_json::to_value(result).expect("JSON")["content"][0]["text"].clone();
    assert_eq!(text, r#"{"action":"accept","content":{"answer":"hello?"}}"#);
    client.cancel().await.expect("an end");
}

#[tokio::test]
async fn the_sdk_starts_it_as_a_program() {
    let (_fixture, server) = http_fixture().await;
    let folder = tempfile::tempdir().expect("a folder");
    let config = json!({ "mcpServers": { "web": server, "program": stdio(&[]) } });
    std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
    let mut command = tokio::process::Command::from(PROGRAMS.hikite(folder.path()));
    command.args(["stdio", "--surface", "direct"]);
    let (transport, _) = TokioChildProcess::builder(command).stderr(Stdio::null()).spawn().expect("hikite");
    let client = EchoingUser.serve(transport).await.expect("a session");
    assert_eq!(client.list_all_tools().await.expect("tools").len(), 66);
    let result =
        client.call_tool(call("web__ask", json!({ "kind": "elicitation", "marker": "m" }))).await.expect("a result");
    assert!(serde_json::to_string(&result).expect("JSON").contains("accept"));
    client.call_tool(call("program__spawn_grandchild", json!({}))).await.expect("a result");
    client.cancel().await.expect("an end");
    assert!(eventually(|| marked(folder.path()).is_empty()).await, "{:?}", marked(folder.path()));
}
