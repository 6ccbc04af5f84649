//! Arguments of a call held against the tool's schema: compiled once, all faults told at once, and what was
//! certainly meant set right. Arguments that pass keep their bytes.

mod coerce;
mod complain;
mod document;
mod draft;
mod edit;
mod fill;
mod pattern;
mod read;
mod schema;
mod shape;
mod survey;
mod unwrap;
mod wildcard;
mod work;

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::fault::Fault;
use crate::json::Raw;
use draft::Draft;
use schema::Schema;

/// A coerced string may hold further values to coerce; nobody wraps deeper than this.
const ROUNDS: usize = 4;
/// Steps of a schema that reading its arguments takes as well.
const STEPS_FREE: usize = 16;
/// To compile a byte of a schema takes as long as to check so many bytes of arguments.
const COMPILE_COST: usize = 32;
/// However short it is: a pattern of few bytes may stand for very many.
const COMPILE_COST_MIN: usize = 64 << 10;

const TOO_MUCH: &str =
    "the arguments are too large to be held against the tool's schema; send fewer or smaller values";

const TOO_MUCH_BACK: &str = "the texts are too long for the tool's schema, which has a pattern that looks around or \
     back; send fewer or shorter ones";

/// Checks the arguments of one tool. Cheap to make: the schema is compiled by the first call.
pub struct Checker {
    source: Option<Raw>,
    compiled: OnceLock<Result<Schema, String>>,
    told: AtomicBool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Checked {
    /// Relay the bytes that came.
    AsSent,
    /// These instead: unwrapped, coerced, or with defaults filled in.
    Changed(Raw),
}

impl Checker {
    /// Takes the tool's `inputSchema`. Without one, or with one that is no object, everything passes.
    pub fn new(schema: Option<Raw>) -> Self {
        Self {
            source: schema.filter(Raw::is_object),
            compiled: OnceLock::new(),
            told: AtomicBool::new(false),
        }
    }

    pub fn check(&self, arguments: Option<&Raw>) -> Result<Checked, Vec<Fault>> {
        let Some(schema) = self.schema() else { return Ok(Checked::AsSent) };
        let mut draft = Draft::read(arguments)?;
        if !affords(schema, &draft) {
            return Err(vec![Fault::new("", schema.too_much())]);
        }
        if passes(schema, &draft) {
            return Ok(finish(schema, draft));
        }
        if let Some(opened) = unwrap::text(&draft) {
            draft = opened?;
        }
        let sent = draft.raw.clone();
        let outcome = mend(schema, &mut draft);
        if outcome == Mended::Yes {
            return Ok(finish(schema, draft));
        }
        for mut inner in unwrap::wrappers(schema, sent) {
            if mend(schema, &mut inner) == Mended::Yes {
                return Ok(finish(schema, inner));
            }
        }
        let mut faults = complain::faults(schema, &draft.value);
        if outcome == Mended::TooMany {
            faults.push(Fault::new("", coerce::too_many(faults.len())));
        }
        Err(faults)
    }

    /// About how many bytes a call of this size would be for the simplest of schemas: what is compared with what
    /// another thread is worth.
    pub fn cost(&self, arguments: Option<&Raw>) -> usize {
        self.template_cost(arguments.map_or(0, |raw| raw.bytes().len()))
    }

    /// Arguments in which references stand for what is not known yet, at these places (JSON Pointers): whether
    /// something is wrong with them whatever the references give.
    pub fn check_template(&self, value: &Value, filled: &[String]) -> Result<(), Vec<Fault>> {
        let Some(schema) = self.schema() else { return Ok(()) };
        read::within_depth(value).map_err(|why| vec![Fault::new("", why)])?;
        if !schema.affords(value, work::count(value)) {
            return Err(vec![Fault::new("", schema.too_much())]);
        }
        if value.is_object() && schema.is_valid(value) {
            return Ok(());
        }
        wildcard::check(schema, value, filled)
    }

    /// The cost of checking params that are written in so many bytes and not filled in yet.
    pub fn template_cost(&self, bytes: usize) -> usize {
        let Some(source) = &self.source else { return 0 };
        match self.compiled.get() {
            Some(Ok(schema)) => bytes.saturating_mul(1 + schema.steps() / STEPS_FREE),
            Some(Err(_)) => 0,
            None => {
                source.bytes().len().saturating_mul(COMPILE_COST).max(COMPILE_COST_MIN).saturating_add(bytes)
            }
        }
    }

    /// Why nothing is checked, once the first call has found out that the schema is broken.
    pub fn problem(&self) -> Option<&str> {
        self.compiled.get()?.as_ref().err().map(String::as_str)
    }

    /// The same for whoever warns of it: only the first to ask is told.
    pub fn complaint(&self) -> Option<&str> {
        self.problem().filter(|_| !self.told.swap(true, Ordering::Relaxed))
    }

    /// The same, found out now and not by the first call.
    pub fn find_problem(&self) -> Option<&str> {
        self.schema();
        self.problem()
    }

    fn schema(&self) -> Option<&Schema> {
        let source = self.source.as_ref()?;
        self.compiled.get_or_init(|| Schema::compile(source)).as_ref().ok()
    }
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checker").field("schema", &self.source).finish_non_exhaustive()
    }
}

fn passes(schema: &Schema, draft: &Draft) -> bool {
    draft.value.is_object() && schema.is_valid(&draft.value)
}

/// The outcome of the repair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mended {
    Yes,
    No,
    TooMany,
}

/// Coerces what fails until the whole passes, or nothing is left to coerce.
fn mend(schema: &Schema, draft: &mut Draft) -> Mended {
    for _ in 0..ROUNDS {
        if passes(schema, draft) {
            return Mended::Yes;
        }
        let Some(edits) = coerce::edits(schema, draft) else { return Mended::TooMany };
        if edits.is_empty() {
            return Mended::No;
        }
        draft.apply(&edits);
        // What stood in a text counts now.
        if !affords(schema, draft) {
            return Mended::No;
        }
    }
    if passes(schema, draft) { Mended::Yes } else { Mended::No }
}

/// No value is written in fewer than two bytes, with the comma.
fn affords(schema: &Schema, draft: &Draft) -> bool {
    schema.affords(&draft.value, draft.raw.bytes().len() / 2 + 1)
}

fn finish(schema: &Schema, mut draft: Draft) -> Checked {
    fill::defaults(schema, &mut draft);
    draft.finish()
}

#[cfg(test)]
mod tests;
