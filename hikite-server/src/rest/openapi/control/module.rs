//! OpenAPI: modules, their state and switches.

use serde_json::{Value, json};

use super::super::operation::OpenApiOperation;
use super::{listed, parameter, reference, text, whole};

pub(super) fn operations() -> Vec<OpenApiOperation> {
    let action = |path, id, summary| OpenApiOperation {
        method: "post",
        path,
        id,
        tag: "Overview",
        summary,
        parameters: vec![parameter("Module")],
        answer: (200, "The changed module.", Some("Module")),
        errors: &[404, 409, 503],
        ..OpenApiOperation::NEW
    };
    vec![
        OpenApiOperation {
            path: "/v1/modules",
            id: "listModules",
            tag: "Overview",
            summary: "Lists the modules, each with the tools of one source. Admins also see their state.",
            answer: (200, "The modules.", Some("Modules")),
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            path: "/v1/modules/{name}",
            id: "getModule",
            tag: "Overview",
            summary: "Shows one module. Admins also see its connection settings and its stderr.",
            parameters: vec![parameter("Module")],
            answer: (200, "The module.", Some("Module")),
            errors: &[404],
            ..OpenApiOperation::NEW
        },
        action(
            "/v1/modules/{name}/restart",
            "restartModule",
            "Restarts a module's connections and processes; for admins.",
        ),
        action("/v1/modules/{name}/enable", "enableModule", "Enables a module; for admins."),
        action(
            "/v1/modules/{name}/disable",
            "disableModule",
            "Disables a module and hides it from all callers; for admins.",
        ),
    ]
}

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![("Modules", listed("modules", "Module")), ("Module", module()), ("Calls", calls())]
}

fn module() -> Value {
    json!({
        "type": "object",
        "required": ["name", "title", "description", "managedBy", "enabled", "state", "tools", "resources", "prompts"],
        "properties": {
            "name": { "type": "string" },
            "title": { "type": "string" },
            "description": { "type": "string" },
            "kind": {
                "enum": ["stdio", "http", "sse", "service", "registered", "program"],
                "description": "Source of its tools; unknown for a module that is disabled in the config file.",
            },
            "managedBy": managed_by(),
            "enabled": { "type": "boolean", "description": "Disabled modules are only listed for admins." },
            "state": { "enum": ["idle", "starting", "running", "failing", "needs_login", "disabled"] },
            "error": text("Reason of the failure, or how to log in."),
            "breaker": {
                "enum": ["closed", "open", "half-open"],
                "description": "State of the circuit breaker; `open` means that calls to the server or with an account are \
                 paused. The worst of all.",
            },
            "accounts": {
                "type": "array",
                "description": "Accounts whose circuit breaker is not closed, among those that the caller may use; all for \
                 admins.",
                "items": {
                    "type": "object", "required": ["account", "breaker"],
                    "properties": {
                        "account": text("`provider/name`, and the owner if it belongs to somebody else."),
                        "breaker": { "enum": ["open", "half-open"] },
                    },
                },
            },
            "version": { "type": "string" },
            "tools": whole("Number of tools; the next two are counts as well."),
            "resources": whole("Resources."),
            "prompts": whole("Prompts."),
            "calls": reference("Calls"),
            "url": text("Address of a remote server with secrets masked; for admins, only for a single module."),
            "command": text("Program that is started; same restriction."),
            "args": { "type": "array", "items": { "type": "string" }, "description": "Its arguments with secrets masked; same restriction." },
            "stderr": {
                "type": "array", "items": { "type": "string" },
                "description": "The last lines of its stderr; same restriction.",
            },
        },
    })
}

pub(super) fn managed_by() -> Value {
    json!({
        "enum": ["file", "store", "program"],
        "description": "Where it can be changed: in the config file, with this API, or in the program that embeds hikite.",
    })
}

fn calls() -> Value {
    let milliseconds =
        |description: &str| json!({ "type": ["number", "null"], "minimum": 0, "description": description });
    json!({
        "type": "object",
        "required": ["perMinute", "errorRate", "p50Ms", "p99Ms", "total"],
        "description": "Call statistics of this process; for admins.",
        "properties": {
            "perMinute": whole("Calls in the last minute."),
            "errorRate": {
                "type": "number", "minimum": 0, "maximum": 1,
                "description": "Share of failed calls in the last 15 minutes.",
            },
            "p50Ms": milliseconds("Median duration of the calls in the last 15 minutes; null without calls."),
            "p99Ms": milliseconds("99th percentile of the duration."),
            "total": whole("Calls since the start."),
        },
    })
}
