//! A client for the public conformance suite on the Rust SDK. The table says which calls a scenario needs; all that is
//! protocol is done by `rmcp`.
//!
//!     MCP_CONFORMANCE_SCENARIO=tools_call rmcp-client http://localhost:1234/mcp
//!
//! With `HIKITE_STDIO` (a command as a JSON list) the server is that program instead of the address.

use std::process::{ExitCode, Stdio};

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ErrorData, Implementation, ProtocolVersion,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Map, Value, json};

type Client = RunningService<RoleClient, Person>;
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Answers every form with its defaults, and what has none with a yes.
#[derive(Clone, Debug)]
struct Person;

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::new());
        ClientConfig::new(capabilities, Implementation::new("rmcp-client", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = serde_json::to_value(&request).unwrap_or_default();
        let fields = asked["requestedSchema"]["properties"].as_object().cloned().unwrap_or_default();
        let answer = |field: &Value| field.get("default").cloned().unwrap_or(json!(true));
        let content: Map<String, Value> =
            fields.iter().map(|(name, field)| (name.clone(), answer(field))).collect();
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content)))
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Outcome {
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO")?;
    let client = connect().await?;
    play(&client, &scenario).await?;
    client.cancel().await?;
    Ok(())
}

async fn connect() -> Result<Client, Box<dyn std::error::Error>> {
    let is_modern =
        std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").is_ok_and(|revision| revision == "2026-07-28");
    let lifecycle = if is_modern {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    } else {
        ClientLifecycleMode::Initialize
    };
    if let Ok(program) = std::env::var("HIKITE_STDIO") {
        let words: Vec<String> = serde_json::from_str(&program)?;
        let (name, arguments) = words.split_first().ok_or("HIKITE_STDIO names no program")?;
        let mut command = tokio::process::Command::new(name);
        command.args(arguments);
        let (transport, _) = TokioChildProcess::builder(command).stderr(Stdio::inherit()).spawn()?;
        return Ok(Person.serve_with_lifecycle(transport, lifecycle).await?);
    }
    let address = std::env::args().nth(1).ok_or("usage: rmcp-client URL")?;
    let config = StreamableHttpClientTransportConfig::with_uri(address);
    let transport = StreamableHttpClientTransport::from_config(config);
    Ok(Person.serve_with_lifecycle(transport, lifecycle).await?)
}

async fn play(client: &Client, scenario: &str) -> Outcome {
    let tools = client.list_all_tools().await?;
    match scenario {
        "initialize" | "json-schema-ref-no-deref" => {}
        "tools_call" | "request-metadata" => call(client, "add_numbers", json!({ "a": 5, "b": 3 })).await?,
        "sse-retry" => call(client, "test_reconnection", json!({})).await?,
        "elicitation-sep1034-client-defaults" => {
            call(client, "test_client_elicitation_defaults", json!({})).await?;
        }
        "sep-2322-client-request-state" => {
            for tool in ["echo_state", "unrelated", "no_state", "no_result_type"] {
                call(client, &format!("test_mrtr_{tool}"), json!({})).await?;
            }
        }
        "json-schema-2020-12-preservation" => {
            let focal = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
            let schema = serde_json::to_value(focal.ok_or("the tool is not listed")?)?["inputSchema"].clone();
            call(client, "json_schema_echo", json!({ "schema": schema })).await?;
        }
        "http-invalid-tool-headers" => {
            for tool in &tools {
                // Refusals are what the scenario is about.
                let _ = call(client, &tool.name, sample(&serde_json::to_value(tool)?)).await;
            }
        }
        "http-custom-headers" => {
            let told: Value = serde_json::from_str(&std::env::var("MCP_CONFORMANCE_CONTEXT")?)?;
            for one in told["toolCalls"].as_array().ok_or("no calls were told")? {
                let name = one["name"].as_str().unwrap_or_default();
                if tools.iter().any(|tool| tool.name == name) {
                    let _ = call(client, name, one["arguments"].clone()).await;
                }
            }
        }
        "http-standard-headers" => everything(client, &tools).await?,
        other => return Err(format!("no plan for {other}").into()),
    }
    Ok(())
}

async fn everything(client: &Client, tools: &[rmcp::model::Tool]) -> Outcome {
    if let Some(tool) = tools.first() {
        call(client, &tool.name, sample(&serde_json::to_value(tool)?)).await?;
    }
    if let Some(resource) = client.list_all_resources().await?.first() {
        client.read_resource(serde_json::from_value(json!({ "uri": resource.uri }))?).await?;
    }
    if let Some(prompt) = client.list_all_prompts().await?.first() {
        client.get_prompt(serde_json::from_value(json!({ "name": prompt.name }))?).await?;
    }
    Ok(())
}

async fn call(client: &Client, tool: &str, arguments: Value) -> Outcome {
    let Value::Object(arguments) = arguments else { return Err("arguments are an object".into()) };
    client.call_tool(CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)).await?;
    Ok(())
}

/// Arguments of the kinds that a tool requires.
fn sample(tool: &Value) -> Value {
    let schema = &tool["inputSchema"];
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let names = required.iter().filter_map(Value::as_str);
    let value = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("integer" | "number") => json!(0),
        Some("boolean") => json!(false),
        Some("object") => json!({}),
        Some("array") => json!([]),
        _ => json!("x"),
    };
    Value::Object(names.map(|name| (name.to_owned(), value(name))).collect())
}

fn say(words: &str) {
    eprintln!("{words}");
}
