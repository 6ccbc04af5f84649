//! References to the results of other tasks: `${id.path}`. Links them to tasks and resolves them. Resolved values are
//! never searched for further references.

mod missing;
mod syntax;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::{ReferenceScope, UnresolvedReference};
use crate::suggestion::did_you_mean;
use missing::BrokenPath;

pub(super) use missing::kind;
pub(super) use syntax::{SyntaxProblem, is_bare_name, parse, quoted};

/// Names of the `for_each` element and its index.
pub(super) const ITEM: &str = "item";
pub(super) const INDEX: &str = "index";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct TaskReference {
    /// Source text, from `${` to `}`.
    text: Box<str>,
    /// A task id, `item` or `index`.
    name: Box<str>,
    origin: ReferenceRoot,
    path: Vec<ReferenceStep>,
    /// Resolves to null if the value is missing.
    optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReferenceRoot {
    Task(usize),
    Item,
    Index,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReferenceStep {
    Key(Box<str>),
    /// Index into a list; negative counts from the end.
    Index(i64),
    /// Every element; the rest of the path is followed in each.
    All,
}

/// Names that a reference may use.
#[derive(Clone, Copy)]
pub(super) struct KnownNames<'a> {
    pub(super) tasks: &'a HashMap<Arc<str>, usize>,
    /// `false` if some task ids could not be read; unknown names are then not reported.
    pub(super) complete: bool,
    /// `true` if `item` and `index` are defined.
    pub(super) item: bool,
    /// Remaining "did you mean" lookups, which are slow for many unknown names.
    pub(super) suggestions_left: &'a Cell<usize>,
}

impl KnownNames<'_> {
    /// Returns a suggestion for an unknown task name, to append to a message.
    pub(super) fn suggestion(&self, name: &str) -> String {
        let Some(left) = self.suggestions_left.get().checked_sub(1) else { return String::new() };
        self.suggestions_left.set(left);
        let near = did_you_mean(name, self.tasks.keys().map(|id| &**id));
        near.map(|near| format!(". {near}")).unwrap_or_default()
    }
}

/// Returns `true` if the text is exactly one reference, so that the resolved value keeps its type.
pub(crate) fn is_whole(text: &str) -> bool {
    text.starts_with("${") && parse(text).is_ok_and(|written| written.length == text.len())
}

impl TaskReference {
    /// Links a parsed reference to its task. Returns `None` if the name is unknown but some task ids could not be read.
    pub(super) fn link(written: syntax::ParsedReference<'_>, names: KnownNames<'_>) -> Result<Option<Self>, String> {
        let text = written.text;
        let origin = match (names.tasks.get(written.name), written.name) {
            (Some(task), _) => ReferenceRoot::Task(*task),
            (None, ITEM | INDEX) if !names.item => {
                return Err(format!("`{}` is only available in `params` of a task with `for_each`", shortened(text)));
            }
            (None, ITEM) => ReferenceRoot::Item,
            (None, INDEX) if !written.path.is_empty() => {
                return Err(format!("`{}` has no members: `index` is a number", shortened(text)));
            }
            (None, INDEX) => ReferenceRoot::Index,
            (None, _) if !names.complete => return Ok(None),
            (None, name) => {
                let near = names.suggestion(name);
                let literal = "write `$${` for a literal `${`";
                return Err(format!("`{}` refers to no task of this batch; {literal}{near}", shortened(text)));
            }
        };
        Ok(Some(Self {
            text: text.into(),
            name: written.name.into(),
            origin,
            path: written.path,
            optional: written.optional,
        }))
    }

    /// Returns `true` if the path contains `[*]`.
    pub(super) fn has_wildcard(&self) -> bool {
        self.path.contains(&ReferenceStep::All)
    }

    /// Returns the task that the reference depends on.
    pub(super) fn task(&self) -> Option<usize> {
        match self.origin {
            ReferenceRoot::Task(task) => Some(task),
            ReferenceRoot::Item | ReferenceRoot::Index => None,
        }
    }

    /// Resolves the reference, within the number of list elements that may still be visited.
    pub(super) fn find<'a>(
        &self,
        scope: &ReferenceScope<'a>,
        visits: &Cell<usize>,
    ) -> Result<Cow<'a, Value>, UnresolvedReference> {
        let start = match self.origin {
            ReferenceRoot::Task(task) => (scope.result)(task),
            ReferenceRoot::Item => scope.item.map(|(item, _)| item),
            ReferenceRoot::Index => return self.index(scope),
        };
        match start {
            Some(value) => {
                let found = follow(value, &self.path, self.optional, visits);
                if visits.get() == 0 {
                    return Err(too_many_visits());
                }
                found.or_else(|broken| self.null_or_error(|| self.missing(&broken)))
            }
            None => self.null_or_error(|| self.no_result()),
        }
    }

    fn index(&self, scope: &ReferenceScope<'_>) -> Result<Cow<'static, Value>, UnresolvedReference> {
        match scope.item {
            Some((_, index)) => Ok(Cow::Owned(index.into())),
            None => self.null_or_error(|| self.no_result()),
        }
    }

    fn null_or_error(
        &self,
        why: impl FnOnce() -> UnresolvedReference,
    ) -> Result<Cow<'static, Value>, UnresolvedReference> {
        if self.optional { Ok(Cow::Owned(Value::Null)) } else { Err(why()) }
    }
}

pub(super) fn too_many_visits() -> UnresolvedReference {
    UnresolvedReference {
        message: "The references traverse too many list elements.".into(),
        hint: "Set `select` on the task they refer to so that only the needed part remains.".into(),
    }
}

fn follow<'a>(
    value: &'a Value,
    path: &[ReferenceStep],
    optional: bool,
    visits: &Cell<usize>,
) -> Result<Cow<'a, Value>, BrokenPath<'a>> {
    let mut found = Vec::new();
    collect(value, path, 0, &FollowOptions { optional, visits }, &mut found)?;
    match found.as_slice() {
        [only] if !path.contains(&ReferenceStep::All) => Ok(Cow::Borrowed(*only)),
        _ => Ok(Cow::Owned(found.into_iter().cloned().collect())),
    }
}

/// Options for following one path.
struct FollowOptions<'c> {
    optional: bool,
    visits: &'c Cell<usize>,
}

/// Follows `path` from step `from` on and appends the values to `found`. Ends early when the visit limit is reached.
fn collect<'a>(
    mut value: &'a Value,
    path: &[ReferenceStep],
    from: usize,
    following: &FollowOptions<'_>,
    found: &mut Vec<&'a Value>,
) -> Result<(), BrokenPath<'a>> {
    for (at, step) in path.iter().enumerate().skip(from) {
        if *step != ReferenceStep::All {
            value = enter(value, step).ok_or_else(|| BrokenPath::new(at, value))?;
            continue;
        }
        let items = value.as_array().ok_or_else(|| BrokenPath::new(at, value))?;
        for (place, item) in items.iter().enumerate() {
            let Some(left) = following.visits.get().checked_sub(1) else { return Ok(()) };
            following.visits.set(left);
            let outcome = collect(item, path, at + 1, following, found);
            match outcome {
                // Null keeps the positions of the other elements.
                Err(_) if following.optional => found.push(&Value::Null),
                outcome => outcome.map_err(|broken| broken.inside(place))?,
            }
        }
        return Ok(());
    }
    found.push(value);
    Ok(())
}

fn enter<'a>(value: &'a Value, step: &ReferenceStep) -> Option<&'a Value> {
    match (value, step) {
        (Value::Object(members), ReferenceStep::Key(key)) => members.get(&**key),
        // `results.0` is unambiguous: a list has no keys.
        (Value::Array(items), ReferenceStep::Key(key)) => items.get(key.parse::<usize>().ok()?),
        (Value::Array(items), ReferenceStep::Index(place)) => {
            let distance = usize::try_from(place.unsigned_abs()).ok()?;
            items.get(if *place < 0 { items.len().checked_sub(distance)? } else { distance })
        }
        _ => None,
    }
}

/// Shortens untrusted text to 100 characters for a message.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    const CHARS_MAX: usize = 100;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
