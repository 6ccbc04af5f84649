//! Converts validator errors to violations: one each, with its location. Messages never contain the received values,
//! which may be secrets.

use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind};
use jsonschema::{JsonType, JsonTypeSet};
use serde_json::Value;

use super::draft::steps;
use super::schema::CompiledSchema;
use super::wildcard::Wildcards;
use crate::suggestion::did_you_mean;
use crate::violation::{Violation, step};

const FAULTS_MAX: usize = 20;
/// Maximum number of allowed values listed, and of characters quoted from a name, a value or a pattern of the schema.
const OPTIONS_MAX: usize = 20;
const EXCERPT_MAX: usize = 100;
/// Maximum number of misspelled names for which a correction is searched, per report.
const SUGGESTIONS_MAX: usize = 40;

const NO_MATCH: &str = "the arguments do not match the tool's schema";

pub(super) fn faults(schema: &CompiledSchema, value: &Value) -> Vec<Violation> {
    report(schema, value, None)
}

/// Returns the violations that no value of the unresolved references could fix.
pub(super) fn certain_violations(schema: &CompiledSchema, value: &Value, wildcards: &Wildcards) -> Vec<Violation> {
    report(schema, value, Some(wildcards))
}

fn report(schema: &CompiledSchema, value: &Value, wildcards: Option<&Wildcards>) -> Vec<Violation> {
    if !value.is_object() {
        return vec![Violation::new("", "Invalid type for parameter arguments: expected object")];
    }
    let mut report = ViolationReport { schema, wildcards, faults: Vec::new(), suggestions: SUGGESTIONS_MAX };
    let Some(errors) = schema.errors(value) else {
        report.push("", format!("{NO_MATCH} in too many places to list them; send fewer arguments"));
        return report.faults;
    };
    for error in errors {
        report.add(&error);
        if report.is_full() {
            break;
        }
    }
    if report.faults.is_empty() {
        report.push("", NO_MATCH.into());
    }
    report.faults
}

struct ViolationReport<'a> {
    schema: &'a CompiledSchema,
    wildcards: Option<&'a Wildcards>,
    faults: Vec<Violation>,
    /// Number of name suggestions left.
    suggestions: usize,
}

impl ViolationReport<'_> {
    fn push(&mut self, pointer: &str, message: String) {
        let fault = Violation::new(pointer, message);
        if !self.is_full() && !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn is_full(&self) -> bool {
        self.faults.len() >= FAULTS_MAX
    }

    /// Returns `. Did you mean …?`, or an empty string.
    fn suggest<'b>(&mut self, wrong: &str, known: impl IntoIterator<Item = &'b str>) -> String {
        let Some(left) = self.suggestions.checked_sub(1) else { return String::new() };
        self.suggestions = left;
        did_you_mean(wrong, known).map(|near| format!(". {near}")).unwrap_or_default()
    }

    fn add(&mut self, error: &ValidationError<'_>) {
        use ValidationErrorKind as Kind;
        if !self.is_certain(error) {
            return;
        }
        let pointer = error.instance_path().as_str();
        match error.kind() {
            Kind::Required { property } => {
                let member = format!("{pointer}{}", step(property.as_str().unwrap_or_default()));
                self.push(&member, format!("Required parameter missing: {}", path(&member)));
            }
            Kind::Type { kind: TypeKind::Single(wanted) } => self.wrong_type(pointer, (*wanted).into()),
            Kind::Type { kind: TypeKind::Multiple(wanted) } => self.wrong_type(pointer, *wanted),
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                for name in unexpected {
                    if self.is_full() {
                        break;
                    }
                    self.unknown(error, name);
                }
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => self.none_of(pointer, context),
            Kind::Enum { options } => {
                let options = options.as_array().map_or(&[][..], Vec::as_slice);
                let known = options.iter().filter_map(Value::as_str).take(OPTIONS_MAX * 50);
                let near = error.instance().as_str().map(|sent| self.suggest(sent, known)).unwrap_or_default();
                self.invalid(pointer, &format!("expected one of {}{near}", listed(options)));
            }
            kind => {
                let reason = reason(kind);
                self.invalid(pointer, &reason);
            }
        }
    }

    fn is_certain(&self, error: &ValidationError<'_>) -> bool {
        self.wildcards.is_none_or(|wildcards| wildcards.is_certain(error))
    }

    fn invalid(&mut self, pointer: &str, reason: &str) {
        self.push(pointer, format!("Invalid value for parameter {}: {reason}", path(pointer)));
    }

    fn wrong_type(&mut self, pointer: &str, wanted: JsonTypeSet) {
        let (null, mut names): (Vec<_>, Vec<_>) = wanted.iter().partition(|wanted| *wanted == JsonType::Null);
        names.extend(null);
        let names: Vec<&str> = names.into_iter().map(JsonType::as_str).collect();
        let message = format!("Invalid type for parameter {}: expected {}", path(pointer), names.join(" or "));
        self.push(pointer, message);
    }

    fn unknown(&mut self, error: &ValidationError<'_>, name: &str) {
        let member = format!("{}{}", error.instance_path(), step(name));
        let keyword = error.schema_path().as_str();
        let parent = keyword.rsplit_once('/').map_or("", |(parent, _)| parent);
        let properties =
            self.schema.document.root.pointer(parent).and_then(|schema| schema.get("properties")?.as_object());
        let near = self.suggest(name, properties.into_iter().flat_map(|names| names.keys().map(String::as_str)));
        self.push(&member, format!("Unknown parameter: {}{near}", path(&member)));
    }

    /// Reports the violations of the one alternative that the value can match; else the types that all alternatives
    /// accept.
    fn none_of(&mut self, pointer: &str, branches: &[Vec<ValidationError<'static>>]) {
        let here = |error: &ValidationError<'_>| error.instance_path().as_str() == pointer;
        let tells_apart = |error: &ValidationError<'_>| match error.kind() {
            ValidationErrorKind::Type { .. } => here(error),
            ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. } => true,
            _ => false,
        };
        let meant: Vec<_> = branches
            .iter()
            .filter(|errors| !errors.iter().any(|error| self.is_certain(error) && tells_apart(error)))
            .collect();
        if let [only] = meant.as_slice() {
            only.iter().for_each(|error| self.add(error));
            return;
        }
        let types = branches.iter().flatten().filter(|error| here(error)).map(|error| match error.kind() {
            ValidationErrorKind::Type { kind: TypeKind::Single(wanted) } => Some((*wanted).into()),
            ValidationErrorKind::Type { kind: TypeKind::Multiple(wanted) } => Some(*wanted),
            _ => None,
        });
        match types.collect::<Option<Vec<JsonTypeSet>>>() {
            Some(types) if meant.is_empty() && !types.is_empty() => {
                self.wrong_type(pointer, types.into_iter().flatten().fold(JsonTypeSet::empty(), JsonTypeSet::insert));
            }
            _ => self.invalid(pointer, &format!("matches none of the {} allowed forms", branches.len())),
        }
    }
}

fn reason(kind: &ValidationErrorKind) -> String {
    use ValidationErrorKind as Kind;
    match kind {
        Kind::Constant { expected_value } => format!("expected {}", excerpt(&expected_value.to_string())),
        Kind::Pattern { pattern } => format!("must match the pattern {}", excerpt(pattern)),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        Kind::UnevaluatedItems { .. } => "has items that are not allowed".into(),
        Kind::UniqueItems => "must not contain the same item twice".into(),
        Kind::Contains => "does not contain the required items".into(),
        Kind::MinProperties { limit } => format!("must have at least {limit} members"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} members"),
        Kind::PropertyNames { .. } => "has a member with a name that is not allowed".into(),
        Kind::OneOfMultipleValid { .. } => "matches more than one of the allowed forms".into(),
        Kind::FalseSchema | Kind::Not { .. } => "is not allowed here".into(),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "cannot be checked against the pattern in the schema".into()
        }
        _ => "does not match the schema".into(),
    }
}

fn listed(options: &[Value]) -> String {
    let mut shown: Vec<String> = options.iter().take(OPTIONS_MAX).map(|option| excerpt(&option.to_string())).collect();
    if options.len() > OPTIONS_MAX {
        shown.push(format!("… ({} in total)", options.len()));
    }
    shown.join(", ")
}

/// Formats a JSON Pointer as a path: `filter.items[0].name`.
fn path(pointer: &str) -> String {
    let mut path = String::new();
    for step in steps(pointer) {
        if !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit()) {
            path.extend(["[", &step, "]"]);
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&excerpt(&step));
        }
    }
    if path.is_empty() { "arguments".into() } else { path }
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
