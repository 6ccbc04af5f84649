//! Overrides of tool titles and descriptions, shown instead of the server's own. They are stored and do not affect
//! how a tool is called.

use std::collections::HashMap;
use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::catalog::ModuleRule;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::tool_selection::{Override, Selection, ToolRef};
use hikite_core::violation::{self, Violation};
use hikite_store::DocumentRow;

use crate::clock::now_ms;
use crate::gateway::Gateway;

/// Store kind of overrides.
pub(crate) const TEXT: &str = "tool_text";
const TITLE_CHARS: usize = 200;
const DESCRIPTION_CHARS: usize = 10_000;

pub(crate) type TextOverrides = HashMap<ToolKey, TextOverride>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextOverride {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
}

impl TextOverride {
    fn read(form: &Object) -> Self {
        Self { title: form.text("title"), description: form.text("description") }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn object(&self) -> Object {
        let mut object = Object::default();
        for (name, text) in [("title", &self.title), ("description", &self.description)] {
            if let Some(text) = text {
                object.set(name, text.as_str());
            }
        }
        object
    }

    /// Applies a document: a text replaces, `null` removes, absent members stay.
    fn changed(&self, form: &Object) -> Result<Self, Error> {
        let mut faults = Vec::new();
        let known = ["title", "description"];
        for (name, _) in form.iter().filter(|(name, _)| !known.contains(name)) {
            faults.push(Violation::new(
                violation::step(name),
                format!("Unknown member `{name}`; allowed are title and description."),
            ));
        }
        let mut member = |name: &str, longest: usize, before: &Option<String>| match form.get(name) {
            None => before.clone(),
            Some(raw) if raw.is_null() => None,
            Some(raw) => {
                let text = raw.text().filter(|text| !text.trim().is_empty() && text.chars().count() <= longest);
                if text.is_none() {
                    let message = format!("`{name}` must be null or a string of at most {longest} characters.");
                    faults.push(Violation::new(violation::step(name), message));
                }
                text
            }
        };
        let title = member("title", TITLE_CHARS, &self.title);
        let description = member("description", DESCRIPTION_CHARS, &self.description);
        if faults.is_empty() { Ok(Self { title, description }) } else { Err(violation::error(&faults)) }
    }
}

impl Gateway {
    /// Changes the overrides of a tool and returns its REST object.
    pub async fn override_tool_texts(&self, name: &str, form: &Object) -> Result<Raw, Error> {
        self.look_up(&Caller::owner(), |view| view.any_tool(name).map(drop)).await?;
        {
            let _turn = self.registry.turn.lock().await;
            let key = self.owner_view().any_tool(name)?.key.clone();
            let before =
                self.with_tool_registry(|tool_registry| tool_registry.texts.get(&key).cloned()).unwrap_or_default();
            let text = before.changed(form)?;
            self.write_override(&key, &text).await?;
            self.change_tool_registry(|tool_registry| {
                tool_registry.texts.remove(&key);
                if !text.is_empty() {
                    tool_registry.texts.insert(key, text);
                }
            });
        }
        self.tool(&Caller::owner(), name).await
    }

    async fn write_override(&self, key: &ToolKey, text: &TextOverride) -> Result<(), Error> {
        let store = &self.registry.store;
        let (id, now) = (key.to_string(), now_ms());
        if text.is_empty() {
            store.take_document(TEXT, &id, now).await?;
            return Ok(());
        }
        let form = text.object().with("module", &*key.module).with("tool", &*key.tool).raw();
        loop {
            let before = store.entry(TEXT, &id, now).await?;
            let version = before.as_ref().map_or(1, |before| before.version);
            let (kind, id, owner) = (TEXT, id.clone(), String::new());
            let entry = DocumentRow { kind, id, owner, form: form.clone(), version, created_at: now, expires_at: 0 };
            let done = match before {
                Some(_) => store.change_document(&entry).await?,
                None => store.put_document(&entry).await?,
            };
            if done {
                return Ok(());
            }
        }
    }

    /// Reads all overrides from the store.
    pub(crate) async fn read_overrides(&self) -> Result<TextOverrides, Error> {
        let entries = self.registry.store.entries(TEXT, None, now_ms()).await?;
        let read = |entry: &DocumentRow| {
            let form = entry.form.object()?;
            Some((ToolKey::new(form.text("module")?, form.text("tool")?), TextOverride::read(&form)))
        };
        Ok(entries.iter().filter_map(read).collect())
    }

    /// Adds the overrides and the server's own texts to a tool object, for administrators.
    pub(crate) fn with_text_overrides(&self, object: Object, key: &ToolKey, original: &Raw) -> Object {
        let text = self.with_tool_registry(|tool_registry| tool_registry.texts.get(key).cloned()).unwrap_or_default();
        let original = TextOverride::read(&original.object().unwrap_or_default());
        object.with("overrides", text.object()).with("original", original.object())
    }
}

/// Returns a module's rule with the overrides of its tools.
pub(crate) fn with_overrides(rule: &ModuleRule, texts: &TextOverrides) -> ModuleRule {
    let mut rule = rule.clone();
    let own = texts.iter().filter(|(key, _)| key.module == rule.name);
    let mut selection: Option<Selection> = None;
    for (key, text) in own {
        let selection = selection.get_or_insert_with(|| Selection::clone(&rule.selection));
        let known = selection.overrides.iter().position(|(tool, _)| tool.matches(&key.module, &key.tool));
        let at = known.unwrap_or_else(|| {
            let tool = ToolRef { server: None, tool: Arc::clone(&key.tool) };
            selection.overrides.push((tool, Override::default()));
            selection.overrides.len() - 1
        });
        let change = &mut selection.overrides[at].1;
        change.title = text.title.clone().or_else(|| change.title.take());
        change.description = text.description.clone().or_else(|| change.description.take());
    }
    if let Some(selection) = selection {
        rule.selection = Arc::new(selection);
    }
    rule
}

#[cfg(test)]
mod tests {
    use hikite_core::error::ErrorKind;

    use super::*;

    fn form(text: &str) -> Object {
        Raw::parse(text.to_owned()).expect("JSON").object().expect("an object")
    }

    #[track_caller]
    fn check(sent: &str, expected: Result<&str, ErrorKind>) {
        let before = TextOverride { title: Some("old".into()), description: None };
        let changed = before.changed(&form(sent)).map(|text| text.object().raw().as_str().into_owned());
        assert_eq!(changed.map_err(|error| error.kind), expected.map(Into::into), "{sent}");
    }

    #[test]
    fn a_text_replaces_null_takes_away_and_the_rest_stays() {
        check("{}", Ok(r#"{"title":"old"}"#));
        check(r#"{"title":null}"#, Ok("{}"));
        check(r#"{"description":"new"}"#, Ok(r#"{"title":"old","description":"new"}"#));
        for wrong in [r#"{"title":""}"#, r#"{"title":1}"#, r#"{"name":"x"}"#] {
            check(wrong, Err(ErrorKind::Validation));
        }
        check(&format!(r#"{{"title":"{}"}}"#, "x".repeat(201)), Err(ErrorKind::Validation));
    }
}
