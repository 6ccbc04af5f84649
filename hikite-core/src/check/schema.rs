//! A compiled tool schema. Nothing is fetched. A schema that is invalid, refers outside its document, or exceeds the
//! limits is rejected as broken.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use super::document::SchemaDocument;
use super::fill::SchemaDefaults;
use super::survey::survey;
use super::work_estimate::{BACKTRACKS_MAX, WorkEstimate};
use super::{TOO_MUCH, TOO_MUCH_BACKTRACKING};
use crate::json::Raw;

/// Maximum schema size. The largest of 1,162 schemas of real tools has 12,400 bytes.
const BYTES_MAX: usize = 1 << 20;
/// Maximum size of one compiled regular expression.
const PATTERN_BYTES_MAX: usize = 1 << 20;

pub(super) struct CompiledSchema {
    pub(super) document: SchemaDocument,
    pub(super) defaults: SchemaDefaults,
    validator: Validator,
    /// Steps to check one value against every schema in the document.
    steps: usize,
}

impl CompiledSchema {
    /// Compiles a schema. The error describes the problem to the tool's maintainer.
    pub(super) fn compile(source: &Raw) -> Result<Self, String> {
        if source.bytes().len() > BYTES_MAX {
            return Err(format!("the schema has more than {BYTES_MAX} bytes"));
        }
        let mut root: Value =
            source.decode().map_err(|_| "the schema is nested too deeply or contains a number out of range")?;
        let (meant, others) = drafts(&mut root);
        let mut document = SchemaDocument::new(root)?;
        let mut findings = survey(&document)?;
        document.backtracking_patterns = std::mem::take(&mut findings.backtracking_patterns);
        // If every draft fails, the error of the declared or default draft is reported.
        let validator = build(&document.root, meant)
            .or_else(|problem| others.iter().find_map(|draft| build(&document.root, *draft).ok()).ok_or(problem))?;
        let defaults = SchemaDefaults::of(&document, &findings);
        Ok(Self { document, defaults, validator, steps: findings.steps })
    }

    pub(super) fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// Returns `true` if a check of this value is affordable. `values` is an upper bound on the number of values in it.
    pub(super) fn is_affordable(&self, value: &Value, values: usize) -> bool {
        WorkEstimate::fits_check(&self.document, self.steps, values, value)
    }

    /// Returns the error message for a check that is not affordable.
    pub(super) fn too_much_message(&self) -> &'static str {
        if self.document.backtracking_patterns.is_empty() { TOO_MUCH } else { TOO_MUCH_BACKTRACKING }
    }

    /// Returns the cost of a check as far as the schema determines it.
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// Returns all validation errors; `None` if finding them would take too long.
    pub(super) fn errors<'a>(&'a self, value: &'a Value) -> Option<jsonschema::ErrorIterator<'a>> {
        WorkEstimate::fits_search(&self.document, value).then(|| self.validator.iter_errors(value))
    }

    /// Returns `true` if the schema names a top-level property with this name.
    pub(super) fn has_property(&self, name: &str) -> bool {
        let applied = self.document.applied(&self.document.root);
        applied.into_iter().any(|schema| schema.get("properties").is_some_and(|all| all.get(name).is_some()))
    }
}

/// Returns the draft that `$schema` names and the drafts to try next. The default is 2020-12; schemas without `$schema`
/// may follow older drafts.
fn drafts(root: &mut Value) -> (Draft, &'static [Draft]) {
    const OLDER: &[Draft] = &[Draft::Draft7, Draft::Draft4];
    match root.get("$schema").and_then(Value::as_str).map(Draft::from_schema_uri) {
        None => (Draft::Draft202012, OLDER),
        Some(Draft::Unknown) => {
            root.as_object_mut().map(|members| members.shift_remove("$schema"));
            (Draft::Draft202012, OLDER)
        }
        Some(draft) => (draft, &[]),
    }
}

fn build(root: &Value, draft: Draft) -> Result<Validator, String> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACKS_MAX)
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_BYTES_MAX);
    jsonschema::options()
        .offline()
        .with_draft(draft)
        .should_validate_formats(false)
        .without_content_encoding_support("base64")
        .without_content_media_type_support("application/json")
        .with_pattern_options(patterns)
        .build(root)
        .map_err(|error| {
            let place = Some(error.instance_path().as_str()).filter(|place| !place.is_empty()).unwrap_or("/");
            let reason: String = error.masked().to_string().chars().take(200).collect();
            format!("at {}: {reason}", place.chars().take(200).collect::<String>())
        })
}
