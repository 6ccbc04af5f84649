//! Report of a batch as one document: every task in the order of the plan, and the number of tasks per status.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::plan::{Plan, Status, Task};

use super::budget::Hold;

/// Characters of an error message in the report. A tool may return a whole page as its error.
const WORDS: usize = 1000;

/// The report of a finished batch or of a dry run.
#[derive(Clone, Debug)]
pub struct Report {
    /// `{tasks, summary}`, or `{waves, tasks}` for a dry run.
    pub document: Raw,
    /// Images and other content blocks that accompany the results in the document.
    pub content: Vec<Raw>,
    /// `true` if no task succeeded.
    pub failed: bool,
    /// `true` if no server may still be working on an abandoned call.
    pub is_over: bool,
}

/// The end of one task.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: Status,
    pub(super) took: Duration,
    pub(super) error: Option<Error>,
    /// Reason why the task did not run: the id of another task, or `if`.
    pub(super) cause: Option<Arc<str>>,
    /// Part of the answer, if requested.
    pub(super) output: Option<Raw>,
    pub(super) content: Vec<Raw>,
    /// Reservation for the output and content in the answer.
    pub(super) hold: Option<Hold>,
}

impl Ended {
    /// Builds the end of a task that did not run to completion because of another.
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
    /// Builds the result of a `tools/call`.
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
        // The other elements were abandoned with the one that failed.
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
    // A single call returns the schema with the error; here it would be repeated for every task.
    let hint = match (&error.schema, &error.hint) {
        (Some(_), _) if error.kind == Kind::Validation => Some("correct the params of this task"),
        (_, hint) => hint.as_deref(),
    };
    match hint {
        Some(hint) => shown.with("hint", hint),
        None => shown,
    }
}

/// Formats a duration with one decimal below 100 ms.
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
