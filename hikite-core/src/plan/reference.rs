//! `${id.path}`: the result of another task, or a part of it. Reads how it is written, and finds what it means; what it
//! finds is a value and never looked through for further references.

mod missing;
mod syntax;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Missing, Scope};
use crate::suggest::did_you_mean;
use missing::Broken;

pub(super) use missing::kind;
pub(super) use syntax::{Problem, parse, quoted, stands_alone};

/// The element of `for_each`, and its place in the list.
pub(super) const ITEM: &str = "item";
pub(super) const INDEX: &str = "index";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reference {
    /// As it was written, from `${` to `}`.
    text: Box<str>,
    /// The task, `item` or `index`.
    name: Box<str>,
    origin: Origin,
    path: Vec<Step>,
    /// What is missing is null.
    optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Task(usize),
    Item,
    Index,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(Box<str>),
    /// From the end where it is negative.
    Place(i64),
    /// Every element, for each of which the rest of the path is followed.
    All,
}

/// What references may name.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) tasks: &'a HashMap<Arc<str>, usize>,
    /// Whether the ids of all tasks could be read; else nobody knows which are missing.
    pub(super) complete: bool,
    /// Whether there is an element of a list.
    pub(super) item: bool,
    /// How often it may still be asked what was meant: with many wrong names that takes long.
    pub(super) guesses: &'a Cell<usize>,
}

impl Names<'_> {
    /// What may have been meant by a name that is no task's, to be put behind what is wrong.
    pub(super) fn guess(&self, name: &str) -> String {
        let Some(left) = self.guesses.get().checked_sub(1) else { return String::new() };
        self.guesses.set(left);
        let near = did_you_mean(name, self.tasks.keys().map(|id| &**id));
        near.map(|near| format!("; {near}")).unwrap_or_default()
    }
}

/// Whether a text is one reference and nothing else, so that what it is filled with keeps its type.
pub(crate) fn is_whole(text: &str) -> bool {
    text.starts_with("${") && parse(text).is_ok_and(|written| written.length == text.len())
}

impl Reference {
    /// Gives a name its meaning; `None` where it cannot be known whether it has one.
    pub(super) fn link(written: syntax::Written<'_>, names: Names<'_>) -> Result<Option<Self>, String> {
        let text = written.text;
        let origin = match (names.tasks.get(written.name), written.name) {
            (Some(task), _) => Origin::Task(*task),
            (None, ITEM | INDEX) if !names.item => {
                return Err(format!(
                    "`{}` is known in `params` of a task with `for_each` alone",
                    shown(text)
                ));
            }
            (None, ITEM) => Origin::Item,
            (None, INDEX) if !written.path.is_empty() => {
                return Err(format!("`{}` has no parts: `index` is a number", shown(text)));
            }
            (None, INDEX) => Origin::Index,
            (None, _) if !names.complete => return Ok(None),
            (None, name) => {
                let near = names.guess(name);
                let literal = "write `$${` where a plain `${` is meant";
                return Err(format!("`{}` names no task of this batch{near}; {literal}", shown(text)));
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

    /// True if it looks at every element of some list.
    pub(super) fn is_many(&self) -> bool {
        self.path.contains(&Step::All)
    }

    /// The task that it waits for.
    pub(super) fn task(&self) -> Option<usize> {
        match self.origin {
            Origin::Task(task) => Some(task),
            Origin::Item | Origin::Index => None,
        }
    }

    /// `looks` is how many elements of lists may still be looked at.
    pub(super) fn find<'a>(&self, scope: &Scope<'a>, looks: &Cell<usize>) -> Result<Cow<'a, Value>, Missing> {
        let start = match self.origin {
            Origin::Task(task) => (scope.result)(task),
            Origin::Item => scope.item.map(|(item, _)| item),
            Origin::Index => return self.index(scope),
        };
        match start {
            Some(value) => {
                let found = follow(value, &self.path, self.optional, looks);
                if looks.get() == 0 {
                    return Err(too_many_looks());
                }
                found.or_else(|broken| self.absent(|| self.missing(&broken)))
            }
            None => self.absent(|| self.nothing()),
        }
    }

    fn index(&self, scope: &Scope<'_>) -> Result<Cow<'static, Value>, Missing> {
        match scope.item {
            Some((_, index)) => Ok(Cow::Owned(index.into())),
            None => self.absent(|| self.nothing()),
        }
    }

    fn absent(&self, why: impl FnOnce() -> Missing) -> Result<Cow<'static, Value>, Missing> {
        if self.optional { Ok(Cow::Owned(Value::Null)) } else { Err(why()) }
    }
}

pub(super) fn too_many_looks() -> Missing {
    Missing {
        message: "the references look at too many elements of lists".into(),
        hint: "give the task they come from a `select` that leaves what is needed, and refer to that".into(),
    }
}

fn follow<'a>(
    value: &'a Value,
    path: &[Step],
    optional: bool,
    looks: &Cell<usize>,
) -> Result<Cow<'a, Value>, Broken<'a>> {
    let mut found = Vec::new();
    collect(value, path, 0, &Following { optional, looks }, &mut found)?;
    match found.as_slice() {
        [only] if !path.contains(&Step::All) => Ok(Cow::Borrowed(*only)),
        _ => Ok(Cow::Owned(found.into_iter().cloned().collect())),
    }
}

/// Rules for the whole path.
struct Following<'c> {
    optional: bool,
    looks: &'c Cell<usize>,
}

/// Follows the path from its step `from` on, and puts what it leads to at the end of `found`. Ends early where too much
/// has been looked at.
fn collect<'a>(
    mut value: &'a Value,
    path: &[Step],
    from: usize,
    following: &Following<'_>,
    found: &mut Vec<&'a Value>,
) -> Result<(), Broken<'a>> {
    for (at, step) in path.iter().enumerate().skip(from) {
        if *step != Step::All {
            value = enter(value, step).ok_or_else(|| Broken::new(at, value))?;
            continue;
        }
        let items = value.as_array().ok_or_else(|| Broken::new(at, value))?;
        for (place, item) in items.iter().enumerate() {
            let Some(left) = following.looks.get().checked_sub(1) else { return Ok(()) };
            following.looks.set(left);
            let outcome = collect(item, path, at + 1, following, found);
            match outcome {
                // The others keep their places.
                Err(_) if following.optional => found.push(&Value::Null),
                outcome => outcome.map_err(|broken| broken.inside(place))?,
            }
        }
        return Ok(());
    }
    found.push(value);
    Ok(())
}

fn enter<'a>(value: &'a Value, step: &Step) -> Option<&'a Value> {
    match (value, step) {
        (Value::Object(members), Step::Key(key)) => members.get(&**key),
        // `results.0` can mean only one thing.
        (Value::Array(items), Step::Key(key)) => items.get(key.parse::<usize>().ok()?),
        (Value::Array(items), Step::Place(place)) => {
            let distance = usize::try_from(place.unsigned_abs()).ok()?;
            items.get(if *place < 0 { items.len().checked_sub(distance)? } else { distance })
        }
        _ => None,
    }
}

/// A text from outside, no longer than a line.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    const CHARS_MAX: usize = 100;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
