//! Validation of a batch before it runs. Tools are looked up in the caller's view only: a hidden tool is reported,
//! suggested and waited for exactly like an absent one.

use hikite_core::caller::{Caller, Scopes, Session};
use hikite_core::catalog::Tool;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::key::ToolKey;
use hikite_core::permission::Permissions;
use hikite_core::plan::{Plan, Task};
use hikite_core::risk::Risk;
use hikite_core::suggestion;
use hikite_core::tool_selection::preset;
use hikite_core::view::View;
use hikite_core::violation::{self, Violation};
use serde_json::Value;

use super::Batch;
use crate::gateway::Gateway;
use crate::off_worker::off_worker;
use crate::snapshot::Snapshot;

/// Largest number of faults listed; further ones are counted.
const FAULTS: usize = 50;

/// Cost of parsing one byte of the tasks, relative to plain JSON. `NAME_COST` is the cost of comparing one name.
const READ_COST: usize = 2;
const NAME_COST: usize = 32;

const HINT: &str = "Nothing was run. Correct the tasks and send the batch again.";

const UNAVAILABLE_HINT: &str = "Nothing was run. Send the batch again when the servers it uses are available.";

/// A plan that passed all checks.
pub(super) struct CheckedPlan {
    pub(super) plan: Plan,
    /// Risk of each task.
    pub(super) risks: Vec<Risk>,
}

impl Gateway {
    pub(super) async fn check_batch(&self, batch: &Batch, session: &Session) -> Result<CheckedPlan, Error> {
        let caller = &session.caller;
        let cost = batch.commands.bytes().len();
        let read = || Plan::read(&batch.commands, batch.on_error, self.limits.batch_tasks);
        let plan = off_worker(cost.saturating_mul(READ_COST), read)
            .await
            .map_err(|faults| refused(ErrorKind::Validation, faults))?;
        let keys: Vec<&ToolKey> = plan.tasks.iter().map(|task| &task.tool).collect();
        self.wait_for_tools(session.into(), &keys).await;
        let snapshot = self.snapshot_for(session);
        let view = snapshot.view_of(caller);
        let (mut faults, mut risks) = (Vec::new(), Vec::with_capacity(plan.tasks.len()));
        let mut kinds = Vec::new();
        for (at, task) in plan.tasks.iter().enumerate() {
            let cost = match view.tool_by_key(&task.tool) {
                Some(tool) => tool.checker.template_cost(task.params.cost()),
                // Faults beyond the limit need no message.
                None if faults.len() >= FAULTS && !is_shown(&view, &task.tool) => {
                    faults.push(Violation::new(format!("/commands/{at}/tool"), ""));
                    kinds.push(ErrorKind::Validation);
                    continue;
                }
                // Similar names are searched for the suggestion.
                None => view.enabled_tools().count().saturating_mul(NAME_COST),
            };
            let check = || match self.check_task(&snapshot, caller, (at, task)) {
                Ok(risk) => risks.push(risk),
                Err((kind, more)) => {
                    kinds.push(kind);
                    faults.extend(more);
                }
            };
            off_worker(cost, check).await;
        }
        if faults.is_empty() { Ok(CheckedPlan { plan, risks }) } else { Err(refused(kind_of(&kinds), faults)) }
    }

    /// Returns the risk of a valid task, or all its faults and their kind.
    fn check_task(
        &self,
        snapshot: &Snapshot,
        caller: &Caller,
        (at, task): (usize, &Task),
    ) -> Result<Risk, (ErrorKind, Vec<Violation>)> {
        let view = snapshot.view_of(caller);
        let no_tool = |error: &Error| (error.kind, vec![no_tool(&view, caller, (at, task), error)]);
        let tool = view.tool_of(&task.tool).map_err(|error| no_tool(&error))?;
        if let Err((field, error)) = self.check_account(snapshot, caller, task, tool) {
            let message = format!("task `{}`: {}", task.id, error.message);
            return Err(match field {
                "tool" => no_tool(&error),
                _ => (ErrorKind::Validation, vec![Violation::new(format!("/commands/{at}/{field}"), message)]),
            });
        }
        let faults = params(tool, task, at);
        if faults.is_empty() { Ok(tool.risk) } else { Err((ErrorKind::Validation, faults)) }
    }
}

impl Gateway {
    /// Checks that the account of a task exists and allows its tool. The error names the faulty member.
    fn check_account(
        &self,
        snapshot: &Snapshot,
        caller: &Caller,
        task: &Task,
        tool: &Tool,
    ) -> Result<(), (&'static str, Error)> {
        let view = snapshot.view_of(caller);
        let Some(module) = view.module(&tool.key.module) else { return Ok(()) };
        let chosen = self.account_for(caller, module, task.account.as_deref());
        let chosen = chosen.map_err(|error| ("account", error))?;
        let allows = |mask: &Permissions| mask.allows(&tool.key, tool.risk);
        match Self::restricted_view(snapshot, (caller, module), chosen.as_ref(), allows) {
            Some(view) => view.tool_of(&task.tool).map(drop).map_err(|error| ("tool", error)),
            None => Ok(()),
        }
    }
}

/// Returns `true` if some tool is shown under this name instead of its own.
fn is_shown(view: &View, key: &ToolKey) -> bool {
    view.module(&key.module).is_some_and(|module| module.tools.iter().any(|tool| tool.name == key.tool))
}

/// Returns the error kind of a refused batch: an unavailable server only if nothing is wrong with the tasks themselves.
fn kind_of(kinds: &[ErrorKind]) -> ErrorKind {
    let is_unavailable = |kind: &ErrorKind| matches!(kind, ErrorKind::UpstreamUnavailable | ErrorKind::AccountRequired);
    match kinds {
        [] => ErrorKind::Validation,
        [first, others @ ..] if is_unavailable(first) && others.iter().all(|other| other == first) => *first,
        _ if kinds.iter().all(is_unavailable) => ErrorKind::UpstreamUnavailable,
        _ => ErrorKind::Validation,
    }
}

fn refused(kind: ErrorKind, mut faults: Vec<Violation>) -> Error {
    let more = faults.len().saturating_sub(FAULTS);
    faults.truncate(FAULTS);
    if more > 0 {
        faults.push(Violation::new("/commands", format!("and {more} more")));
    }
    let hint = if kind == ErrorKind::Validation { HINT } else { UNAVAILABLE_HINT };
    Error { kind, ..violation::error(&faults).hint(hint) }
}

/// Reports a tool that is absent or disabled. Callers without the read scope get no suggestions.
fn no_tool(view: &View, caller: &Caller, (at, task): (usize, &Task), error: &Error) -> Violation {
    let hint = match error.kind {
        ErrorKind::ToolNotFound if !caller.scopes.contains(Scopes::READ) => None,
        ErrorKind::ToolNotFound => near(view, &task.tool),
        _ => error.hint.as_deref().map(str::to_owned),
    };
    let hint = hint.map(|hint| format!(" {hint}")).unwrap_or_default();
    Violation::new(format!("/commands/{at}/tool"), format!("task `{}`: {}{hint}", task.id, error.message))
}

/// Suggests a tool of the same module, or one of another module with a similar name.
fn near(view: &View, key: &ToolKey) -> Option<String> {
    let same = |tool: &&Tool| tool.key.module == key.module;
    let own: Vec<&str> = view.enabled_tools().filter(same).map(|tool| &*tool.key.tool).collect();
    if !own.is_empty() {
        return suggestion::did_you_mean(&key.tool, own);
    }
    let keys: Vec<String> = view.enabled_tools().map(|tool| tool.key.to_string()).collect();
    suggestion::did_you_mean(&key.to_string(), keys.iter().map(String::as_str))
}

/// Checks the params, as far as they are known before the run, against the tool's own schema.
fn params(tool: &Tool, task: &Task, at: usize) -> Vec<Violation> {
    let (written, filled) = task.params.as_written();
    let verdict = if tool.arguments.is_empty() {
        tool.checker.check_template(written, &filled)
    } else {
        tool.checker.check_template(&preset_in(tool, written), &filled)
    };
    let told = |fault: Violation| {
        let pointer = format!("/commands/{at}/params{}", fault.pointer);
        Violation::new(pointer, format!("task `{}`: {}", task.id, fault.message))
    };
    verdict.err().into_iter().flatten().map(told).collect()
}

/// Applies preset arguments to the params. Params that are one reference as a whole stay unchanged.
fn preset_in(tool: &Tool, written: &Value) -> Value {
    let Some(mut arguments) = Raw::of(written).object() else { return written.clone() };
    preset(&tool.arguments, &mut arguments);
    arguments.raw().value()
}
