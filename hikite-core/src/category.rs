//! Categories: named, described selections of tools across servers. A rule is what the config says; a category is that
//! rule resolved against the known tool lists.

pub(crate) mod rule;

use std::collections::HashMap;
use std::sync::Arc;

use crate::call_policy::{CallPolicy, ToolHints};
use crate::catalog::input::CatalogInput;
use crate::catalog::module::{Module, renamed};
use crate::json::Raw;
use crate::key::ToolKey;
use crate::offer::HeldTool;
use crate::permission::Permissions;
use crate::pin::Pinning;
use crate::switch::{DisabledReason, Switches};
use crate::tool_selection::{PresetArgument, Selection, ToolRef};

pub use rule::CategoryRule;

#[derive(Clone, Debug)]
pub struct Category {
    pub rule: Arc<CategoryRule>,
    pub entries: Vec<CategoryEntry>,
    /// Names in the rule that no server has, although all lists are known.
    pub unresolved: Vec<Arc<str>>,
    /// Names in the rule whose server has not returned its list yet.
    pub waiting: Vec<Arc<str>>,
    /// Servers of the rule whose lists are not known.
    pub missing: Vec<UnlistedServer>,
    /// Unapproved tools that the category would show, under the names they would have.
    held: Vec<(Arc<str>, HeldTool)>,
}

/// A server that has not returned its list, with the selection of its module.
#[derive(Clone, Debug)]
pub struct UnlistedServer {
    pub server: Arc<str>,
    selection: Arc<Selection>,
    /// `true` if unapproved tools of this server must not be called.
    strict: bool,
    /// Permissions that apply to the server's tools; `None` allows all.
    permissions: Option<Arc<Permissions>>,
    /// Its tools that were switched off at run time.
    disabled_reason: Vec<Arc<str>>,
}

/// A tool in a category, under the name that the category shows.
#[derive(Clone, Debug)]
pub struct CategoryEntry {
    pub name: Arc<str>,
    pub key: ToolKey,
    pub definition: Raw,
    pub arguments: Arc<[PresetArgument]>,
    pub hints: ToolHints,
    pub policy: CallPolicy,
    /// Reason why the tool cannot be called here; `None` if it can.
    pub disabled_reason: Option<DisabledReason>,
}

/// Result of resolving a tool name in a category.
#[derive(Debug)]
pub enum CategoryLookup<'a> {
    Found(&'a CategoryEntry),
    Disabled(DisabledReason),
    /// The config names the tool, but the server's list is unknown, so the server decides. Configured arguments and
    /// restrictions still apply.
    Unlisted {
        key: ToolKey,
        arguments: Vec<PresetArgument>,
        policy: CallPolicy,
    },
    /// The config names the tool, but its server permits no calls before its list is known.
    ServerUnlisted(Arc<str>),
    Unknown,
}

impl Category {
    pub(crate) fn resolve(rule: Arc<CategoryRule>, modules: &[Module], input: &CatalogInput) -> Self {
        let mut category = Self {
            entries: Vec::new(),
            unresolved: Vec::new(),
            waiting: Vec::new(),
            missing: Vec::new(),
            held: Vec::new(),
            rule,
        };
        let rule = Arc::clone(&category.rule);
        for server in &rule.servers {
            let module = modules.iter().find(|module| module.name == *server);
            category.held.extend(module.into_iter().flat_map(|module| held(&rule, module)));
            match module {
                Some(module) if module.listing.is_some() => category.entries.extend(entries(&rule, module)),
                module => category.missing.push(UnlistedServer {
                    server: Arc::clone(server),
                    selection: module.map(|module| Arc::clone(&module.selection)).unwrap_or_default(),
                    strict: module.is_some_and(|module| module.pins == Pinning::Strict),
                    permissions: input.permissions.clone(),
                    disabled_reason: switched_off(&input.switches, server),
                }),
            }
        }
        category.qualify_duplicate_names();
        for name in rule.selection.written() {
            let mut servers = rule.servers.iter().filter(|server| name.may_be_of(server));
            if category.has(name, modules) || !servers.any(|server| input.may_mention(server, &name.tool)) {
                continue;
            }
            let waits = category.missing.iter().any(|missing| name.may_be_of(&missing.server));
            let list = if waits { &mut category.waiting } else { &mut category.unresolved };
            if !list.contains(&name.tool) {
                list.push(Arc::clone(&name.tool));
            }
        }
        category
    }

    pub fn find(&self, name: &str) -> CategoryLookup<'_> {
        let wanted = ToolRef::parse(name, &self.rule.servers);
        if let Some(entry) = self.entries.iter().find(|entry| &*entry.name == name) {
            return CategoryLookup::of(entry);
        }
        let mut meant = self.entries.iter().filter(|entry| wanted.matches(&entry.key.module, &entry.key.tool));
        match (meant.next(), meant.next()) {
            (Some(entry), None) => CategoryLookup::of(entry),
            // Two servers have this tool: the name is ambiguous.
            (Some(_), Some(_)) => CategoryLookup::Unknown,
            (None, _) => match self.held.iter().find(|(shown, held)| **shown == *name || held.matches(&wanted)) {
                Some((_, held)) => CategoryLookup::Disabled(held.disabled_reason()),
                None => self.find_unlisted(&wanted),
            },
        }
    }

    /// Returns `true` if a server that has not returned its list could change what the name resolves to.
    pub fn depends_on_unlisted_server(&self, name: &str) -> bool {
        let unsure = |found| {
            matches!(
                found,
                CategoryLookup::Unlisted { .. } | CategoryLookup::ServerUnlisted(_) | CategoryLookup::Unknown
            )
        };
        !self.missing.is_empty() && unsure(self.find(name))
    }

    /// Returns `true` if at least one of its servers has returned its list.
    pub fn has_listed_server(&self) -> bool {
        self.missing.len() < self.rule.servers.len()
    }

    pub fn enabled(&self) -> impl Iterator<Item = &CategoryEntry> {
        self.entries.iter().filter(|entry| entry.disabled_reason.is_none())
    }

    pub fn shows(&self, key: &ToolKey) -> bool {
        self.entries.iter().any(|entry| entry.key == *key)
    }

    fn find_unlisted(&self, wanted: &ToolRef) -> CategoryLookup<'_> {
        let ours = &self.rule.selection;
        for UnlistedServer { server, selection: theirs, strict, permissions, disabled_reason } in &self.missing {
            if !wanted.may_be_of(server) {
                continue;
            }
            let tool = ours.original(server, &theirs.original(server, &wanted.tool));
            let key = ToolKey::new(Arc::clone(server), Arc::clone(&tool));
            if permissions.as_ref().is_some_and(|permissions| !permissions.allows_unlisted(&key)) {
                continue;
            }
            if ours.disables(server, &tool) || theirs.disables(server, &tool) {
                return CategoryLookup::Disabled(DisabledReason::File);
            }
            if disabled_reason.contains(&tool) {
                return CategoryLookup::Disabled(DisabledReason::Switch);
            }
            if ours.selects(server, &tool) && theirs.selects(server, &tool) {
                if *strict {
                    return CategoryLookup::ServerUnlisted(Arc::clone(server));
                }
                let changes = [theirs, ours].into_iter().filter_map(|rule| rule.override_of(server, &tool));
                return CategoryLookup::Unlisted {
                    policy: changes.clone().fold(CallPolicy::default(), |all, change| change.policy.or(all)),
                    arguments: changes.flat_map(|change| change.arguments.iter().cloned()).collect(),
                    key,
                };
            }
        }
        CategoryLookup::Unknown
    }

    fn has(&self, name: &ToolRef, modules: &[Module]) -> bool {
        self.rule.servers.iter().any(|server| {
            modules.iter().find(|module| module.name == *server).is_some_and(|module| {
                module.tools.iter().any(|t| name.matches(server, &t.key.tool))
                    || module.held.iter().any(|held| held.matches(name))
            })
        })
    }

    /// Renames tools that share a name across servers to `server:tool`.
    fn qualify_duplicate_names(&mut self) {
        let mut seen: HashMap<Arc<str>, usize> = HashMap::new();
        for entry in &self.entries {
            *seen.entry(Arc::clone(&entry.name)).or_default() += 1;
        }
        for entry in self.entries.iter_mut().filter(|entry| seen[&entry.name] > 1) {
            let name: Arc<str> = format!("{}:{}", entry.key.module, entry.name).into();
            entry.definition = renamed(&entry.definition, &entry.name, &name);
            entry.name = name;
        }
    }
}

impl<'a> CategoryLookup<'a> {
    fn of(entry: &'a CategoryEntry) -> Self {
        match &entry.disabled_reason {
            None => Self::Found(entry),
            Some(disabled_reason) => Self::Disabled(disabled_reason.clone()),
        }
    }
}

/// Returns the module's unapproved tools that the rule selects.
fn held(rule: &CategoryRule, module: &Module) -> impl Iterator<Item = (Arc<str>, HeldTool)> {
    let selected = module.held.iter().filter(|held| rule.selection.selects(&module.name, &held.key.tool));
    selected.map(|held| {
        let change = rule.selection.override_of(&module.name, &held.key.tool);
        let name = change.and_then(|change| change.name.as_deref()).map(Arc::from);
        (name.unwrap_or_else(|| Arc::clone(&held.name)), held.clone())
    })
}

/// The tools of a server that an administrator switched off.
fn switched_off(switches: &Switches, server: &Arc<str>) -> Vec<Arc<str>> {
    let disabled_reason = switches.iter().filter(|(key, on)| !**on && key.module == *server);
    disabled_reason.map(|(key, _)| Arc::clone(&key.tool)).collect()
}

/// The selected tools of one module, and those the rule only switches off.
fn entries<'a>(rule: &'a CategoryRule, module: &'a Module) -> impl Iterator<Item = CategoryEntry> + 'a {
    let selection = &rule.selection;
    module.tools.iter().filter_map(move |tool| {
        let change = selection.override_of(&module.name, &tool.key.tool);
        let disabled = change.is_some_and(|change| !change.enabled);
        if !disabled && !selection.selects(&module.name, &tool.key.tool) {
            return None;
        }
        let definition = change.map_or_else(|| tool.definition.clone(), |c| c.apply(&tool.definition));
        let mut arguments = tool.arguments.to_vec();
        arguments.extend(change.into_iter().flat_map(|change| change.arguments.iter().cloned()));
        Some(CategoryEntry {
            name: change.and_then(|c| c.name.as_deref().map(Arc::from)).unwrap_or_else(|| Arc::clone(&tool.name)),
            key: tool.key.clone(),
            definition,
            arguments: arguments.into(),
            hints: tool.hints,
            policy: change.map(|change| change.policy).unwrap_or_default().or(tool.policy),
            disabled_reason: if disabled { Some(DisabledReason::File) } else { tool.disabled_reason.clone() },
        })
    })
}
