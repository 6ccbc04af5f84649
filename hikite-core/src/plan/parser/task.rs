//! Reads the fields of one task: those of the specification, the aliases that models use, and hikite's own.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::entry::{TaskEntry, bad_json};
use super::{BatchDefaults, FieldLocation, PlanViolations};
use crate::json::Raw;
use crate::key::ToolKey;
use crate::plan::reference::{INDEX, ITEM, KnownNames, is_bare_name, is_whole, shortened};
use crate::plan::{JsonTemplate, OnError, Task, TaskCondition, TaskOutput};
use crate::selector::Selector;
use crate::suggestion::did_you_mean;
use crate::violation::step;

const ID_CHARS_MAX: usize = 100;

const FIELDS: &[&str] = &[
    "id",
    "module",
    "tool",
    "tool_name",
    "toolKey",
    "params",
    "arguments",
    "args",
    "after",
    "output",
    "raw_output",
    "for_each",
    "if",
    "select",
    "on_error",
    "timeout_ms",
    "account",
];

/// Reads and validates the id of a task.
pub(super) fn id(members: &Map<String, Value>) -> Result<Arc<str>, String> {
    let Some(present) = members.get("id").filter(|present| !present.is_null()) else {
        return Err("`id` is missing".into());
    };
    let id = present.as_str().ok_or("`id` must be a string")?;
    if id.trim().is_empty() {
        return Err("`id` must not be empty".into());
    }
    if id.chars().count() > ID_CHARS_MAX {
        return Err(format!("`id` must have at most {ID_CHARS_MAX} characters"));
    }
    if matches!(id, ITEM | INDEX) {
        return Err(format!("`id` must not be `{id}`, which is reserved for `for_each`"));
    }
    if !is_bare_name(id) {
        return Err(format!("`id` {} cannot be used in `${{id}}`; use letters, digits, `-` and `_`", Value::from(id)));
    }
    Ok(id.into())
}

/// Reads a task. After a violation the remaining fields are still read, so that all violations and dependencies are
/// found.
pub(super) fn read(
    entry: TaskEntry,
    names: KnownNames<'_>,
    defaults: BatchDefaults,
    faults: &mut PlanViolations,
) -> Task {
    let (place, id) = (entry.about.place, entry.about.id.clone().unwrap_or_default());
    let readable = entry.members.is_some();
    let members = entry.members.unwrap_or_default();
    faults.about = Some(entry.about);
    let mut reader = TaskReader { members, place, names, after: Vec::new(), faults };
    if readable {
        reader.unknown_fields();
    }
    let tool = if readable { reader.tool() } else { ToolKey::new("", "") };
    let for_each = reader.for_each(defaults.tasks_max);
    let task = Task {
        id,
        tool,
        params: reader.params(),
        output: reader.output(),
        select: reader.select(),
        condition: reader.condition(),
        for_each,
        on_error: reader.on_error().unwrap_or(defaults.on_error),
        timeout: reader.timeout(),
        account: reader.text("account"),
        after: Vec::new(),
    };
    reader.after();
    let mut after = reader.after;
    after.sort_unstable();
    after.dedup();
    Task { after, ..task }
}

struct TaskReader<'a> {
    members: Map<String, Value>,
    /// Index of the task in the batch.
    place: usize,
    names: KnownNames<'a>,
    /// Dependencies found so far.
    after: Vec<usize>,
    faults: &'a mut PlanViolations,
}

impl TaskReader<'_> {
    fn unknown_fields(&mut self) {
        for name in self.members.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
            self.faults.add_with(|| {
                let near = did_you_mean(name, FIELDS.iter().copied()).map(|near| format!(". {near}"));
                let message = format!("`{}` is not a field of a task{}", shortened(name), near.unwrap_or_default());
                (format!("/commands/{}{}", self.place, step(name)), message)
            });
        }
    }

    fn tool(&mut self) -> ToolKey {
        let name = self.named(&["tool", "tool_name"]).unwrap_or("tool");
        let (key, module, tool) = (self.text("toolKey"), self.text("module"), self.text(name));
        let Some(key) = key else {
            for (field, text) in [("module", &module), (name, &tool)] {
                if text.is_none() && self.present(field).is_none() {
                    self.refuse::<()>(field, "is missing; or set `toolKey` to `module:tool`");
                }
            }
            return ToolKey::new(module.unwrap_or_default(), tool.unwrap_or_default());
        };
        let Some((of, named)) = key.split_once(':').filter(|(of, named)| !of.is_empty() && !named.is_empty()) else {
            self.refuse::<()>("toolKey", "must be `module:tool`");
            return ToolKey::new("", "");
        };
        for (field, text, meant) in [("module", module, of), (name, tool, named)] {
            if text.is_some_and(|text| text != meant) {
                self.refuse::<()>(field, "does not match `toolKey`");
            }
        }
        ToolKey::new(of, named)
    }

    /// Reads the arguments: an object, a string that holds one, or a single reference.
    fn params(&mut self) -> JsonTemplate {
        let names = KnownNames { item: self.present("for_each").is_some(), ..self.names };
        let name = self.named(&["params", "arguments", "args"]).unwrap_or("params");
        let value = match self.take(name) {
            None => Value::Object(Map::new()),
            Some(Value::String(text)) if !is_whole(&text) => self.object_in(name, &text),
            Some(value @ (Value::Object(_) | Value::String(_))) => value,
            Some(_) => self.refuse(name, "must be an object").unwrap_or_default(),
        };
        self.template(name, value, names)
    }

    fn object_in(&mut self, name: &str, text: &str) -> Value {
        match serde_json::from_str(text) {
            Ok(object @ Value::Object(_)) => return object,
            Ok(_) => self.refuse(name, "must be an object"),
            Err(error) => {
                let why = bad_json(text, 1, &error);
                self.refuse(name, &format!("is a string without a JSON object: {why}"))
            }
        }
        .unwrap_or_default()
    }

    /// Reads `for_each`: a list, or a single reference.
    fn for_each(&mut self, items_max: usize) -> Option<JsonTemplate> {
        const NAME: &str = "for_each";
        let value = self.take(NAME)?;
        let right = match &value {
            Value::Array(items) if items.len() > items_max => {
                return self.refuse(NAME, &format!("has {} elements; the limit is {items_max}", items.len()));
            }
            Value::Array(_) => true,
            Value::String(text) => is_whole(text),
            _ => false,
        };
        if !right {
            return self.refuse(NAME, "must be a list or a reference such as `${task.items}`");
        }
        Some(self.template(NAME, value, self.names))
    }

    fn condition(&mut self) -> Option<TaskCondition> {
        let text = match self.take("if")? {
            Value::Bool(constant) => constant.to_string(),
            Value::String(text) => text,
            _ => return self.refuse("if", "must be a condition as a string"),
        };
        match TaskCondition::read(&text, self.names, &mut self.after) {
            Ok(condition) => Some(condition),
            Err(message) => self.refuse("if", &message),
        }
    }

    fn select(&mut self) -> Option<Selector> {
        let text = self.text("select")?;
        Selector::parse(&text).map_err(|message| self.refuse::<()>("select", &message)).ok()
    }

    fn output(&mut self) -> TaskOutput {
        match (self.flag("raw_output"), self.flag("output")) {
            (true, _) => TaskOutput::Raw,
            (false, true) => TaskOutput::Compact,
            (false, false) => TaskOutput::None,
        }
    }

    fn on_error(&mut self) -> Option<OnError> {
        let text = self.text("on_error")?;
        if let Some((_, meaning)) = OnError::ALL.iter().find(|(word, _)| *word == text) {
            return Some(*meaning);
        }
        let near = did_you_mean(&text, OnError::ALL.iter().map(|(word, _)| *word));
        let near = near.map(|near| format!(". {near}")).unwrap_or_default();
        self.refuse("on_error", &format!("must be `skip`, `continue` or `fail_fast`{near}"))
    }

    fn timeout(&mut self) -> Option<Duration> {
        let ms = Raw::of(self.present("timeout_ms")?).whole().filter(|ms| *ms > 0);
        let ms = ms.or_else(|| self.refuse("timeout_ms", "must be an integer number of milliseconds, at least 1"))?;
        Some(Duration::from_millis(ms.into()))
    }

    /// Reads the ids in `after`. Dependencies through references are collected where references are read.
    fn after(&mut self) {
        const NAME: &str = "after";
        let ids = match self.take(NAME) {
            None => return,
            Some(Value::String(id)) => vec![(String::new(), id)],
            Some(Value::Array(items)) => {
                let named = items.into_iter().zip(0..).filter_map(|(item, place): (_, usize)| match item {
                    Value::String(id) => Some((format!("/{place}"), id)),
                    _ => self.refuse(NAME, "must be an id or a list of ids"),
                });
                named.collect()
            }
            Some(_) => return self.refuse(NAME, "must be an id or a list of ids").unwrap_or_default(),
        };
        for (below, id) in ids {
            match self.names.tasks.get(id.as_str()) {
                Some(task) => self.after.push(*task),
                None if !self.names.complete => {}
                None => {
                    let near = self.names.suggestion(&id);
                    let message =
                        format!("`after` contains `{}`, which is not a task of this batch{near}", shortened(&id));
                    self.faults.add(format!("/commands/{}/after{below}", self.place), message);
                }
            }
        }
    }

    /// Returns a field that is present and not null. A task has so few fields that a linear search beats a hash map.
    fn present(&self, name: &str) -> Option<&Value> {
        let named = self.members.iter().find(|(field, _)| *field == name);
        named.map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// Takes the value of a field and leaves a placeholder, so that the field still counts as present.
    fn take(&mut self, name: &str) -> Option<Value> {
        let named = self.members.iter_mut().find(|(field, _)| *field == name);
        let value = named.map(|(_, value)| value).filter(|value| !value.is_null())?;
        Some(std::mem::replace(value, Value::Bool(true)))
    }

    /// Returns the alias under which a field was sent, and reports two aliases of one field.
    fn named(&mut self, names: &[&'static str]) -> Option<&'static str> {
        let mut present = names.iter().copied().filter(|name| self.present(name).is_some());
        let (first, second) = (present.next()?, present.next());
        if let Some(second) = second {
            self.refuse::<()>(second, &format!("and `{first}` are the same field; use one of them"));
        }
        Some(first)
    }

    fn text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) if !text.trim().is_empty() => Some(text),
            _ => self.refuse(name, "must be a string that is not empty"),
        }
    }

    fn flag(&mut self, name: &str) -> bool {
        match self.present(name) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => self.refuse(name, "must be true or false").unwrap_or_default(),
        }
    }

    fn template(&mut self, name: &str, value: Value, names: KnownNames<'_>) -> JsonTemplate {
        let place = FieldLocation { task: self.place, field: name };
        JsonTemplate::read(value, place, names, self.faults, &mut self.after)
    }

    /// Reports a violation and returns `None` in place of the value.
    fn refuse<T>(&mut self, name: &str, what: &str) -> Option<T> {
        self.faults.add(format!("/commands/{}{}", self.place, step(name)), format!("`{name}` {what}"));
        None
    }
}
