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
        answer: (200, "The module as it is now.", Some("Module")),
        errors: &[404, 409, 503],
        ..OpenApiOperation::NEW
    };
    vec![
        OpenApiOperation {
            path: "/v1/modules",
            id: "listModules",
            tag: "Overview",
            summary: "Lists the modules, each the tools of one source. Admins are told how they are doing.",
            answer: (200, "The modules.", Some("Modules")),
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            path: "/v1/modules/{name}",
            id: "getModule",
            tag: "Overview",
            summary: "Shows one module. Admins are told how it is reached and what it wrote to stderr.",
            parameters: vec![parameter("Module")],
            answer: (200, "The module.", Some("Module")),
            errors: &[404],
            ..OpenApiOperation::NEW
        },
        action(
            "/v1/modules/{name}/restart",
            "restartModule",
            "Ends a module's connections and processes and begins anew; for admins.",
        ),
        action("/v1/modules/{name}/enable", "enableModule", "Switches a whole module on; for admins."),
        action(
            "/v1/modules/{name}/disable",
            "disableModule",
            "Switches a whole module off: from now on it is in nobody's view; for admins.",
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
                "description": "What its tools come from; not known of one that the file switches off.",
            },
            "managedBy": managed_by(),
            "enabled": { "type": "boolean", "description": "One that is off is listed for admins alone." },
            "state": { "enum": ["idle", "starting", "running", "failing", "needs_login", "disabled"] },
            "error": text("Why it is failing, or what to do about a login."),
            "breaker": {
                "enum": ["closed", "open", "half-open"],
                "description": "Whether calls are sent: `open` leaves the server, or an account, alone for a while. The worst of all.",
            },
            "accounts": {
                "type": "array",
                "description": "The accounts whose calls are not sent as usual, of those that the caller may use; for admins of all.",
                "items": {
                    "type": "object", "required": ["account", "breaker"],
                    "properties": {
                        "account": text("`provider/name`, and whose it is where it is another's."),
                        "breaker": { "enum": ["open", "half-open"] },
                    },
                },
            },
            "version": { "type": "string" },
            "tools": whole("How many there are; so with the next two."),
            "resources": whole("Resources."),
            "prompts": whole("Prompts."),
            "calls": reference("Calls"),
            "url": text("Where a remote server is, secrets masked; for admins, of a single module."),
            "command": text("The program that is started; the same."),
            "args": { "type": "array", "items": { "type": "string" }, "description": "Its arguments, secrets masked; the same." },
            "stderr": {
                "type": "array", "items": { "type": "string" },
                "description": "The last lines that it wrote to stderr; the same.",
            },
        },
    })
}

pub(super) fn managed_by() -> Value {
    json!({
        "enum": ["file", "store", "program"],
        "description": "Who may change it: the config file, this API, or the program that hikite is part of.",
    })
}

fn calls() -> Value {
    let milliseconds =
        |description: &str| json!({ "type": ["number", "null"], "minimum": 0, "description": description });
    json!({
        "type": "object",
        "required": ["perMinute", "errorRate", "p50Ms", "p99Ms", "total"],
        "description": "How calls have been going in this process; for admins.",
        "properties": {
            "perMinute": whole("Calls of the last minute."),
            "errorRate": {
                "type": "number", "minimum": 0, "maximum": 1,
                "description": "The share of the calls of the last 15 minutes that failed.",
            },
            "p50Ms": milliseconds("Half of the calls of the last 15 minutes took no longer; null without any."),
            "p99Ms": milliseconds("99 of a hundred took no longer."),
            "total": whole("Calls since the start."),
        },
    })
}
