//! Rendering of results: as the tool returned them, a selected part, or compact. A result that does not fit is stored
//! under a handle. A result that needs no rendering is not parsed.

mod omission;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::compact::{AnswerFormat, CompactText, Shape, compact, parse};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::selector::{JqRunner, Selector};
use hikite_core::share::ShareHolder;
use hikite_core::tool_output::{ToolOutput, wrap_value};
use serde_json::Value;

use crate::command::Dialect;
use crate::gateway::Gateway;
use crate::handle::{ResultOwner, is_on_first_page};
use crate::off_worker::off_worker;
use crate::surface::execution_result;
use omission::{READ_ON_BYTES, read_on, read_on_instead};

/// `_meta` member that describes a compact result.
pub(crate) const META: &str = "hikite/answer";

/// Maximum number of member names in an error hint.
const KEYS: usize = 20;

/// Cost of shaping and of compacting a byte, relative to reading it.
const SHAPE_COST: usize = 4;
const COMPACT_COST: usize = 2;

/// Output options of a call. Unset options are decided by the project and by the tool's source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputOptions {
    pub format: Option<AnswerFormat>,
    pub select: Option<Selector>,
}

/// A compact value and its description.
#[derive(Debug)]
pub(crate) struct CompactOutput {
    pub(crate) text: String,
    pub(crate) about: Object,
}

impl CompactOutput {
    pub(crate) fn of((compacted, handle): (CompactText, Option<String>)) -> Self {
        let mut about = Object::default().with("form", compacted.form.name());
        if let Some(handle) = handle {
            about.set("handle", handle);
        }
        Self { text: compacted.text, about }
    }
}

impl Gateway {
    /// Sets the jq runner. Call once.
    pub fn set_jq_runner(&self, jq_runner: Arc<dyn JqRunner>) {
        let _ = self.jq_runner.set(jq_runner);
    }

    /// Returns `true` if results are relayed unchanged: neither the call nor the project asks for another form.
    pub(crate) fn relays(&self, wanted: &OutputOptions, caller: &Caller) -> bool {
        wanted.select.is_none() && self.format_for(wanted, caller) == AnswerFormat::Raw
    }

    /// Returns the shape that the tool's author defined for the result; `None` if the caller or project wants the raw
    /// result, or the caller selects a part.
    pub(crate) async fn shape_of(
        &self,
        key: Option<&ToolKey>,
        arguments: Option<&Raw>,
        result: &Raw,
        wanted: &OutputOptions,
        caller: &Caller,
    ) -> Option<Shape> {
        if wanted.select.is_some() || self.explicit_format(wanted, caller) == Some(AnswerFormat::Raw) {
            return None;
        }
        let key = key?;
        let view = self.view_of(caller);
        let source = &view.module(&key.module)?.source;
        let cost = result.bytes().len().saturating_mul(SHAPE_COST);
        let made = off_worker(cost, || source.shape(&key.tool, arguments, result)).await?;
        Some(Shape::Prepared(Arc::new(made)))
    }

    /// Renders the result of a `tools/call`. Intermediate results and errors stay unchanged.
    pub(crate) async fn present(
        &self,
        result: Raw,
        dialect: Dialect,
        (wanted, shape): (&OutputOptions, Option<&Shape>),
        holder: &ResultOwner,
    ) -> Result<Raw, Error> {
        let format = shape.map_or_else(|| self.format_for(wanted, holder.caller()), |_| AnswerFormat::Compact);
        if wanted.select.is_none() && format == AnswerFormat::Raw {
            let cost = if dialect == Dialect::Value { result.bytes().len() } else { 0 };
            return Ok(off_worker(cost, || in_dialect(result, dialect)).await);
        }
        let members = off_worker(result.bytes().len(), || result.object().unwrap_or_default()).await;
        if members.get("content").is_none() && members.get("structuredContent").is_none() {
            return Ok(result);
        }
        let answer = off_worker(result.bytes().len(), || ToolOutput::read(&result)).await;
        if answer.failed {
            return Ok(in_dialect(result, dialect));
        }
        let before = answer.value.bytes().len();
        let value = match &wanted.select {
            Some(selector) => {
                let selected = self.select(selector, answer.value.clone(), holder.caller()).await;
                selected.map_err(|error| self.with_stored_result(error, &answer.value, dialect, holder))?
            }
            None => answer.value,
        };
        if format == AnswerFormat::Raw {
            let cost = value.bytes().len().saturating_mul(COMPACT_COST);
            let made = || in_dialect(selected(&members, &value, &answer.others), dialect);
            return Ok(off_worker(cost, made).await);
        }
        let budget = self.limits.compact_bytes;
        let mut presented = CompactOutput::of(self.shortened(dialect, &value, shape, budget, holder).await);
        presented.about.set("bytes", Raw::of(&[before, presented.text.len()]));
        // A result with images only has no text.
        let text = (!value.is_null() || answer.others.is_empty()).then_some(presented.text.as_str());
        Ok(compacted(&members, text, presented.about, dialect, &answer.others))
    }

    /// Applies a selector to a value.
    pub(crate) async fn select(&self, selector: &Selector, value: Raw, caller: &Caller) -> Result<Raw, Error> {
        match selector {
            Selector::Fields(fields) => {
                let cost = value.bytes().len().saturating_mul(fields.cost());
                off_worker(cost, || Ok(Raw::of(&fields.pick(&parse(&value))?))).await
            }
            Selector::Path(path) => off_worker(value.bytes().len(), || Ok(Raw::of(&path.pick(&parse(&value))?))).await,
            Selector::Jq(program) => {
                let Some(jq_runner) = self.jq_runner.get() else {
                    return Err(Error::new(ErrorKind::Validation, "jq is not available here.")
                        .hint("Use plain fields (`title,user.login`) or a plain path (`.items[0]`)."));
                };
                let holder = ShareHolder::from(caller);
                let _place = self.jq.wait(&holder, (), self.limits.jq_timeout).await?;
                let outcome = jq_runner.run(Arc::clone(program), value.clone()).await;
                outcome.map_err(|error| match error.kind {
                    ErrorKind::Validation if error.hint.is_none() => error.hint(describe_members(&value)),
                    _ => error,
                })
            }
        }
    }

    /// Compacts a value, and stores the whole under a handle if it does not fit. The end of the text says what is
    /// missing and how to read on.
    pub(crate) async fn compact(
        &self,
        value: &Raw,
        shape: Option<&Shape>,
        budget: usize,
        holder: &ResultOwner,
    ) -> (CompactText, Option<String>) {
        self.shortened(Dialect::Result, value, shape, budget, holder).await
    }

    pub(crate) async fn shortened(
        &self,
        dialect: Dialect,
        value: &Raw,
        shape: Option<&Shape>,
        budget: usize,
        holder: &ResultOwner,
    ) -> (CompactText, Option<String>) {
        let cost = value.bytes().len().saturating_mul(COMPACT_COST);
        off_worker(cost, || self.shorten(dialect, value, shape, budget, holder)).await
    }

    fn shorten(
        &self,
        dialect: Dialect,
        value: &Raw,
        shape: Option<&Shape>,
        budget: usize,
        holder: &ResultOwner,
    ) -> (CompactText, Option<String>) {
        // A value with a finished shape is not parsed again.
        let parsed = if matches!(shape, Some(Shape::Prepared(_))) { Value::Null } else { parse(value) };
        let whole = compact(&parsed, shape, budget);
        if whole.left_out.is_none() {
            return (whole, None);
        }
        // The closing line needs room within the budget.
        let mut short = compact(&parsed, shape, budget.saturating_sub(READ_ON_BYTES));
        let left_out = short.left_out.clone().unwrap_or_default();
        let Some(id) = self.store_result(value, shape, holder) else {
            short.text.push_str(&read_on_instead(&left_out));
            return (short, None);
        };
        // Page 1 can be skipped if all of it is in the text.
        let seen = is_on_first_page(&parsed, shape, &short, self.limits.compact_bytes);
        short.text.push_str(&read_on(&left_out, &id, if seen { 2 } else { 1 }, dialect));
        (short, Some(crate::handle::result_uri(&id)))
    }

    /// Returns the format of the call, else compact if it selects, else the project's format.
    fn format_for(&self, wanted: &OutputOptions, caller: &Caller) -> AnswerFormat {
        let meant = wanted.select.as_ref().map(|_| AnswerFormat::Compact);
        wanted.format.or(meant).or_else(|| self.explicit_format(wanted, caller)).unwrap_or(AnswerFormat::Raw)
    }

    /// Returns the format that the call or its project sets explicitly.
    fn explicit_format(&self, wanted: &OutputOptions, caller: &Caller) -> Option<AnswerFormat> {
        let own = || caller.project.is_some().then(|| self.project_of(caller)?.format).flatten();
        wanted.format.or_else(own)
    }

    /// Adds to an error that the tool has run, and where its result is stored, so that nobody calls it again just to
    /// see the result.
    fn with_stored_result(&self, error: Error, value: &Raw, dialect: Dialect, holder: &ResultOwner) -> Error {
        let hint = error.hint.clone().unwrap_or_default();
        let ran = match self.store_result(value, None, holder) {
            Some(id) => omission::ran(&id, dialect),
            None => "The tool has run.".to_owned(),
        };
        error.hint(if hint.is_empty() { ran } else { format!("{hint} {ran}") })
    }
}

/// Converts a relayed result to the dialect of the tool that was used.
pub(crate) fn in_dialect(result: Raw, dialect: Dialect) -> Raw {
    match dialect {
        Dialect::Result => result,
        Dialect::Value => execution_result(result),
    }
}

/// Builds a result around the selected part of its value.
fn selected(members: &Object, value: &Raw, others: &[Raw]) -> Raw {
    let mut result = wrap_value(value).object().unwrap_or_default();
    let mut content = result.get("content").and_then(Raw::items).unwrap_or_default();
    content.extend_from_slice(others);
    result.set("content", Raw::array(&content));
    with_other_members(&result, members).raw()
}

fn compacted(members: &Object, text: Option<&str>, about: Object, dialect: Dialect, others: &[Raw]) -> Raw {
    let block = text.map(|text| Object::default().with("type", "text").with("text", text).raw());
    let mut result = Object::default().with("content", Raw::array(block.iter().chain(others)));
    if dialect == Dialect::Value {
        let value = text.map_or_else(Raw::null, Raw::from);
        result.set("structuredContent", Object::default().with("result", value));
    }
    let mut result = with_other_members(&result, members);
    let meta = result.get("_meta").and_then(Raw::object).unwrap_or_default();
    result.set("_meta", meta.with(META, about));
    result.raw()
}

/// Copies the other members of the original result.
pub(crate) fn with_other_members(result: &Object, members: &Object) -> Object {
    let rest = members.iter().filter(|(name, _)| !matches!(*name, "content" | "structuredContent"));
    result.iter().chain(rest).map(|(name, value)| (name.into(), value.clone())).collect()
}

/// Describes the available members for a model.
fn describe_members(value: &Raw) -> String {
    let keys = |members: &serde_json::Map<String, Value>| {
        let names: Vec<String> = members.keys().take(KEYS).map(|name| format!("`{name}`")).collect();
        let more = if members.len() > KEYS { " and more" } else { "" };
        format!("{}{more}", names.join(", "))
    };
    match parse(value) {
        Value::Object(members) if members.is_empty() => "The result is an empty object.".to_owned(),
        Value::Object(members) => format!("The result has {}.", keys(&members)),
        Value::Array(items) => match items.first() {
            None => "The result is an empty list.".to_owned(),
            Some(Value::Object(members)) => {
                format!("The result is a list of {}, the first of which has {}.", items.len(), keys(members))
            }
            Some(_) => format!("The result is a list of {}.", items.len()),
        },
        Value::String(_) => "The result is a string.".to_owned(),
        _ => "The result is a single value.".to_owned(),
    }
}
