//! What the program says to a test's client, held against the published schema of the revision it speaks.

use parking_lot::Mutex;
use serde_json::Value;

use crate::schema::{self, Sender};

#[derive(Debug)]
pub(crate) struct Witness {
    /// Off for tests that relay what breaks the schema.
    on: bool,
    revision: Mutex<String>,
    violations: Mutex<Vec<String>>,
}

impl Witness {
    pub(crate) fn new(on: bool, revision: &str) -> Self {
        Self { on, revision: Mutex::new(revision.to_owned()), violations: Mutex::default() }
    }

    /// The answer to a request of this method; a violation is a panic.
    pub(crate) fn answer(&self, text: &str, method: &str) {
        let message: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("not JSON: {text}"));
        let settled = message["result"]["protocolVersion"].as_str().filter(|_| method == "initialize");
        if let Some(settled) = settled {
            settled.clone_into(&mut self.revision.lock());
        }
        self.see(&message, Some(method)).unwrap_or_else(|violation| panic!("{violation}"));
    }

    /// Something that nobody waits for; a violation is kept until the client is dropped.
    pub(crate) fn unasked(&self, message: &Value) {
        if let Err(violation) = self.see(message, None) {
            self.violations.lock().push(violation);
        }
    }

    fn see(&self, message: &Value, answered: Option<&str>) -> Result<(), String> {
        if !self.on {
            return Ok(());
        }
        let revision = self.revision.lock().clone();
        schema::check(&revision, Sender::Server, message, answered)
            .map_err(|violation| format!("hikite breaks the schema: {violation}"))
    }

    /// To be called where the test itself runs: a panic in a task would go unseen.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        let violations = self.violations.lock();
        assert!(violations.is_empty() || std::thread::panicking(), "{}", violations.join("\n"));
    }
}
