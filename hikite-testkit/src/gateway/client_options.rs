//! Options of a test client: its `initialize` data, and its answers to server requests.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};

/// Handler of server requests; `None` leaves one unanswered.
pub type ServerRequestHandler = Arc<dyn Fn(&ServerRequest) -> Option<Value> + Send + Sync>;

/// `initialize` data of the client, and its handler of server requests.
#[derive(Clone)]
pub struct ClientOptions {
    pub revision: &'static str,
    pub capabilities: Value,
    pub answer: ServerRequestHandler,
    /// Validates every message of the program against the published schema.
    pub validated: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { revision: "2025-11-25", capabilities: json!({}), answer: Arc::new(|_| None), validated: true }
    }
}

impl ClientOptions {
    /// Creates a client that declares every capability and answers with the request's marker and its own name.
    pub fn answering(name: &str) -> Self {
        let name = name.to_owned();
        Self {
            capabilities: json!({ "sampling": {}, "elicitation": {}, "roots": { "listChanged": true } }),
            answer: Arc::new(move |question| Some(obliging_answer(&name, question))),
            ..Self::default()
        }
    }

    /// Disables validation, for tests of servers whose invalid messages are relayed.
    #[must_use]
    pub fn unvalidated(mut self) -> Self {
        self.validated = false;
        self
    }

    /// Creates a client that declares every capability and never answers.
    pub fn silent() -> Self {
        Self { answer: Arc::new(|_| None), ..Self::answering("") }
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

fn obliging_answer(name: &str, question: &ServerRequest) -> Value {
    let marker = question.marker();
    match question.method.as_str() {
        "elicitation/create" => {
            json!({ "action": "accept", "content": { "answer": format!("{name}:{marker}") } })
        }
        "sampling/createMessage" => json!({
            "role": "assistant", "model": "none",
            "content": { "type": "text", "text": format!("{name}:{marker}") },
        }),
        _ => json!({ "roots": [{ "uri": format!("file:///{name}"), "name": marker }] }),
    }
}

/// A request from the server.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    pub id: Value,
    pub method: String,
    pub params: Value,
}

impl ServerRequest {
    /// Returns the text that the fixture's tool `ask` put into the request.
    pub fn marker(&self) -> String {
        let paths = ["/message", "/messages/0/content/text", "/_meta/marker"];
        let found = paths.iter().find_map(|path| self.params.pointer(path)?.as_str());
        found.unwrap_or_default().to_owned()
    }
}
