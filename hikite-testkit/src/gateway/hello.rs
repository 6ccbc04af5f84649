//! What a test's client says of itself, and how it answers what it is asked.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};

/// How questions are answered; `None` leaves one open.
pub type Answer = Arc<dyn Fn(&Question) -> Option<Value> + Send + Sync>;

/// What the client says at `initialize`, and how it answers questions.
#[derive(Clone)]
pub struct Hello {
    pub revision: &'static str,
    pub capabilities: Value,
    pub answer: Answer,
    /// Whether everything the program says must keep to the published schema.
    pub validated: bool,
}

impl Default for Hello {
    fn default() -> Self {
        Self { revision: "2025-11-25", capabilities: json!({}), answer: Arc::new(|_| None), validated: true }
    }
}

impl Hello {
    /// A client that can be asked everything and answers with the marker it was asked with, under its own name.
    pub fn obliging(name: &str) -> Self {
        let name = name.to_owned();
        Self {
            capabilities: json!({ "sampling": {}, "elicitation": {}, "roots": { "listChanged": true } }),
            answer: Arc::new(move |question| Some(obliging_answer(&name, question))),
            ..Self::default()
        }
    }

    /// Takes whatever comes: for tests of servers that break the schema, which is relayed as it is.
    #[must_use]
    pub fn unvalidated(mut self) -> Self {
        self.validated = false;
        self
    }

    /// Can be asked everything and never answers.
    pub fn silent() -> Self {
        Self { answer: Arc::new(|_| None), ..Self::obliging("") }
    }
}

impl fmt::Debug for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hello").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

fn obliging_answer(name: &str, question: &Question) -> Value {
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

/// What the server asked.
#[derive(Debug, Clone)]
pub struct Question {
    pub id: Value,
    pub method: String,
    pub params: Value,
}

impl Question {
    /// The text that the fixture's tool `ask` put into the question.
    pub fn marker(&self) -> String {
        let paths = ["/message", "/messages/0/content/text", "/_meta/marker"];
        let found = paths.iter().find_map(|path| self.params.pointer(path)?.as_str());
        found.unwrap_or_default().to_owned()
    }
}
