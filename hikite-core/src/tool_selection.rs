//! Selection and overrides of a source's tools: the validated `tools` block of a server or a category.

use std::sync::Arc;

use crate::call_policy::CallPolicy;
use crate::json::{Object, Raw};
use crate::pattern::Pattern;

/// A tool reference in the config: `tool`, `server:tool` or `mcp__server__tool`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolRef {
    pub server: Option<Arc<str>>,
    pub tool: Arc<str>,
}

impl ToolRef {
    /// Parses a reference. Only known servers count as prefixes, so that a tool may itself be named `a:b`.
    pub fn parse<S: AsRef<str>>(text: &str, servers: &[S]) -> Self {
        for server in servers {
            let server = server.as_ref();
            let rest = text
                .strip_prefix("mcp__")
                .and_then(|rest| rest.strip_prefix(server)?.strip_prefix("__"))
                .or_else(|| text.strip_prefix(server)?.strip_prefix(':'));
            if let Some(tool) = rest.filter(|tool| !tool.is_empty()) {
                return Self { server: Some(server.into()), tool: tool.into() };
            }
        }
        Self { server: None, tool: text.into() }
    }

    pub fn matches(&self, server: &str, tool: &str) -> bool {
        &*self.tool == tool && self.may_be_of(server)
    }

    pub fn may_be_of(&self, server: &str) -> bool {
        self.server.as_deref().is_none_or(|named| named == server)
    }
}

/// Includes, excludes and overrides by name and pattern. Without any include, all tools are selected.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    pub include_names: Vec<ToolRef>,
    pub include_patterns: Vec<Pattern>,
    pub exclude_names: Vec<ToolRef>,
    pub exclude_patterns: Vec<Pattern>,
    pub overrides: Vec<(ToolRef, Override)>,
}

impl Selection {
    pub fn selects(&self, server: &str, tool: &str) -> bool {
        let everything = self.include_names.is_empty() && self.include_patterns.is_empty();
        let included = everything || listed(&self.include_names, &self.include_patterns, server, tool);
        included && !listed(&self.exclude_names, &self.exclude_patterns, server, tool)
    }

    pub fn override_of(&self, server: &str, tool: &str) -> Option<&Override> {
        self.overrides.iter().find(|(name, _)| name.matches(server, tool)).map(|(_, change)| change)
    }

    /// Returns the original tool name for a name that an override assigns.
    pub fn original(&self, server: &str, name: &str) -> Arc<str> {
        let renamed =
            self.overrides.iter().find(|(tool, change)| tool.may_be_of(server) && change.name.as_deref() == Some(name));
        renamed.map_or_else(|| name.into(), |(tool, _)| Arc::clone(&tool.tool))
    }

    pub fn disables(&self, server: &str, tool: &str) -> bool {
        self.override_of(server, tool).is_some_and(|change| !change.enabled)
    }

    /// Returns the names written out in includes and overrides, to warn about those that the server lacks.
    pub fn written(&self) -> impl Iterator<Item = &ToolRef> {
        let overridden = self.overrides.iter().map(|(name, _)| name);
        let extra = overridden.filter(|name| !self.include_names.contains(name));
        self.include_names.iter().chain(extra)
    }
}

fn listed(names: &[ToolRef], patterns: &[Pattern], server: &str, tool: &str) -> bool {
    names.iter().any(|name| name.matches(server, tool))
        || patterns.iter().any(|p| p.matches(tool) || p.matches(&format!("{server}:{tool}")))
}

/// Changes to one tool.
#[derive(Clone, Debug)]
pub struct Override {
    pub enabled: bool,
    pub name: Option<String>,
    pub title: Option<String>,
    pub description: Option<String>,
    pub arguments: Vec<PresetArgument>,
    pub policy: CallPolicy,
}

impl Default for Override {
    fn default() -> Self {
        Self {
            enabled: true,
            name: None,
            title: None,
            description: None,
            arguments: Vec::new(),
            policy: CallPolicy::default(),
        }
    }
}

/// A preset argument. A hidden one is removed from the schema, and a value sent for it is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresetArgument {
    pub name: String,
    pub default: Option<Raw>,
    pub hidden: bool,
    pub description: Option<String>,
}

impl Override {
    /// Returns the definition with the overrides applied. Other members keep their bytes.
    pub fn apply(&self, definition: &Raw) -> Raw {
        let Some(mut tool) = definition.object() else { return definition.clone() };
        if let Some(name) = &self.name {
            tool.set("name", name.as_str());
        }
        if let Some(title) = &self.title {
            tool.set("title", title.as_str());
        }
        if let Some(description) = &self.description {
            tool.set("description", description.as_str());
        }
        if !self.arguments.is_empty() {
            let schema = tool.get("inputSchema").and_then(Raw::object).unwrap_or_default();
            tool.set("inputSchema", self.schema(schema));
        }
        tool.raw()
    }

    fn schema(&self, mut schema: Object) -> Object {
        let mut properties = schema.get("properties").and_then(Raw::object).unwrap_or_default();
        let mut required: Vec<String> = schema.get("required").and_then(|raw| raw.decode().ok()).unwrap_or_default();
        for argument in &self.arguments {
            if argument.hidden || argument.default.is_some() {
                required.retain(|name| *name != argument.name);
            }
            if argument.hidden {
                properties.remove(&argument.name);
                continue;
            }
            let mut property = properties.get(&argument.name).and_then(Raw::object).unwrap_or_default();
            if let Some(default) = &argument.default {
                property.set("default", default.clone());
            }
            if let Some(description) = &argument.description {
                property.set("description", description.as_str());
            }
            properties.set(&argument.name, property);
        }
        schema.set("properties", properties);
        if schema.get("required").is_some() {
            schema.set("required", Raw::of(&required));
        }
        schema
    }
}

/// Applies presets to the arguments of a call.
pub fn preset(rules: &[PresetArgument], arguments: &mut Object) {
    for rule in rules {
        if rule.hidden {
            arguments.remove(&rule.name);
        }
        if let Some(default) = &rule.default
            && arguments.get(&rule.name).is_none()
        {
            arguments.set(&rule.name, default.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).expect("valid JSON")
    }

    #[test]
    fn the_three_spellings_mean_one_tool() {
        for text in ["read_file", "serena:read_file", "mcp__serena__read_file"] {
            assert!(ToolRef::parse(text, &["serena"]).matches("serena", "read_file"), "{text}");
        }
        assert!(!ToolRef::parse("other:read_file", &["serena", "other"]).matches("serena", "read_file"));
        assert_eq!(&*ToolRef::parse("a:b", &["serena"]).tool, "a:b");
    }

    #[test]
    fn a_hidden_argument_leaves_the_schema_and_cannot_be_sent() {
        let argument = |name: &str, hidden, default: &str| PresetArgument {
            name: name.into(),
            default: Some(raw(default)),
            hidden,
            description: None,
        };
        let change = Override {
            arguments: vec![argument("root", true, r#""/srv""#), argument("depth", false, "2")],
            ..Override::default()
        };
        let shown = change.apply(&raw(
            r#"{"name":"ls","inputSchema":{"type":"object","properties":{"root":{"type":"string"},"depth":{"type":"integer"},"q":{}},"required":["root","depth","q"]}}"#,
        ));
        assert_eq!(
            shown.as_str(),
            r#"{"name":"ls","inputSchema":{"type":"object","properties":{"depth":{"type":"integer","default":2},"q":{}},"required":["q"]}}"#
        );
        let mut sent = raw(r#"{"root":"/etc","q":1}"#).object().expect("object");
        preset(&change.arguments, &mut sent);
        assert_eq!(sent.raw().as_str(), r#"{"q":1,"root":"/srv","depth":2}"#);
    }
}
