//! Permissions as editable lines: a module, a tool, a pattern or a risk in each. Shared by projects, accounts and
//! users.

use hikite_api::{PermissionsAnswer, PermissionsRequest};
use hikite_core::json::Raw;
use serde_json::{Map, Value};

use crate::api::read;
use crate::context::PageContext;
use crate::form::SubmittedFields;

/// The lines of a permission form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PermissionLines {
    /// `true` if only listed entries are allowed.
    pub(crate) is_limited: bool,
    pub(crate) allow: String,
    pub(crate) deny: String,
    /// Switches of single tools, as JSON; rarely needed.
    pub(crate) tools: String,
}

impl PermissionLines {
    pub(crate) fn of(permissions: Option<&Value>) -> Self {
        let member = |name| permissions.and_then(|permissions| permissions.get(name));
        let lines = |name| {
            let entries = member(name).and_then(Value::as_array).into_iter().flatten();
            entries
                .map(|entry| entry.as_str().map_or_else(|| entry.to_string(), str::to_owned))
                .collect::<Vec<_>>()
                .join("\n")
        };
        Self {
            is_limited: member("allow").is_some_and(Value::is_array),
            allow: lines("allow"),
            deny: lines("deny"),
            tools: member("tools").map(Value::to_string).unwrap_or_default(),
        }
    }

    pub(crate) fn read(fields: &SubmittedFields) -> Self {
        let text = |name| fields.text(name).replace("\r\n", "\n");
        Self {
            is_limited: fields.is_checked("limited"),
            allow: text("allow"),
            deny: text("deny"),
            tools: text("tools"),
        }
    }

    /// Builds the API value; `null` if everything is allowed.
    pub(crate) fn value(&self) -> Result<Value, String> {
        let mut permissions = Map::new();
        if self.is_limited {
            permissions.insert("allow".into(), entries(&self.allow)?);
        }
        if !self.deny.trim().is_empty() {
            permissions.insert("deny".into(), entries(&self.deny)?);
        }
        if !self.tools.trim().is_empty() {
            let tools = serde_json::from_str(&self.tools).map_err(|error| error.to_string())?;
            permissions.insert("tools".into(), tools);
        }
        Ok(if permissions.is_empty() { Value::Null } else { Value::Object(permissions) })
    }
}

fn entries(lines: &str) -> Result<Value, String> {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            if !line.starts_with('{') {
                return Ok(Value::from(line));
            }
            serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))
        })
        .collect()
}

/// Returns the effect of permissions.
pub(crate) async fn preview(context: &PageContext, permissions: &Value) -> Option<PermissionsAnswer> {
    let permissions = if permissions.is_null() { Raw::empty_object() } else { Raw::of(permissions) };
    let answer = context.post("/v1/permissions/preview", &PermissionsRequest { permissions }).await;
    answer.and_then(read).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_read_is_written_back_the_same() {
        for permissions in [
            Value::Null,
            json!({ "allow": [] }),
            json!({ "allow": ["github", "jira:get_*"], "deny": ["risk:destructive", { "module": "m", "risk": "write" }] }),
            json!({ "deny": ["x"], "tools": { "a:b": false } }),
        ] {
            assert_eq!(PermissionLines::of(Some(&permissions)).value().expect("permissions"), permissions);
        }
        let wrong = PermissionLines { deny: "{".into(), ..PermissionLines::default() };
        assert!(wrong.value().is_err());
    }
}
