//! Report of a batch as one document: every task in the order of the plan, and the number of tasks per status.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::plan::{Plan, Task, TaskStatus};

use super::budget::Reservation;

/// Characters of an error message in the report. A tool may return a whole page as its error.
const ERROR_CHARS_MAX: usize = 1000;

/// The report of a finished batch or of a dry run.
#[derive(Clone, Debug)]
pub struct BatchReport {
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
pub(super) struct TaskEnd {
    pub(super) status: TaskStatus,
    pub(super) took: Duration,
    pub(super) error: Option<Error>,
    /// Reason why the task did not run: the id of another task, or `if`.
    pub(super) cause: Option<Arc<str>>,
    /// Part of the answer, if requested.
    pub(super) output: Option<Raw>,
    pub(super) content: Vec<Raw>,
    /// Reservation for the output and content in the answer.
    pub(super) hold: Option<Reservation>,
}

impl TaskEnd {
    /// Builds the end of a task that did not run to completion because of another.
    pub(super) fn because(status: TaskStatus, cause: Arc<str>) -> Self {
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

impl BatchReport {
    /// Builds the result of a `tools/call`.
    pub(crate) fn result(&self) -> Raw {
        let text = Object::default().with("type", "text").with("text", &*self.document.as_str()).raw();
        let result = Object::default()
            .with("content", Raw::array([&text].into_iter().chain(&self.content)))
            .with("structuredContent", self.document.clone());
        if self.failed { result.with("isError", Raw::of(&true)).raw() } else { result.raw() }
    }
}

pub(super) fn report(plan: &Plan, ended: Vec<TaskEnd>) -> BatchReport {
    let count = |status: TaskStatus| ended.iter().filter(|task| task.status == status).count();
    let summary = TaskStatus::ALL
        .into_iter()
        .fold(Object::default(), |all, status| all.with(status.name(), Raw::of(&count(status))));
    let failed = count(TaskStatus::Ok) == 0;
    let given_up = |(task, ended): (&Task, &TaskEnd)| match ended.status {
        TaskStatus::Timeout | TaskStatus::Cancelled => true,
        // The other elements were abandoned with the one that failed.
        TaskStatus::Error => task.for_each.is_some(),
        TaskStatus::Ok | TaskStatus::Skipped => false,
    };
    let is_over = !plan.tasks.iter().zip(&ended).any(given_up);
    let tasks: Vec<Raw> = plan.tasks.iter().zip(&ended).map(|(task, ended)| task_object(&task.id, ended)).collect();
    let document = Object::default().with("tasks", Raw::array(&tasks)).with("summary", summary).raw();
    BatchReport { document, content: ended.into_iter().flat_map(|task| task.content).collect(), failed, is_over }
}

fn task_object(id: &str, ended: &TaskEnd) -> Raw {
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
    let message: String = error.message.chars().take(ERROR_CHARS_MAX).collect();
    let shown = Object::default().with("code", error.code()).with("message", message);
    // A single call returns the schema with the error; here it would be repeated for every task.
    let hint = match (&error.schema, &error.hint) {
        (Some(_), _) if error.kind == ErrorKind::Validation => Some("Correct the params of this task."),
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
        for (micros, text) in
            [(0, "0"), (40, "0"), (60, "0.1"), (1_000, "1"), (12_340, "12.3"), (99_960, "100"), (123_556, "124")]
        {
            assert_eq!(milliseconds(Duration::from_micros(micros)), text);
        }
    }
}
