//! OpenAPI: the operations.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::error_response::{ALWAYS, WITH_BODY, reference};
use crate::rest::audit;
use crate::rest::tools::{LIMIT, LIMIT_MAX, PAGE_MAX};

/// One method of one path.
pub(super) struct OpenApiOperation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    /// Parameters, each an object or a reference.
    pub(super) parameters: Vec<Value>,
    /// Schema name of the body.
    pub(super) body: Option<&'static str>,
    /// Success response: status, description and schema name.
    pub(super) answer: (u16, &'static str, Option<&'static str>),
    /// Alternative success response.
    pub(super) also: Option<(u16, &'static str, Option<&'static str>)>,
    /// Media types of a response that is not JSON.
    pub(super) texts: &'static [&'static str],
    /// Statuses of its own errors, besides the common ones.
    pub(super) errors: &'static [u16],
    pub(super) needs_token: bool,
}

impl OpenApiOperation {
    pub(super) const NEW: Self = Self {
        method: "get",
        path: "",
        id: "",
        tag: "Tools",
        summary: "",
        parameters: Vec::new(),
        body: None,
        answer: (200, "", None),
        also: None,
        texts: &[],
        errors: &[],
        needs_token: true,
    };

    fn statuses(&self) -> BTreeSet<u16> {
        let always = if self.needs_token { ALWAYS } else { &[403, 500] };
        let body = if self.body.is_some() { WITH_BODY } else { &[] };
        [always, body, self.errors].into_iter().flatten().copied().collect()
    }

    fn value(&self) -> Value {
        let mut operation = json!({
            "operationId": self.id,
            "tags": [self.tag],
            "summary": self.summary,
            "responses": self.responses(),
        });
        if !self.parameters.is_empty() {
            operation["parameters"] = self.parameters.clone().into();
        }
        if let Some(body) = self.body {
            let schema = json!({ "$ref": format!("#/components/schemas/{body}") });
            operation["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        }
        if !self.needs_token {
            operation["security"] = json!([]);
        }
        operation
    }

    fn responses(&self) -> Map<String, Value> {
        let good = [Some(self.answer), self.also].into_iter().flatten();
        let mut responses: Map<String, Value> = good.map(|answer| (answer.0.to_string(), self.good(answer))).collect();
        responses.extend(self.statuses().into_iter().map(reference));
        responses
    }

    fn good(&self, (status, description, schema): (u16, &str, Option<&str>)) -> Value {
        let mut names = vec!["X-Request-Id"];
        if self.needs_token {
            names.extend(["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy"]);
        }
        if status == 201 {
            names.push("Location");
        }
        let headers: Map<String, Value> = names
            .into_iter()
            .map(|name| (name.to_owned(), json!({ "$ref": format!("#/components/headers/{name}") })))
            .collect();
        let mut answer = json!({ "description": description, "headers": headers });
        if let Some(schema) = schema {
            let schema = json!({ "$ref": format!("#/components/schemas/{schema}") });
            answer["content"] = json!({ "application/json": { "schema": schema } });
        }
        for kind in self.texts {
            answer["content"][kind] = json!({ "schema": { "type": "string" } });
        }
        if self.id == "registerTool" {
            answer["links"] = links();
        }
        answer
    }
}

/// Builds the links from a registered tool to its operations.
fn links() -> Value {
    let link = |operation: &str, description: &str| {
        json!({
            "operationId": operation,
            "description": description,
            "parameters": { "key": "$response.body#/key" },
        })
    };
    json!({
        "GetTool": link("getTool", "The tool with this key."),
        "EnableTool": link("enableTool", "Enables it."),
        "DisableTool": link("disableTool", "Disables it."),
        "UnregisterTool": link("unregisterTool", "Removes it."),
    })
}

pub(crate) fn paths() -> Value {
    let mut paths = Map::new();
    for operation in operations() {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation.value();
    }
    paths.into()
}

/// Returns all error statuses of all operations.
pub(crate) fn statuses() -> BTreeSet<u16> {
    operations().iter().flat_map(OpenApiOperation::statuses).collect()
}

fn operations() -> Vec<OpenApiOperation> {
    let identity = super::identity::operations();
    let all = [
        looking(),
        using(),
        changing(),
        identity,
        super::account::operations(),
        super::pin::operations(),
        super::control::operations(),
        recorded(),
        health(),
    ];
    all.into_iter().flatten().collect()
}

fn looking() -> Vec<OpenApiOperation> {
    vec![
        OpenApiOperation {
            path: "/v1/tools",
            id: "listTools",
            summary: "Lists tools, page by page.",
            parameters: list_parameters(),
            answer: (200, "A page of tools.", Some("ToolPage")),
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            path: "/v1/tools/{key}",
            id: "getTool",
            summary: "Shows one tool.",
            parameters: vec![key()],
            answer: (200, "The tool.", Some("Tool")),
            errors: &[404],
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            method: "post",
            path: "/v1/tools/search",
            id: "searchTools",
            summary: "Finds tools by what they do.",
            body: Some("SearchRequest"),
            answer: (200, "The matching tools, best first.", Some("SearchAnswer")),
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            method: "post",
            path: "/catalog/search",
            id: "searchCatalog",
            summary: "Searches the tools in the request: compatible with the Search API of another gateway.",
            body: Some("CatalogRequest"),
            answer: (200, "The matching tools, best first.", Some("CatalogAnswer")),
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            path: "/v1/categories",
            id: "listCategories",
            tag: "Overview",
            summary: "Lists the categories.",
            answer: (200, "The categories.", Some("Categories")),
            ..OpenApiOperation::NEW
        },
    ]
}

fn using() -> Vec<OpenApiOperation> {
    vec![
        OpenApiOperation {
            method: "post",
            path: "/v1/tools/call",
            id: "callTool",
            summary: "Runs a tool and returns the value of its result.",
            body: Some("CallRequest"),
            answer: (200, "The result of the tool.", Some("CallAnswer")),
            errors: &[404, 499, 502, 503],
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            method: "post",
            path: "/v1/batch",
            id: "runBatch",
            summary: "Runs several tools with dependencies, or shows the plan.",
            body: Some("BatchRequest"),
            answer: (200, "The outcome of each task.", Some("BatchAnswer")),
            errors: &[503],
            ..OpenApiOperation::NEW
        },
    ]
}

fn changing() -> Vec<OpenApiOperation> {
    let switch = |path, id, summary| OpenApiOperation {
        method: "post",
        path,
        id,
        tag: "Registry",
        summary,
        parameters: vec![key()],
        answer: (200, "The changed tool.", Some("Tool")),
        errors: &[404, 409],
        ..OpenApiOperation::NEW
    };
    vec![
        OpenApiOperation {
            method: "post",
            path: "/v1/tools",
            id: "registerTool",
            tag: "Registry",
            summary: "Registers a tool that makes an HTTP request.",
            body: Some("Registration"),
            answer: (201, "The new tool.", Some("Tool")),
            errors: &[409],
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            method: "patch",
            path: "/v1/tools/{key}",
            id: "changeTool",
            tag: "Registry",
            summary: "Overrides texts of a tool, or removes the overrides.",
            parameters: vec![key()],
            body: Some("ToolTexts"),
            answer: (200, "The changed tool.", Some("Tool")),
            errors: &[404, 503],
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            method: "delete",
            path: "/v1/tools/{key}",
            id: "unregisterTool",
            tag: "Registry",
            summary: "Removes a registered tool.",
            parameters: vec![key()],
            answer: (204, "Removed.", None),
            errors: &[404, 409],
            ..OpenApiOperation::NEW
        },
        switch("/v1/tools/{key}/enable", "enableTool", "Enables a tool."),
        switch("/v1/tools/{key}/disable", "disableTool", "Disables a tool."),
    ]
}

fn recorded() -> Vec<OpenApiOperation> {
    vec![
        OpenApiOperation {
            path: "/v1/audit",
            id: "listAudit",
            tag: "Audit",
            summary: "Lists the audit records, newest first.",
            parameters: audit_parameters(),
            answer: (200, "A page of records.", Some("AuditPage")),
            errors: &[503],
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            path: "/v1/audit/{seq}",
            id: "getAuditRecord",
            tag: "Audit",
            summary: "Shows one record.",
            parameters: vec![json!({ "$ref": "#/components/parameters/Seq" })],
            answer: (200, "The record.", Some("AuditRecord")),
            errors: &[404, 503],
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            path: "/v1/audit/export",
            id: "exportAudit",
            tag: "Audit",
            summary: "Exports the records as a file, oldest first.",
            parameters: export_parameters(),
            answer: (200, "The file.", None),
            texts: &["application/x-ndjson", "text/csv"],
            errors: &[503],
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            path: "/v1/audit/verify",
            id: "verifyAudit",
            tag: "Audit",
            summary: "Verifies the hash chain of the records.",
            answer: (200, "The result of the verification.", Some("AuditVerdict")),
            errors: &[503],
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            path: "/v1/audit/resume-trim",
            method: "post",
            id: "resumeAuditTrim",
            tag: "Audit",
            summary: "Confirms the machine's clock after a jump, so that old records are deleted again.",
            answer: (204, "Confirmed.", None),
            errors: &[503],
            ..OpenApiOperation::NEW
        },
    ]
}

fn query(name: &str, description: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "query", "description": description, "schema": schema })
}

/// Builds the filter parameters of audit records.
fn audit_filters() -> Vec<Value> {
    let about = |word: &str| match word {
        "actor" => "Only records of this user, by name, id or subject.".to_owned(),
        "text" => "Only records that contain this text, ignoring case.".to_owned(),
        _ => format!("Only records with this `{word}`."),
    };
    let words = audit::FILTERS.into_iter().map(|word| {
        let schema = match word {
            "text" => json!({ "type": "string", "maxLength": 200 }),
            _ => json!({ "type": "string" }),
        };
        query(word, &about(word), &schema)
    });
    let moment = |name: &str, description: &str| {
        let forms = json!([{ "type": "string", "format": "date-time" }, { "type": "integer", "minimum": 0 }]);
        let description = format!("{description}: RFC 3339, or milliseconds since 1970.");
        query(name, &description, &json!({ "anyOf": forms }))
    };
    let times = [
        moment("since", "Only records that start at this time or later"),
        moment("until", "Only records that start before this time"),
    ];
    words.chain(times).collect()
}

fn audit_parameters() -> Vec<Value> {
    let whole = |maximum: u64| json!({ "type": "integer", "minimum": 0, "maximum": maximum });
    let mut limit = whole(audit::LIMIT_MAX.into());
    (limit["minimum"], limit["default"]) = (1.into(), audit::LIMIT.into());
    let others = [
        query("before", "Only records with a smaller number: `next` of the previous page.", &whole(u64::MAX)),
        query("after", "Only records with a larger number, oldest first; not with `before`.", &whole(u64::MAX)),
        query("limit", "Records per page.", &limit),
    ];
    audit_filters().into_iter().chain(others).collect()
}

fn export_parameters() -> Vec<Value> {
    let format = json!({ "enum": ["jsonl", "csv"], "default": "jsonl" });
    audit_filters().into_iter().chain([query("format", "JSON Lines or CSV.", &format)]).collect()
}

fn health() -> Vec<OpenApiOperation> {
    let health = |path, id| OpenApiOperation {
        path,
        id,
        tag: "Health",
        summary: "Returns the health of the gateway.",
        answer: (200, "It is running.", Some("Health")),
        needs_token: false,
        ..OpenApiOperation::NEW
    };
    vec![health("/", "root"), health("/health", "health")]
}

fn key() -> Value {
    json!({ "$ref": "#/components/parameters/Key" })
}

fn list_parameters() -> Vec<Value> {
    let query = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "query", "description": description, "schema": schema });
    let text = || json!({ "type": "string" });
    let whole =
        |maximum: u32, default: u32| json!({ "type": "integer", "minimum": 1, "maximum": maximum, "default": default });
    vec![
        query("category", "Only tools of this category.", text()),
        query(
            "tag",
            "Only tools with this tag; if repeated, with all of them.",
            json!({ "type": "array", "items": text() }),
        ),
        query("module", "Only tools of this module.", text()),
        query("enabled", "Only enabled or disabled tools.", json!({ "type": "boolean" })),
        query("page", "Page number, from 1.", whole(PAGE_MAX, 1)),
        query("limit", "Tools per page.", whole(LIMIT_MAX, LIMIT)),
    ]
}
