//! Imports the config of another client: reports what each entry would change, and applies the changes on request.
//! Stdio servers are only reported, with the command that adds them on the machine itself.

use hikite_config::import;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use serde_json::Value;

use super::upstream::{command, masked, read};
use super::{check_name, wrong};
use crate::runtime::Runtime;

/// One entry of the imported config, and the change it would make.
struct ImportChange {
    name: String,
    kind: &'static str,
    action: &'static str,
    before: Option<Value>,
    after: Option<Value>,
    command: Option<String>,
    message: Option<String>,
}

impl Runtime {
    pub(super) async fn import(&self, config: &Raw, apply: bool) -> Result<Raw, Error> {
        let text = config.text().unwrap_or_else(|| config.as_str().into_owned());
        let imported = import::import(None, "config", &text).map_err(|problems| wrong(&problems, ""))?;
        let (mut lines, mut applied) = (Vec::new(), Vec::new());
        for (name, entry) in &imported.servers {
            let mut line = self.line(name, entry).await?;
            if apply && matches!(line.action, "add" | "change") {
                let form = Raw::of(entry).object().unwrap_or_default();
                match self.put_upstream(name, &form).await {
                    Ok(_) => applied.push(name.as_str()),
                    Err(error) => (line.action, line.message) = ("refused", Some(message_of(&error))),
                }
            }
            lines.push(line.raw());
        }
        Ok(Object::default()
            .with("entries", Raw::array(&lines))
            .with("applied", Raw::of(&applied))
            .with("notes", Raw::of(&imported.notes))
            .raw())
    }

    async fn line(&self, name: &str, entry: &Value) -> Result<ImportChange, Error> {
        let is_stdio = entry.get("command").is_some();
        let mut line = ImportChange {
            name: name.to_owned(),
            kind: if is_stdio { "stdio" } else { "http" },
            action: "refused",
            before: None,
            after: None,
            command: None,
            message: None,
        };
        if let Err(error) = self.is_free_for_upstream(name) {
            (line.action, line.message) = ("file", Some(message_of(&error)));
        } else if is_stdio {
            line.command = Some(command(name, entry));
            line.message = Some("A program can only be set up on its own machine.".into());
        } else if let Err(error) = check_name(name).and_then(|()| read(name, entry)) {
            line.message = Some(message_of(&error));
        } else {
            let before = self.secret_entry(name).await?;
            line.action = match &before {
                None => "add",
                Some(before) if before == entry => "same",
                Some(_) => "change",
            };
            line.before = before.as_ref().map(masked);
            line.after = Some(masked(entry));
        }
        Ok(line)
    }
}

impl ImportChange {
    fn raw(&self) -> Raw {
        let mut object =
            Object::default().with("name", self.name.as_str()).with("kind", self.kind).with("action", self.action);
        for (name, entry) in [("before", &self.before), ("after", &self.after)] {
            if let Some(entry) = entry {
                object.set(name, Raw::of(entry));
            }
        }
        for (name, text) in [("command", &self.command), ("message", &self.message)] {
            if let Some(text) = text {
                object.set(name, text.as_str());
            }
        }
        object.raw()
    }
}

/// Formats an error, with its hint if it is a validation error.
fn message_of(error: &Error) -> String {
    match (&error.hint, error.kind) {
        (Some(hint), ErrorKind::Validation) => format!("{}: {hint}", error.message),
        _ => error.message.to_string(),
    }
}
