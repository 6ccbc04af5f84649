//! Tools that ask as 2026-07-28 has it: with a result, and a call that comes again with the answers.

use std::hash::{DefaultHasher, Hash, Hasher};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorCode, ErrorData, GetPromptResponse,
    GetPromptResult, InputRequests, InputRequiredResult, InputResponses,
};
use rmcp::service::{RequestContext, RoleServer};

use serde_json::{Value, json};

use crate::offer::said;
use crate::{result, typed};

pub(crate) const TOOLS: [&str; 10] = [
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "test_missing_capability",
    "test_streaming_elicitation",
];

type Answer = Result<CallToolResponse, ErrorData>;

/// Seals what a client is given to bring back.
const KEY: &[u8] = b"known to this server alone";

/// The answer of such a tool; `None` for any other.
pub(crate) fn answer(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Answer> {
    let name = TOOLS.into_iter().find(|name| *name == request.name)?;
    let state = match request.request_state.as_deref().map(open) {
        Some(Err(refusal)) => return Some(Err(refusal)),
        Some(Ok(state)) => Some(state),
        None => None,
    };
    // An answer that is no object is none: it is asked for again.
    let has = |key: &str| {
        request.input_responses.as_ref().and_then(|given| given.get(key)).is_some_and(Value::is_object)
    };
    let asked = state.as_deref();
    let capabilities = capabilities(context);
    Some(match name {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" if has("user_name") => {
            done("Hello!")
        }
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            ask(json!({ "user_name": form("What is your name?", "name") }), None)
        }
        "test_input_required_result_sampling" if has("capital_question") => done("The model answered"),
        "test_input_required_result_sampling" => {
            ask(json!({ "capital_question": model("What is the capital of France?") }), None)
        }
        "test_input_required_result_list_roots" if has("client_roots") => done("Roots received"),
        "test_input_required_result_list_roots" => ask(json!({ "client_roots": roots() }), None),
        "test_input_required_result_request_state" if has("confirm") && asked == Some("asked") => {
            done("state-ok: confirmed")
        }
        "test_input_required_result_request_state" => {
            ask(json!({ "confirm": confirm() }), Some(seal("asked")))
        }
        "test_input_required_result_tampered_state" if state.is_some() => done("state-ok"),
        "test_input_required_result_tampered_state" => {
            ask(json!({ "confirm": confirm() }), Some(seal("round-1")))
        }
        "test_input_required_result_multiple_inputs"
            if has("user_name") && has("greeting") && has("client_roots") =>
        {
            done("All inputs received.")
        }
        "test_input_required_result_multiple_inputs" => ask(
            json!({ "user_name": form("What is your name?", "name"), "greeting": model("A greeting"), "client_roots": roots() }),
            Some(seal("several")),
        ),
        "test_input_required_result_multi_round" => next_round(asked, &has),
        "test_input_required_result_capabilities" => {
            let mut questions = json!({});
            if capabilities.get("sampling").is_some() {
                questions["sample"] = model("Say hello");
            }
            if capabilities.get("elicitation").is_some() {
                questions["ask"] = form("What is your name?", "name");
            }
            ask(questions, Some(seal("by capability")))
        }
        _ if capabilities.get("sampling").is_some() => done("the client can sample"),
        _ => Err(missing_sampling()),
    })
}

fn next_round(asked: Option<&str>, has: &dyn Fn(&str) -> bool) -> Answer {
    match asked {
        Some("round-2") if has("step2") => done("Both steps were answered."),
        Some("round-1") if has("step1") => {
            ask(json!({ "step2": form("Step 2: a colour?", "color") }), Some(seal("round-2")))
        }
        _ => ask(json!({ "step1": form("Step 1: your name?", "name") }), Some(seal("round-1"))),
    }
}

fn seal(state: &str) -> String {
    format!("{state}.{}", mark(state))
}

fn open(sealed: &str) -> Result<String, ErrorData> {
    let parts = sealed.rsplit_once('.').filter(|(state, marked)| mark(state) == *marked);
    let (state, _) = parts
        .ok_or_else(|| ErrorData::new(ErrorCode::INVALID_PARAMS, "this state was not made here", None))?;
    Ok(state.to_owned())
}

/// Not a good seal, but one that a changed state does not fit.
fn mark(state: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (KEY, state).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Returns the capabilities that the client declares in this request, or declared when its session began.
fn capabilities(context: &RequestContext<RoleServer>) -> Value {
    let meta = serde_json::to_value(&context.meta).unwrap_or_default();
    let claimed = meta["io.modelcontextprotocol/clientCapabilities"].clone();
    if !claimed.is_null() {
        return claimed;
    }
    let info = context.peer.peer_info().and_then(|info| serde_json::to_value(&*info).ok());
    info.map(|info| info["capabilities"].clone()).unwrap_or_default()
}

fn missing_sampling() -> ErrorData {
    let data = json!({ "requiredCapabilities": { "sampling": {} } });
    ErrorData::new(ErrorCode(-32021), "the client has to be able to sample", Some(data))
}

fn done(text: &str) -> Answer {
    Ok(result::<CallToolResult>(said(text)).into())
}

fn ask(questions: Value, state: Option<String>) -> Answer {
    Ok(InputRequiredResult::new(Some(typed::<InputRequests>(questions)), state).into())
}

fn form(message: &str, field: &str) -> Value {
    let schema =
        json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] });
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": schema } })
}

fn confirm() -> Value {
    let schema =
        json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] });
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": "Please confirm", "requestedSchema": schema } })
}

fn model(prompt: &str) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": 50 } })
}

fn roots() -> Value {
    json!({ "method": "roots/list" })
}

pub(crate) fn prompt(answers: Option<&InputResponses>) -> GetPromptResponse {
    if answers.is_some_and(|given| given.contains_key("user_context")) {
        let content = json!({ "type": "text", "text": "With that context." });
        return result::<GetPromptResult>(json!({ "messages": [{ "role": "user", "content": content }] }))
            .into();
    }
    let questions = typed::<InputRequests>(json!({ "user_context": form("What context?", "context") }));
    InputRequiredResult::new(Some(questions), None).into()
}
