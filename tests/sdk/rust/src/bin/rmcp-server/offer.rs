//! Tools, resources and prompts that answer at once, as tables of JSON.

use std::time::Duration;

use rmcp::model::{CallToolRequestParams, ErrorData};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use crate::{Change, Server, questions, rounds, typed, unknown_tool};

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

const PLAIN: [&str; 11] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
];

pub(crate) fn words(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

pub(crate) fn said(text: &str) -> Value {
    json!({ "content": [words(text)] })
}

fn image() -> Value {
    json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" })
}

fn embedded(uri: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } })
}

/// Every tool, with its schema.
pub(crate) fn tools() -> Vec<Value> {
    let tool = |name: &str, schema: Value| json!({ "name": name, "description": format!("{name} of the suite"), "inputSchema": schema });
    let empty = || json!({ "type": "object", "properties": {} });
    let names = PLAIN.into_iter().chain(rounds::TOOLS);
    let mut tools: Vec<Value> = names.map(|name| tool(name, empty())).collect();
    for (name, argument) in questions::TOOLS {
        let schema = match argument {
            Some(argument) => {
                json!({ "type": "object", "properties": { *argument: { "type": "string" } }, "required": [argument] })
            }
            None => empty(),
        };
        tools.push(tool(name, schema));
    }
    let region = json!({ "type": "string", "x-mcp-header": "Region" });
    tools.push(tool("test_x_mcp_header", json!({ "type": "object", "properties": { "region": region } })));
    tools.push(tool("json_schema_2020_12_tool", schema_2020_12()));
    tools
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        } },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

pub(crate) async fn call(
    server: &Server,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    Ok(match &*request.name {
        "test_simple_text" => said("This is a simple text response for testing."),
        "test_image_content" => json!({ "content": [image()] }),
        "test_audio_content" => {
            json!({ "content": [{ "type": "audio", "data": SILENCE, "mimeType": "audio/wav" }] })
        }
        "test_embedded_resource" => {
            json!({ "content": [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")] })
        }
        "test_multiple_content_types" => json!({ "content": [
            words("Multiple content types test:"),
            image(),
            embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ] }),
        "test_error_handling" => {
            json!({ "content": [words("This tool intentionally returns an error for testing")], "isError": true })
        }
        "test_tool_with_logging" => {
            for step in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                log(context, step).await;
            }
            said("logged")
        }
        "test_logging_tool" => {
            // 2026-07-28: only who asks for a level hears of it.
            if serde_json::to_string(&context.meta).is_ok_and(|meta| meta.contains("logLevel")) {
                log(context, "test_logging_tool ran").await;
            }
            said("logged")
        }
        "test_tool_with_progress" => said(&progress(context).await),
        "test_x_mcp_header" => {
            said(&format!("region={:?}", request.arguments.as_ref().and_then(|given| given.get("region"))))
        }
        "json_schema_2020_12_tool" => said("json_schema_2020_12_tool"),
        "test_trigger_tool_change" => {
            tell(server, context, Change::Tools).await;
            said("the tools changed")
        }
        "test_trigger_prompt_change" => {
            tell(server, context, Change::Prompts).await;
            said("the prompts changed")
        }
        other => return Err(unknown_tool(other)),
    })
}

async fn log(context: &RequestContext<RoleServer>, words: &str) {
    let _ = context.peer.notify_logging_message(typed(json!({ "level": "info", "data": words }))).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn progress(context: &RequestContext<RoleServer>) -> String {
    let Some(token) = context.meta.get_progress_token() else { return "no token".to_owned() };
    let token = serde_json::to_value(token).expect("a token is JSON");
    for step in [0, 50, 100] {
        let params = json!({ "progressToken": token, "progress": step, "total": 100, "message": format!("Completed step {step} of 100") });
        let _ = context.peer.notify_progress(typed(params)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    token.to_string()
}

/// To subscriptions, and to a session.
async fn tell(server: &Server, context: &RequestContext<RoleServer>, change: Change) {
    let _ = server.changes.send(change);
    let _ = match change {
        Change::Tools => context.peer.notify_tool_list_changed().await,
        Change::Prompts => context.peer.notify_prompt_list_changed().await,
    };
}

/// All but one that can be read and subscribed to without being listed.
pub(crate) fn resources() -> Value {
    json!([
        { "uri": "test://static-text", "name": "static-text", "mimeType": "text/plain" },
        { "uri": "test://static-binary", "name": "static-binary", "mimeType": "image/png" },
    ])
}

pub(crate) fn read(uri: &str) -> Option<Value> {
    let contents = match uri {
        "test://static-text" => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
        }
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PIXEL }),
        "test://watched-resource" => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "Watched resource content" })
        }
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let text =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") }).to_string();
            json!({ "uri": uri, "mimeType": "application/json", "text": text })
        }
    };
    Some(contents)
}

pub(crate) fn prompts() -> Value {
    let argument = |name: &str| json!({ "name": name, "required": true });
    let prompt = |name: &str, arguments: &[&str]| {
        let arguments: Vec<Value> = arguments.iter().map(|name| argument(name)).collect();
        json!({ "name": name, "description": format!("{name} of the suite"), "arguments": arguments })
    };
    json!([
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ])
}

pub(crate) fn prompt(name: &str, arguments: &Value) -> Option<Vec<Value>> {
    let given = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    let contents = match name {
        "test_simple_prompt" => vec![words("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            vec![words(&format!("Prompt with arguments: arg1='{}', arg2='{}'", given("arg1"), given("arg2")))]
        }
        "test_prompt_with_embedded_resource" => vec![
            embedded(&given("resourceUri"), "text/plain", "Embedded resource content for testing."),
            words("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![image(), words("Please analyze the image above.")],
        _ => return None,
    };
    Some(contents)
}
