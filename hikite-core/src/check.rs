//! Checks call arguments against the tool's schema, which is compiled once. Reports all violations at once and repairs
//! unambiguous mistakes. Valid arguments keep their bytes.

mod coercion;
mod document;
mod draft;
mod edit;
mod fill;
mod keyword;
mod pattern;
mod read;
mod report;
mod schema;
mod survey;
mod wildcard;
mod work_estimate;
mod wrapper;

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::json::Raw;
use crate::violation::Violation;
use draft::ArgumentDraft;
use schema::CompiledSchema;

/// Maximum rounds of repair: a coerced string may contain further values to coerce.
const ROUNDS: usize = 4;
/// Schema steps that cost no more than parsing the arguments.
const STEPS_FREE: usize = 16;
/// Cost of compiling one byte of schema, in bytes of arguments checked.
const COMPILE_COST: usize = 32;
/// Minimum cost of compiling: a short pattern may expand to a large automaton.
const COMPILE_COST_MIN: usize = 64 << 10;

const TOO_MUCH: &str =
    "the arguments are too large to be checked against the tool's schema; send fewer or smaller values";

const TOO_MUCH_BACKTRACKING: &str = "the strings are too long for a pattern with lookaround or backreferences in the tool's schema; send fewer or \
 shorter strings";

/// Checks the arguments of one tool. Cheap to create: the first call compiles the schema.
pub struct ArgumentChecker {
    source: Option<Raw>,
    compiled: OnceLock<Result<CompiledSchema, String>>,
    is_reported: AtomicBool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// Relay the bytes as received.
    AsSent,
    /// Relay these bytes instead: unwrapped, coerced, or with defaults filled in.
    Changed(Raw),
}

impl ArgumentChecker {
    /// Takes the tool's `inputSchema`. A missing schema, or one that is not an object, accepts everything.
    pub fn new(schema: Option<Raw>) -> Self {
        Self { source: schema.filter(Raw::is_object), compiled: OnceLock::new(), is_reported: AtomicBool::new(false) }
    }

    pub fn check(&self, arguments: Option<&Raw>) -> Result<CheckOutcome, Vec<Violation>> {
        let Some(schema) = self.schema() else { return Ok(CheckOutcome::AsSent) };
        let mut draft = ArgumentDraft::read(arguments)?;
        if !is_affordable(schema, &draft) {
            return Err(vec![Violation::new("", schema.too_much_message())]);
        }
        if passes(schema, &draft) {
            return Ok(finish(schema, draft));
        }
        if let Some(opened) = wrapper::text(&draft) {
            draft = opened?;
        }
        let sent = draft.raw.clone();
        let outcome = repair(schema, &mut draft);
        if outcome == RepairOutcome::Yes {
            return Ok(finish(schema, draft));
        }
        for mut inner in wrapper::wrappers(schema, sent) {
            if repair(schema, &mut inner) == RepairOutcome::Yes {
                return Ok(finish(schema, inner));
            }
        }
        let mut faults = report::faults(schema, &draft.value);
        if outcome == RepairOutcome::TooMany {
            faults.push(Violation::new("", coercion::too_many(faults.len())));
        }
        Err(faults)
    }

    /// Estimates the cost of a check, in bytes of arguments for a trivial schema. Callers compare it with the cost of
    /// moving to another thread.
    pub fn cost(&self, arguments: Option<&Raw>) -> usize {
        self.template_cost(arguments.map_or(0, |raw| raw.bytes().len()))
    }

    /// Checks arguments that contain unresolved references at the `filled` JSON Pointers. Reports only violations that
    /// no value of the references could fix.
    pub fn check_template(&self, value: &Value, filled: &[String]) -> Result<(), Vec<Violation>> {
        let Some(schema) = self.schema() else { return Ok(()) };
        read::within_depth(value).map_err(|why| vec![Violation::new("", why)])?;
        if !schema.is_affordable(value, work_estimate::count(value)) {
            return Err(vec![Violation::new("", schema.too_much_message())]);
        }
        if value.is_object() && schema.is_valid(value) {
            return Ok(());
        }
        wildcard::check(schema, value, filled)
    }

    /// Estimates the cost of checking unresolved arguments of this size.
    pub fn template_cost(&self, bytes: usize) -> usize {
        let Some(source) = &self.source else { return 0 };
        match self.compiled.get() {
            Some(Ok(schema)) => bytes.saturating_mul(1 + schema.steps() / STEPS_FREE),
            Some(Err(_)) => 0,
            None => source.bytes().len().saturating_mul(COMPILE_COST).max(COMPILE_COST_MIN).saturating_add(bytes),
        }
    }

    /// Returns the reason why nothing is checked, once the first call has found the schema to be broken.
    pub fn problem(&self) -> Option<&str> {
        self.compiled.get()?.as_ref().err().map(String::as_str)
    }

    /// Returns the problem to the first caller only, so that it is logged once.
    pub fn problem_once(&self) -> Option<&str> {
        self.problem().filter(|_| !self.is_reported.swap(true, Ordering::Relaxed))
    }

    /// Compiles the schema now and returns its problem, if any.
    pub fn find_problem(&self) -> Option<&str> {
        self.schema();
        self.problem()
    }

    fn schema(&self) -> Option<&CompiledSchema> {
        let source = self.source.as_ref()?;
        self.compiled.get_or_init(|| CompiledSchema::compile(source)).as_ref().ok()
    }
}

impl fmt::Debug for ArgumentChecker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentChecker").field("schema", &self.source).finish_non_exhaustive()
    }
}

fn passes(schema: &CompiledSchema, draft: &ArgumentDraft) -> bool {
    draft.value.is_object() && schema.is_valid(&draft.value)
}

/// Outcome of a repair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RepairOutcome {
    Yes,
    No,
    TooMany,
}

/// Coerces invalid values until the whole is valid or nothing is left to coerce.
fn repair(schema: &CompiledSchema, draft: &mut ArgumentDraft) -> RepairOutcome {
    for _ in 0..ROUNDS {
        if passes(schema, draft) {
            return RepairOutcome::Yes;
        }
        let Some(edits) = coercion::edits(schema, draft) else { return RepairOutcome::TooMany };
        if edits.is_empty() {
            return RepairOutcome::No;
        }
        draft.apply(&edits);
        // Values unpacked from a string now count as well.
        if !is_affordable(schema, draft) {
            return RepairOutcome::No;
        }
    }
    if passes(schema, draft) { RepairOutcome::Yes } else { RepairOutcome::No }
}

/// Returns `true` if the check is affordable. Every value takes at least two bytes, with its comma.
fn is_affordable(schema: &CompiledSchema, draft: &ArgumentDraft) -> bool {
    schema.is_affordable(&draft.value, draft.raw.bytes().len() / 2 + 1)
}

fn finish(schema: &CompiledSchema, mut draft: ArgumentDraft) -> CheckOutcome {
    fill::defaults(schema, &mut draft);
    draft.finish()
}

#[cfg(test)]
mod tests;
