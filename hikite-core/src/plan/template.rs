//! JSON with references in it. References are filled in on the parsed tree, never in the text, and the result is not
//! searched again. Only values are searched; member names are literal.

use std::borrow::Cow;
use std::cell::Cell;

use serde_json::Value;

use super::parser::{FieldLocation, PlanViolations};
use super::reference::{KnownNames, TaskReference, parse};
use crate::violation::step;

/// Most bytes that references may insert into one call, in total.
const FILLED_BYTES_MAX: usize = 16 << 20;
/// Most values that the references of one template may visit; `[*]` visits every element of a list.
pub(super) const VISITS_MAX: usize = 2_000_000;
/// Costs of resolving one reference and one reference with `[*]`, as the equivalent number of bytes parsed.
const REFERENCE_COST: usize = 64;
const WILDCARD_COST: usize = 64 << 10;
/// Most bytes of JSON Pointers to all references of one template.
const POINTERS_BYTES_MAX: usize = 4 << 20;

#[derive(Clone, Debug, PartialEq)]
pub struct JsonTemplate {
    /// The JSON as sent; strings without references have `$${` unescaped already.
    written: Value,
    placeholders: Vec<Placeholder>,
    cost: usize,
}

/// Values that references resolve to.
#[derive(Clone, Copy)]
pub struct ReferenceScope<'a> {
    /// Returns the result of a task by its index, if it has one.
    pub result: &'a (dyn Fn(usize) -> Option<&'a Value> + 'a),
    /// The `for_each` element and its index.
    pub item: Option<(&'a Value, usize)>,
}

/// An unresolved reference, explained for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresolvedReference {
    pub message: String,
    pub hint: String,
}

/// A position in the template and its content.
#[derive(Clone, Debug, PartialEq)]
struct Placeholder {
    pointer: String,
    content: PlaceholderContent,
}

#[derive(Clone, Debug, PartialEq)]
enum PlaceholderContent {
    /// One reference; the value keeps its type.
    Whole(TaskReference),
    /// A string with references in it; values are converted to text.
    Text(Vec<TextPiece>),
}

#[derive(Clone, Debug, PartialEq)]
enum TextPiece {
    Plain(String),
    Reference(TaskReference),
}

impl JsonTemplate {
    /// Parses a template. Reports invalid references and adds the tasks they name to `after`.
    pub(super) fn read(
        mut written: Value,
        place: FieldLocation<'_>,
        names: KnownNames<'_>,
        faults: &mut PlanViolations,
        after: &mut Vec<usize>,
    ) -> Self {
        let mut walk = TemplateWalk {
            names,
            place,
            pointer: String::new(),
            pointer_bytes: POINTERS_BYTES_MAX,
            faults,
            placeholders: Vec::new(),
        };
        walk.value(&mut written);
        let placeholders = walk.placeholders;
        after.extend(placeholders.iter().flat_map(Placeholder::references).filter_map(TaskReference::task));
        let many =
            placeholders.iter().flat_map(Placeholder::references).filter(|reference| reference.has_wildcard()).count();
        let cost = bytes(&written) + placeholders.len() * REFERENCE_COST + many * WILDCARD_COST;
        Self { written, placeholders, cost }
    }

    pub fn resolve(&self, scope: &ReferenceScope<'_>) -> Result<Value, UnresolvedReference> {
        let mut value = self.written.clone();
        let (mut left, visits) = (FILLED_BYTES_MAX, Cell::new(VISITS_MAX));
        for placeholder in &self.placeholders {
            let content = placeholder.content(scope, &mut left, &visits)?;
            if let Some(place) = value.pointer_mut(&placeholder.pointer) {
                *place = content;
            }
        }
        Ok(value)
    }

    /// Estimates the cost of resolving, as the equivalent number of bytes of JSON parsed.
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// Returns the JSON as sent, and JSON Pointers to the values that references fill.
    pub fn as_written(&self) -> (&Value, Vec<String>) {
        (&self.written, self.placeholders.iter().map(|placeholder| placeholder.pointer.clone()).collect())
    }
}

impl Placeholder {
    fn references(&self) -> impl Iterator<Item = &TaskReference> {
        let (whole, pieces) = match &self.content {
            PlaceholderContent::Whole(reference) => (Some(reference), &[][..]),
            PlaceholderContent::Text(pieces) => (None, pieces.as_slice()),
        };
        let within = pieces.iter().filter_map(|piece| match piece {
            TextPiece::Reference(reference) => Some(reference),
            TextPiece::Plain(_) => None,
        });
        whole.into_iter().chain(within)
    }

    fn content(
        &self,
        scope: &ReferenceScope<'_>,
        left: &mut usize,
        visits: &Cell<usize>,
    ) -> Result<Value, UnresolvedReference> {
        let pieces = match &self.content {
            PlaceholderContent::Whole(reference) => {
                let found = reference.find(scope, visits)?;
                take(&found, left)?;
                return Ok(found.into_owned());
            }
            PlaceholderContent::Text(pieces) => pieces,
        };
        let mut text = String::new();
        for piece in pieces {
            match piece {
                TextPiece::Plain(plain) => text.push_str(plain),
                TextPiece::Reference(reference) => {
                    let found = reference.find(scope, visits)?;
                    take(&found, left)?;
                    match &*found {
                        Value::String(found) => text.push_str(found),
                        other => text.push_str(&other.to_string()),
                    }
                }
            }
        }
        Ok(Value::String(text))
    }
}

/// Subtracts the approximate JSON size of a value from `left`; an error if that is too little.
fn take(value: &Value, left: &mut usize) -> Result<(), UnresolvedReference> {
    let own = match value {
        Value::String(text) => text.len() + 2,
        Value::Object(members) => members.keys().map(|name| name.len() + 4).sum::<usize>() + 2,
        Value::Array(items) => items.len() + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    };
    *left = left.checked_sub(own).ok_or_else(|| UnresolvedReference {
        message: format!("The references insert more than {FILLED_BYTES_MAX} bytes."),
        hint: "Refer only to the needed parts, or set `select` on the task they refer to.".into(),
    })?;
    match value {
        Value::Object(members) => members.values().try_for_each(|member| take(member, left)),
        Value::Array(items) => items.iter().try_for_each(|item| take(item, left)),
        _ => Ok(()),
    }
}

/// Returns the approximate JSON size of a value.
fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Object(members) => {
            members.iter().map(|(name, member)| name.len() + 4 + bytes(member)).sum::<usize>() + 2
        }
        Value::Array(items) => items.iter().map(|item| bytes(item) + 1).sum::<usize>() + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// Returns `true` if a value may contain references. Saves building pointers for the others.
fn may_refer(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.contains("${"),
        Value::Array(_) | Value::Object(_) => true,
    }
}

struct TemplateWalk<'a, 'b> {
    names: KnownNames<'a>,
    /// Location of the template.
    place: FieldLocation<'a>,
    pointer: String,
    /// Bytes left for the pointers of references.
    pointer_bytes: usize,
    faults: &'b mut PlanViolations,
    placeholders: Vec<Placeholder>,
}

impl TemplateWalk<'_, '_> {
    fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) if text.contains("${") => self.text(text),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate().filter(|(_, item)| may_refer(item)) {
                    self.below(&index.to_string(), item);
                }
            }
            Value::Object(members) => {
                for (name, member) in members.iter_mut().filter(|(_, member)| may_refer(member)) {
                    let plain = !name.contains(['~', '/']);
                    let name = if plain { Cow::Borrowed(name.as_str()) } else { step(name).split_off(1).into() };
                    self.below(&name, member);
                }
            }
            _ => {}
        }
    }

    /// Visits a child; `step` is escaped for a JSON Pointer.
    fn below(&mut self, step: &str, value: &mut Value) {
        let length = self.pointer.len();
        self.pointer.extend(["/", step]);
        self.value(value);
        self.pointer.truncate(length);
    }

    fn text(&mut self, text: &mut String) {
        let Some(mut pieces) = self.pieces(text) else { return };
        if let [TextPiece::Plain(plain)] = pieces.as_mut_slice() {
            *text = std::mem::take(plain);
            return;
        }
        let content = match pieces.pop() {
            Some(TextPiece::Reference(only)) if pieces.is_empty() => PlaceholderContent::Whole(only),
            last => {
                pieces.extend(last);
                PlaceholderContent::Text(pieces)
            }
        };
        // Each reference stores its whole pointer, so long member names would be stored many times.
        let Some(left) = self.pointer_bytes.checked_sub(self.pointer.len()) else {
            self.refuse("the member names around so many references are too long; use shorter ones".into());
            return;
        };
        self.pointer_bytes = left;
        self.placeholders.push(Placeholder { pointer: self.pointer.clone(), content });
    }

    /// Splits a string into literals and references; `None` if a reference is invalid.
    fn pieces(&mut self, text: &str) -> Option<Vec<TextPiece>> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        let mut known = true;
        while let Some(at) = rest.find("${") {
            if let Some(before) = rest[..at].strip_suffix('$') {
                plain.extend([before, "${"]);
                rest = &rest[at + 2..];
                continue;
            }
            plain.push_str(&rest[..at]);
            let written = parse(&rest[at..]).map_err(|problem| self.refuse(problem.message)).ok()?;
            rest = &rest[at + written.length..];
            if !plain.is_empty() {
                pieces.push(TextPiece::Plain(std::mem::take(&mut plain)));
            }
            match TaskReference::link(written, self.names).map_err(|message| self.refuse(message)) {
                Ok(Some(reference)) => pieces.push(TextPiece::Reference(reference)),
                Ok(None) | Err(()) => known = false,
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(TextPiece::Plain(plain));
        }
        known.then_some(pieces)
    }

    fn refuse(&mut self, message: String) {
        let (place, pointer) = (self.place, &self.pointer);
        self.faults.add_with(|| (format!("{place}{pointer}"), message));
    }
}

impl std::fmt::Debug for ReferenceScope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReferenceScope").field("item", &self.item).finish_non_exhaustive()
    }
}
