//! What became of a batch, as one document: every task in the order it was given, and how many ended in which way.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::plan::{Plan, Status, Task};

use super::budget::Hold;

/// How much of an error is told; a tool may answer with a page.
const WORDS: usize = 1000;

/// A batch that has ended, or what it would do.
#[derive(Clone, Debug)]
pub struct Report {
    /// `{tasks, summary}`, or `{waves, tasks}` where nothing was to run.
    pub document: Raw,
    /// Pictures and the like, which came beside the results that are in the document.
    pub content: Vec<Raw>,
    /// No task went well.
    pub failed: bool,
    /// No server is still at something that was given up.
    pub is_over: bool,
}

/// How one task ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: Status,
    pub(super) took: Duration,
    pub(super) error: Option<Error>,
    /// Why it did not run: the id of another task, or `if`.
    pub(super) cause: Option<Arc<str>>,
    /// What is in the answer, if it is wanted.
    pub(super) output: Option<Raw>,
    pub(super) content: Vec<Raw>,
    /// For what of it is in the answer.
    pub(super) hold: Option<Hold>,
}

impl Ended {
    /// Without having run to its end, because of another.
    pub(super) fn because(status: Status, cause: Arc<str>) -> Self {
        Self {
            status,
            took: Duration::ZERO,
            error: None,
            cause: Some(cause),
            output: None,
            content: Vec::new(),
            hold: None,
        }
    }
}

impl Report {
    /// The result of a `tools/call`.
    pub(crate) fn result(&self) -> Raw {
        let text = Object::default().with("type", "text").with("text", &*self.document.as_str()).raw();
        let result = Object::default()
            .with("content", Raw::array([&text].into_iter().chain(&self.content)))
            .with("structuredContent", self.document.clone());
        if self.failed { result.with("isError", Raw::of(&true)).raw() } else { result.raw() }
    }
}

pub(super) fn report(plan: &Plan, ended: Vec<Ended>) -> Report {
    let count = |status: Status| ended.iter().filter(|task| task.status == status).count();
    let summary = Status::ALL
        .into_iter()
        .fold(Object::default(), |all, status| all.with(status.name(), Raw::of(&count(status))));
    let failed = count(Status::Ok) == 0;
    let given_up = |(task, ended): (&Task, &Ended)| match ended.status {
        Status::Timeout | Status::Cancelled => true,
        // The other elements were given up with the one that failed.
        Status::Error => task.for_each.is_some(),
        Status::Ok | Status::Skipped => false,
    };
    let is_over = !plan.tasks.iter().zip(&ended).any(given_up);
    let tasks: Vec<Raw> = plan.tasks.iter().zip(&ended).map(|(task, ended)| told(&task.id, ended)).collect();
    let document = Object::default().with("tasks", Raw::array(&tasks)).with("summary", summary).raw();
    Report { document, content: ended.into_iter().flat_map(|task| task.content).collect(), failed, is_over }
}

fn told(id: &str, ended: &Ended) -> Raw {
    let mut task = Object::default().with("id", id).with("status", ended.status.name());
    if let Some(output) = &ended.output {
        task.set("result", output.clone());
    }
    if let Some(error) = &ended.error {
        task.set("error", error_of(error));
    }
    if let Some(cause) = &ended.cause {
        task.set("cause", &**cause);
    }
    task.with("ms", Raw::trusted(milliseconds(ended.took))).raw()
}

fn error_of(error: &Error) -> Object {
    let message: String = error.message.chars().take(WORDS).collect();
    let shown = Object::default().with("code", error.code()).with("message", message);
    // The schema that a single call is answered with would be told once per task.
    let hint = match (&error.schema, &error.hint) {
        (Some(_), _) if error.kind == Kind::Validation => Some("correct the params of this task"),
        (_, hint) => hint.as_deref(),
    };
    match hint {
        Some(hint) => shown.with("hint", hint),
        None => shown,
    }
}

/// With one decimal where that says something.
pub(super) fn milliseconds(took: Duration) -> String {
    let tenths = (took.as_micros() + 50) / 100;
    match (tenths / 10, tenths % 10) {
        (100.., _) => ((took.as_micros() + 500) / 1000).to_string(),
        (whole, 0) => whole.to_string(),
        (whole, rest) => format!("{whole}.{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_told_in_few_digits() {
        for (micros, text) in [
            (0, "0"),
            (40, "0"),
            (60, "0.1"),
            (1_000, "1"),
            (12_340, "12.3"),
            (99_960, "100"),
            (123_556, "124"),
        ] {
            assert_eq!(milliseconds(Duration::from_micros(micros)), text);
        }
    }
}
