//! Tools that ask their client in the middle of a call, as servers with sessions do.

use rmcp::model::CallToolRequestParams;
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use crate::offer::{said, words};
use crate::typed;

/// The tools, each with the argument it takes.
pub(crate) const TOOLS: [(&str, Option<&str>); 4] = [
    ("test_sampling", Some("prompt")),
    ("test_elicitation", Some("message")),
    ("test_elicitation_sep1034_defaults", None),
    ("test_elicitation_sep1330_enums", None),
];

/// The result of such a tool; `None` for any other.
pub(crate) async fn ask(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Value> {
    let (_, argument) = TOOLS.iter().find(|(name, _)| *name == request.name)?;
    let given = argument.and_then(|argument| request.arguments.as_ref()?.get(argument)?.as_str());
    let given = given.unwrap_or("Please answer");
    let answer = match &*request.name {
        "test_sampling" => sample(context, given).await,
        "test_elicitation" => elicit(context, given, &response()).await,
        "test_elicitation_sep1034_defaults" => elicit(context, given, &defaults()).await,
        _ => elicit(context, given, &enums()).await,
    };
    Some(match answer {
        Ok(answer) => said(&answer),
        Err(reason) => {
            json!({ "content": [words(&format!("cannot ask: {reason}"))], "isError": true })
        }
    })
}

async fn sample(context: &RequestContext<RoleServer>, prompt: &str) -> Result<String, String> {
    let params = json!({ "messages": [{ "role": "user", "content": words(prompt) }], "maxTokens": 100 });
    let result = context.peer.create_message(typed(params)).await.map_err(|error| error.to_string())?;
    let result = serde_json::to_value(result).map_err(|error| error.to_string())?;
    Ok(format!("LLM response: {}", result["content"]["text"]))
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    message: &str,
    schema: &Value,
) -> Result<String, String> {
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    let params = serde_json::from_value(params).map_err(|error| error.to_string())?;
    let result = context.peer.create_elicitation(params).await.map_err(|error| error.to_string())?;
    let result = serde_json::to_value(result).map_err(|error| error.to_string())?;
    Ok(format!("User response: action={}, content={}", result["action"], result["content"]))
}

fn response() -> Value {
    json!({ "type": "object", "properties": { "response": { "type": "string" } }, "required": ["response"] })
}

fn defaults() -> Value {
    json!({ "type": "object", "properties": {
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    } })
}

fn enums() -> Value {
    let titled = json!([
        { "const": "a", "title": "First" },
        { "const": "b", "title": "Second" },
        { "const": "c", "title": "Third" },
    ]);
    json!({ "type": "object", "properties": {
        "untitledSingle": { "type": "string", "enum": ["one", "two", "three"] },
        "titledSingle": { "type": "string", "oneOf": titled },
        "legacyEnum": { "type": "string", "enum": ["x", "y", "z"], "enumNames": ["Ex", "Why", "Zed"] },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["one", "two", "three"] } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled } },
    } })
}
