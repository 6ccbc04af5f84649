//! Tools as a call needs them: the lookup in the caller's view, and the check of the arguments.

use std::sync::Arc;

use hikite_core::call_policy::{CallPolicy, ToolHints};
use hikite_core::catalog::{Tool, schema_of};
use hikite_core::category::CategoryLookup;
use hikite_core::check::{ArgumentChecker, CheckOutcome};
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::tool_selection::PresetArgument;
use hikite_core::view::{self, View};
use hikite_core::violation;

use crate::command::ToolTarget;
use crate::off_worker::off_worker;

/// A tool that may be called, with everything needed to call it.
pub(super) struct Callable {
    pub(super) key: ToolKey,
    pub(super) arguments: Arc<[PresetArgument]>,
    /// Definition shown to the caller and the checker of the arguments; `None` until the server has returned its tool
    /// list.
    pub(super) shown: Option<(Raw, Arc<ArgumentChecker>)>,
    pub(super) hints: ToolHints,
    pub(super) policy: CallPolicy,
    /// Name of the call in the audit record.
    pub(super) what: String,
}

pub(super) fn in_category(view: &View, category: &str, name: &str) -> Result<Callable, Error> {
    let category = view.category(category).map_err(|error| error.named("UnknownCategory"))?;
    let what = format!("{}/{name}", category.rule.name);
    match category.find(name) {
        CategoryLookup::Found(entry) => Ok(Callable {
            key: entry.key.clone(),
            arguments: Arc::clone(&entry.arguments),
            shown: view.tool_by_key(&entry.key).map(|tool| (entry.definition.clone(), Arc::clone(&tool.checker))),
            hints: entry.hints,
            policy: entry.policy,
            what,
        }),
        // No annotation is assumed for a tool whose definition is unknown.
        CategoryLookup::Unlisted { key, arguments, policy } => {
            Ok(Callable { key, arguments: arguments.into(), shown: None, hints: ToolHints::default(), policy, what })
        }
        CategoryLookup::Disabled(off) => Err(off.error(name).named("ToolDisabled")),
        CategoryLookup::ServerUnlisted(server) => {
            let untold = view.listed_module(&server).map(drop).err();
            Err(untold.unwrap_or_else(|| view::unknown_tool(name, [].into_iter())).named("UpstreamUnavailable"))
        }
        CategoryLookup::Unknown => {
            let known = category.enabled().map(|entry| &*entry.name);
            let error = view::unknown_tool(name, known).named("UnknownTool");
            let hint = format!("`get-category-tools` with `{}` lists its tools.", category.rule.name);
            Err(if error.hint.is_some() { error } else { error.hint(hint) })
        }
    }
}

/// Repeats a lookup in another view.
pub(super) fn look_up_in(view: &View, target: &ToolTarget) -> Result<(), Error> {
    match target {
        ToolTarget::Named(name) => view.tool(name).map(drop),
        ToolTarget::Keyed(key) => view.tool_of(key).map(drop),
        ToolTarget::InCategory { category, name } => in_category(view, category, name).map(drop),
    }
}

pub(super) fn callable(tool: &Tool) -> Callable {
    Callable {
        key: tool.key.clone(),
        arguments: Arc::clone(&tool.arguments),
        shown: Some((tool.definition.clone(), Arc::clone(&tool.checker))),
        hints: tool.hints,
        policy: tool.policy,
        what: tool.key.to_string(),
    }
}

/// Validates the arguments against the tool's own schema. A failure carries the schema shown to the caller, so that a
/// model can correct itself.
pub(super) async fn check(callable: &Callable, params: &mut Object) -> Result<(), Error> {
    let Some((definition, checker)) = &callable.shown else { return Ok(()) };
    let arguments = params.get("arguments");
    let verdict = off_worker(checker.cost(arguments), || checker.check(arguments)).await;
    if let Some(problem) = checker.problem_once() {
        tracing::warn!(tool = %callable.key, problem, "the tool's schema is invalid; its arguments are not checked");
    }
    match verdict {
        Ok(CheckOutcome::AsSent) => Ok(()),
        Ok(CheckOutcome::Changed(arguments)) => {
            params.set("arguments", arguments);
            Ok(())
        }
        Err(faults) => {
            let hint = "Correct the arguments; `schema` is the schema they must match.";
            Err(Error { schema: schema_of(definition), ..violation::error(&faults).hint(hint) })
        }
    }
}
