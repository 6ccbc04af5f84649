//! The `tools` block of a server or a category: selection and overrides of tools.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hikite_core::call_policy::CallPolicy;
use hikite_core::json::Raw;
use hikite_core::pattern::Pattern;
use hikite_core::tool_selection::{Override, PresetArgument, Selection, ToolRef};
use hikite_modules::NamedMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::checker::ConfigChecker;
use super::policy::{self, RetryFile};
use super::position::ConfigPath;
use super::unit::ConfigDuration;

/// Which tools are meant. Without any include, all of them. Names may be `tool`, `server:tool` or
/// `mcp__server__tool`.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ToolSelectionFile {
    /// The tools, by name.
    pub(crate) include_names: Option<Vec<String>>,
    /// Tools to leave out, by name.
    pub(crate) exclude_names: Option<Vec<String>>,
    /// More tools: globs like `read_*`, or regular expressions between slashes.
    pub(crate) include_patterns: Option<Vec<String>>,
    /// Tools to leave out: globs like `delete_*`, or regular expressions between slashes.
    pub(crate) exclude_patterns: Option<Vec<String>>,
    /// Changes to single tools, by name.
    pub(crate) overrides: Option<NamedMap<ToolOverrideFile>>,
}

/// Overrides of one tool.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolOverrideFile {
    /// `false` switches the tool off.
    #[schemars(extend("default" = true))]
    pub(crate) enabled: Option<bool>,
    /// Another name to show it under.
    pub(crate) name: Option<String>,
    /// Another description.
    pub(crate) description: Option<String>,
    /// For one call of it.
    pub(crate) timeout: Option<ConfigDuration>,
    /// Further attempts of calls that fail, if its annotations allow it.
    pub(crate) retry: Option<RetryFile>,
    /// How long a result is given again to the same caller, if its annotations say that it only reads.
    pub(crate) cache: Option<ConfigDuration>,
    /// Changes to its arguments, by name.
    pub(crate) arguments: Option<NamedMap<Preset>>,
}

/// Overrides of one argument.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Preset {
    /// Sent if the model sends nothing. Variables in a string are expanded.
    pub(crate) default: Option<serde_json::Value>,
    /// Not shown to the model, which then cannot set it either.
    #[schemars(extend("default" = false))]
    pub(crate) hidden: Option<bool>,
    /// Another description.
    pub(crate) description: Option<String>,
}

/// Checks the block. Names may be prefixed with `servers`; `others` are the remaining servers of the file.
pub(crate) fn check(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &ToolSelectionFile,
    servers: &[Arc<str>],
    others: &[Arc<str>],
) -> Selection {
    let mut read = SelectionReader { check, path, servers, others };
    let include_names = read.names("includeNames", raw.include_names.as_deref());
    read.unique("includeNames", raw.include_names.as_deref(), &include_names);
    Selection {
        include_names,
        include_patterns: read.patterns("includePatterns", raw.include_patterns.as_deref()),
        exclude_names: read.names("excludeNames", raw.exclude_names.as_deref()),
        exclude_patterns: read.patterns("excludePatterns", raw.exclude_patterns.as_deref()),
        overrides: raw.overrides.as_ref().map(|raw| read.overrides(raw)).unwrap_or_default(),
    }
}

struct SelectionReader<'c, 'a, 'r> {
    check: &'c mut ConfigChecker<'a, 'r>,
    path: &'c ConfigPath<'c>,
    servers: &'c [Arc<str>],
    others: &'c [Arc<str>],
}

impl SelectionReader<'_, '_, '_> {
    fn names(&mut self, key: &str, raw: Option<&[String]>) -> Vec<ToolRef> {
        let list = self.path.key(key);
        let raw = raw.unwrap_or_default().iter().enumerate();
        raw.map(|(index, text)| self.name(&list.index(index), text)).collect()
    }

    fn name(&mut self, path: &ConfigPath<'_>, text: &str) -> ToolRef {
        let name = ToolRef::parse(text, self.servers);
        if name.tool.is_empty() {
            self.check.report.error(path, "the name of a tool is empty", None);
        } else if name.tool.contains('*') {
            self.check.report.warning(path, format!("`{text}` is used as a name; patterns have their own keys"));
        } else if let Some(server) = ToolRef::parse(text, self.others).server {
            self.check.report.warning(path, format!("`{server}` is not a server of this category"));
        }
        name
    }

    /// Reports duplicates; two spellings of one tool count as duplicates too.
    fn unique(&mut self, key: &str, raw: Option<&[String]>, names: &[ToolRef]) {
        let list = self.path.key(key);
        let raw = raw.unwrap_or_default();
        let mut places: HashMap<(Option<&str>, &str), usize> = HashMap::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            let first = *places.entry(self.identity(name)).or_insert(index);
            if first < index {
                let message = match (&raw[first], &raw[index]) {
                    (a, b) if a == b => format!("`{a}` is already {key}[{first}]"),
                    (a, b) => format!("`{b}` is the same tool as `{a}`, {key}[{first}]"),
                };
                self.check.report.error(&list.index(index), message, Some("Remove one of them.".into()));
            }
        }
    }

    /// Returns the identity of a tool name; with only one server, its prefix makes no difference.
    fn identity<'n>(&self, name: &'n ToolRef) -> (Option<&'n str>, &'n str) {
        (name.server.as_deref().filter(|_| self.servers.len() != 1), &*name.tool)
    }

    fn patterns(&mut self, key: &str, raw: Option<&[String]>) -> Vec<Pattern> {
        let list = self.path.key(key);
        let raw = raw.unwrap_or_default().iter().enumerate();
        raw.filter_map(|(index, text)| {
            let hint = "Write a glob as `read_*` or `{get,list}_*`, and a regular expression as `/^get_/`.";
            match Pattern::parse(text) {
                Ok(pattern) => Some(pattern),
                Err(error) => self.check.fail(&list.index(index), one_line(&error.to_string()), hint),
            }
        })
        .collect()
    }

    fn overrides(&mut self, raw: &NamedMap<ToolOverrideFile>) -> Vec<(ToolRef, Override)> {
        let list = self.path.key("overrides");
        let mut overrides: Vec<(ToolRef, Override)> = Vec::new();
        let (mut tools, mut names) = (HashSet::new(), HashSet::new());
        for (text, change) in raw.iter() {
            let path = list.key(text);
            let name = ToolRef::parse(text, self.servers);
            let server = name.server.clone().filter(|_| self.servers.len() != 1);
            if !tools.insert((server, Arc::clone(&name.tool))) {
                let message = format!("`{}` already has an override in another spelling", name.tool);
                self.check.report.error_in_name(&path, message, Some("Merge the two.".into()));
            }
            let shown = change.name.as_deref();
            if let Some(shown) = shown.filter(|shown| !names.insert((*shown).to_owned())) {
                let message = format!("another tool is already shown as `{shown}`");
                self.check.report.error(&path.key("name"), message, Some("Choose another name.".into()));
            }
            let arguments = change.arguments.clone().unwrap_or_default();
            let arguments = arguments.iter().map(|(name, preset)| self.argument(&path, name, preset)).collect();
            let change = Override {
                enabled: change.enabled.unwrap_or(true),
                name: change.name.clone(),
                title: None,
                description: change.description.clone(),
                arguments,
                policy: self.policy(&path, change),
            };
            overrides.push((name, change));
        }
        overrides
    }

    fn policy(&mut self, path: &ConfigPath<'_>, change: &ToolOverrideFile) -> CallPolicy {
        CallPolicy {
            timeout: policy::timeout(self.check, &path.key("timeout"), change.timeout.as_ref()),
            retry: policy::retry(self.check, &path.key("retry"), change.retry.as_ref()),
            cache: policy::span(self.check, &path.key("cache"), change.cache.as_ref()),
        }
    }

    fn argument(&mut self, path: &ConfigPath<'_>, name: &str, preset: &Preset) -> PresetArgument {
        let (path, mut default) = (path.key("arguments"), preset.default.clone());
        if let Some(serde_json::Value::String(text)) = &mut default {
            let expanded = self.check.expand(&path.key(name).key("default"), text);
            *text = expanded.unwrap_or_default();
        }
        PresetArgument {
            name: name.to_owned(),
            default: default.map(Raw::from),
            hidden: preset.hidden.unwrap_or(false),
            description: preset.description.clone(),
        }
    }
}

/// Shortens a regex error, which spans several lines, to its reason on the last line.
fn one_line(error: &str) -> String {
    match (error.split_once(" regex parse error:"), error.rsplit_once("\nerror: ")) {
        (Some((front, _)), Some((_, reason))) => format!("{front} {reason}"),
        _ => error.replace('\n', " "),
    }
}
