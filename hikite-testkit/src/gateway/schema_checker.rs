//! Validation of the program's messages against the published schema of the negotiated revision.

use parking_lot::Mutex;
use serde_json::Value;

use crate::schema::{self, MessageSender};

#[derive(Debug)]
pub(crate) struct SchemaChecker {
    /// `false` in tests that relay invalid messages.
    on: bool,
    revision: Mutex<String>,
    violations: Mutex<Vec<String>>,
}

impl SchemaChecker {
    pub(crate) fn new(on: bool, revision: &str) -> Self {
        Self { on, revision: Mutex::new(revision.to_owned()), violations: Mutex::default() }
    }

    /// Validates the response to a request of this method; panics on a violation.
    pub(crate) fn answer(&self, text: &str, method: &str) {
        let message: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("not JSON: {text}"));
        let settled = message["result"]["protocolVersion"].as_str().filter(|_| method == "initialize");
        if let Some(settled) = settled {
            settled.clone_into(&mut self.revision.lock());
        }
        self.see(&message, Some(method)).unwrap_or_else(|violation| panic!("{violation}"));
    }

    /// Validates an unsolicited message; a violation is reported when the client is dropped.
    pub(crate) fn unsolicited(&self, message: &Value) {
        if let Err(violation) = self.see(message, None) {
            self.violations.lock().push(violation);
        }
    }

    fn see(&self, message: &Value, answered: Option<&str>) -> Result<(), String> {
        if !self.on {
            return Ok(());
        }
        let revision = self.revision.lock().clone();
        schema::check(&revision, MessageSender::Server, message, answered)
            .map_err(|violation| format!("hikite breaks the schema: {violation}"))
    }

    /// Panics on recorded violations. Called by the test itself, because a panic in a task would go unnoticed.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        let violations = self.violations.lock();
        assert!(violations.is_empty() || std::thread::panicking(), "{}", violations.join("\n"));
    }
}
