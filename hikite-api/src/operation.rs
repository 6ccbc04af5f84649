//! The operations: one row for each method of each path, and how a row is rendered in the OpenAPI document.

mod parameter;
mod table;

use std::collections::BTreeSet;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::schema::{SchemaOf, of};

pub(crate) use parameter::components as path_parameters;
pub(crate) use table::{operations, tags};

/// Error statuses that any authenticated request may return.
const ALWAYS: &[u16] = &[400, 401, 403, 404, 429, 500];
/// Additional error statuses of requests with a body.
const WITH_BODY: &[u16] = &[408, 413, 415];

/// One method of one path.
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    /// Query parameters; those of the path follow from it.
    query: Vec<Value>,
    body: Option<SchemaOf>,
    answers: Vec<Answer>,
    /// Media types of a response that is not JSON.
    texts: &'static [&'static str],
    /// Statuses of its own errors, besides the common ones.
    errors: &'static [u16],
    needs_token: bool,
}

/// A response to a request that succeeds.
struct Answer {
    status: u16,
    description: &'static str,
    schema: Option<SchemaOf>,
}

impl Operation {
    fn new(method: &'static str, path: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self {
            method,
            path,
            id,
            tag: "",
            summary,
            query: Vec::new(),
            body: None,
            answers: Vec::new(),
            texts: &[],
            errors: &[],
            needs_token: true,
        }
    }

    fn query(self, query: Vec<Value>) -> Self {
        Self { query, ..self }
    }

    fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Some(of::<T>), ..self }
    }

    fn answer(mut self, status: u16, description: &'static str, schema: Option<SchemaOf>) -> Self {
        self.answers.push(Answer { status, description, schema });
        self
    }

    fn answers<T: JsonSchema>(self, description: &'static str) -> Self {
        self.answer(200, description, Some(of::<T>))
    }

    fn creates<T: JsonSchema>(self, description: &'static str) -> Self {
        self.answer(201, description, Some(of::<T>))
    }

    /// Answers without a body.
    fn confirms(self, description: &'static str) -> Self {
        self.answer(204, description, None)
    }

    fn fails(self, errors: &'static [u16]) -> Self {
        Self { errors, ..self }
    }

    /// Returns the statuses of its errors.
    pub(crate) fn statuses(&self) -> BTreeSet<u16> {
        let always = if self.needs_token { ALWAYS } else { &[403, 500] };
        let body = if self.body.is_some() { WITH_BODY } else { &[] };
        [always, body, self.errors].into_iter().flatten().copied().collect()
    }

    pub(crate) fn render(&self, generator: &mut SchemaGenerator) -> Value {
        let mut operation = json!({ "operationId": self.id, "tags": [self.tag], "summary": self.summary });
        operation["responses"] = self.responses(generator);
        let parameters: Vec<Value> = parameter::of_path(self.path).into_iter().chain(self.query.clone()).collect();
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some(body) = self.body {
            let content = json!({ "application/json": { "schema": body(generator) } });
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
        if !self.needs_token {
            operation["security"] = json!([]);
        }
        operation
    }

    fn responses(&self, generator: &mut SchemaGenerator) -> Value {
        let mut responses = Map::new();
        for answer in &self.answers {
            responses.insert(answer.status.to_string(), self.response(answer, generator));
        }
        for status in self.statuses() {
            responses.insert(status.to_string(), json!({ "$ref": format!("#/components/responses/Refused{status}") }));
        }
        responses.into()
    }

    fn response(&self, answer: &Answer, generator: &mut SchemaGenerator) -> Value {
        let mut headers = vec!["X-Request-Id"];
        if self.needs_token {
            headers.extend(["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy"]);
        }
        if answer.status == 201 {
            headers.push("Location");
        }
        let headers = headers.into_iter().map(header).collect::<Map<_, _>>();
        let mut response = json!({ "description": answer.description, "headers": headers });
        if let Some(schema) = answer.schema {
            response["content"] = json!({ "application/json": { "schema": schema(generator) } });
        }
        for kind in self.texts {
            response["content"][kind] = json!({ "schema": { "type": "string" } });
        }
        if self.id == "registerTool" {
            response["links"] = links();
        }
        response
    }
}

/// Returns the entry of `headers` that references a component.
pub(crate) fn header(name: &str) -> (String, Value) {
    (name.to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }))
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
