//! Collects results by calling tools that are annotated read-only and need no arguments. Only on request, because
//! annotations cannot be verified.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::{Caller, ClientCapabilities, Session, SessionId};
use hikite_core::catalog::{Tool, schema_of};
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, CallOrigin, NoClient};
use hikite_core::tool_output::ToolOutput;
use hikite_gateway::{CallOptions, Command, Gateway, ToolTarget};

use super::answer::{RecordedResult, value};
use super::progress::{StepProgress, note};

/// Time limit for one call; slower tools are skipped.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Calls the tools one after the other, and reports each failure.
pub async fn attempt(gateway: &Gateway) -> Vec<RecordedResult> {
    let view = gateway.catalogs().owner_view();
    let tools: Vec<&Tool> = view.enabled_tools().filter(|tool| needs_no_arguments(tool)).collect();
    let mut steps = StepProgress::new("calling", tools.len());
    let mut samples = Vec::new();
    for tool in tools {
        match Box::pin(call(gateway, tool)).await {
            Ok(result) if !ToolOutput::read(&result).failed => samples.push(RecordedResult {
                module: tool.key.module.to_string(),
                tool: tool.key.tool.to_string(),
                value: value(&result),
                shape: None,
            }),
            Ok(result) => note(&format!("{}: {}", tool.key, first_line(&ToolOutput::read(&result).text))),
            Err(error) => note(&format!("{}: {}", tool.key, first_line(&error.message))),
        }
        steps.step();
    }
    samples
}

/// Returns `true` if the tool is annotated read-only and requires no arguments.
fn needs_no_arguments(tool: &Tool) -> bool {
    let required = |schema: Raw| schema.object()?.get("required")?.items();
    let needs = schema_of(&tool.definition).and_then(required).unwrap_or_default();
    tool.hints.read_only && needs.is_empty()
}

async fn call(gateway: &Gateway, tool: &Tool) -> Result<Raw, Error> {
    let session =
        Session { id: SessionId(0), caller: Caller::owner(), client_capabilities: ClientCapabilities::default() };
    let context = CallContext {
        session: Arc::new(session),
        back: Arc::new(NoClient),
        origin: CallOrigin::default(),
        accepts_input_required: false,
        account: None,
    };
    let params = Object::default().with("name", &*tool.key.tool).with("arguments", Raw::empty_object());
    let options = CallOptions { timeout: Some(TIMEOUT), ..CallOptions::default() };
    gateway.dispatch(Command::Call { target: ToolTarget::Keyed(tool.key.clone()), params, options }, context).await
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or("it failed without a message")
}
