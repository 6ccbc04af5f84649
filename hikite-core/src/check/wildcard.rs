//! Locations whose values are not known yet: references that a batch resolves while it runs. Reports only violations
//! that no value could fix; the rest is checked again once the values are known.

use jsonschema::error::{ValidationError, ValidationErrorKind};
use serde_json::Value;

use super::draft::{ArgumentDraft, steps};
use super::schema::CompiledSchema;
use super::{ROUNDS, coercion, report, wrapper};
use crate::json::Raw;
use crate::plan::reference;
use crate::violation::{Violation, step};

/// Keywords whose subschemas apply only under a condition on other parts of the value.
const CONDITIONAL: &[&str] = &["then", "else", "dependentSchemas", "dependentRequired", "dependencies"];
/// Keywords that are followed by a name, not by a keyword.
const BY_NAME: &[&str] = &["properties", "patternProperties", "$defs", "definitions"];

pub(super) fn check(schema: &CompiledSchema, value: &Value, filled: &[String]) -> Result<(), Vec<Violation>> {
    let mut wildcards = Wildcards::new(value, filled);
    if wildcards.whole("") || !wildcards.refuse(schema, value) {
        return Ok(());
    }
    let mut draft = ArgumentDraft::of(Raw::of(value), false)?;
    let sent = draft.raw.clone();
    if wildcards.accepts_repaired(schema, &mut draft) {
        return Ok(());
    }
    let faults = report::certain_violations(schema, &draft.value, &wildcards);
    for mut inner in wrapper::wrappers(schema, sent) {
        wildcards = wildcards.below();
        if wildcards.accepts_repaired(schema, &mut inner) {
            return Ok(());
        }
    }
    Err(faults)
}

/// Locations of unresolved values, sorted by pointer for binary search.
pub(super) struct Wildcards(Vec<Wildcard>);

struct Wildcard {
    pointer: String,
    /// `true` if the value will be a string, because the reference is embedded in one.
    is_text: bool,
}

impl Wildcards {
    fn new(value: &Value, filled: &[String]) -> Self {
        let is_text = |pointer: &String| {
            value.pointer(pointer).and_then(Value::as_str).is_some_and(|text| !reference::is_whole(text))
        };
        let mut places: Vec<Wildcard> =
            filled.iter().map(|pointer| Wildcard { is_text: is_text(pointer), pointer: pointer.clone() }).collect();
        places.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        Self(places)
    }

    /// Returns the wildcards inside a wrapper. The wrapper itself may be a string that contains a reference.
    fn below(&self) -> Self {
        let below = |place: &Wildcard| {
            let inner = place.pointer.get(1..)?.find('/').map_or("", |end| &place.pointer[end + 1..]);
            Some(Wildcard { is_text: place.is_text && !inner.is_empty(), pointer: inner.to_owned() })
        };
        let mut places: Vec<Wildcard> = self.0.iter().filter_map(below).collect();
        places.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        Self(places)
    }

    /// Returns `true` if no value of the references could fix the violation.
    pub(super) fn is_certain(&self, error: &ValidationError<'_>) -> bool {
        use ValidationErrorKind as Kind;
        let pointer = error.instance_path().as_str();
        if let Some(place) = self.covering(pointer) {
            let types_alone =
                matches!(error.kind(), Kind::Type { .. } | Kind::AnyOf { .. } | Kind::OneOfNotValid { .. });
            if !(place.is_text && place.pointer == pointer && types_alone) {
                return false;
            }
        }
        if !self.0.is_empty() && is_conditional(error.evaluation_path().as_str()) {
            return false;
        }
        match error.kind() {
            // Every alternative must be certainly invalid.
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                context.iter().all(|branch| branch.iter().any(|error| self.is_certain(error)))
            }
            Kind::OneOfMultipleValid { .. }
            | Kind::Not { .. }
            | Kind::Contains
            | Kind::UniqueItems
            | Kind::Constant { .. }
            | Kind::Enum { .. }
            // Nulls may still be removed, which lowers the count.
            | Kind::MaxProperties { .. }
            | Kind::UnevaluatedItems { .. }
            | Kind::UnevaluatedProperties { .. } => !self.any_below(pointer),
            _ => true,
        }
    }

    fn refuse(&self, schema: &CompiledSchema, value: &Value) -> bool {
        let Some(members) = value.as_object() else { return true };
        // A wrapper around an unresolved value.
        if let (1, Some(name)) = (members.len(), members.keys().next())
            && self.whole(&step(name))
            && wrapper::is_wrapper(schema, name)
        {
            return false;
        }
        schema.errors(value).into_iter().flatten().any(|error| self.is_certain(&error))
    }

    /// Applies the repairs that the call will apply too. Returns `true` if no certain violation remains.
    fn accepts_repaired(&self, schema: &CompiledSchema, draft: &mut ArgumentDraft) -> bool {
        for _ in 0..ROUNDS {
            if !self.refuse(schema, &draft.value) {
                return true;
            }
            let Some(edits) = coercion::edits(schema, draft).filter(|edits| !edits.is_empty()) else {
                return false;
            };
            draft.apply(&edits);
        }
        !self.refuse(schema, &draft.value)
    }

    fn find(&self, pointer: &str) -> Option<&Wildcard> {
        let at = self.0.binary_search_by(|place| place.pointer.as_str().cmp(pointer)).ok()?;
        self.0.get(at)
    }

    fn whole(&self, pointer: &str) -> bool {
        self.find(pointer).is_some_and(|place| !place.is_text)
    }

    /// Returns the wildcard at this location or above it.
    fn covering(&self, pointer: &str) -> Option<&Wildcard> {
        let ends = pointer.match_indices('/').map(|(end, _)| end).chain([pointer.len()]);
        ends.into_iter().find_map(|end| self.find(&pointer[..end]))
    }

    fn any_below(&self, pointer: &str) -> bool {
        let inside = format!("{pointer}/");
        let first = self.0.partition_point(|place| place.pointer < inside);
        self.0.get(first).is_some_and(|place| place.pointer.starts_with(&inside))
    }
}

fn is_conditional(evaluation_path: &str) -> bool {
    let mut is_name = false;
    steps(evaluation_path).iter().any(|step| {
        let conditional = !is_name && CONDITIONAL.contains(&step.as_str());
        is_name = !is_name && BY_NAME.contains(&step.as_str());
        conditional
    })
}
