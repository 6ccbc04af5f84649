//! In-memory registry: registered tools, the switches of all tools, and when each tool was first seen.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use hikite_core::call_policy::ToolMetadata;
use hikite_core::catalog::{Catalog, ModuleRule};
use hikite_core::key::ToolKey;
use hikite_core::listing::ListItem;
use hikite_core::origin::ConfigOrigin;
use hikite_core::registration::ToolRegistration;
use hikite_core::source::ToolHandler;
use hikite_core::switch::Switches;
use hikite_core::tool_selection::{Override, Selection, ToolRef};

use crate::overrides::TextOverrides;
use crate::registered_source::RegisteredSource;

#[derive(Clone, Debug)]
pub(crate) struct RegisteredTool {
    pub(crate) registration: Arc<ToolRegistration>,
    pub(crate) implementation: Arc<dyn ToolHandler>,
    pub(crate) registered_at: u64,
    pub(crate) origin: ConfigOrigin,
}

#[derive(Debug, Default)]
pub(crate) struct ToolRegistry {
    tools: BTreeMap<ToolKey, RegisteredTool>,
    /// One rule per module of `tools`, rebuilt when one of its tools changes.
    modules: BTreeMap<Arc<str>, ModuleRule>,
    pub(crate) switches: Switches,
    pub(crate) texts: TextOverrides,
    seen: HashMap<ToolKey, u64>,
    /// Newly seen tools that are not persisted yet.
    unsaved: Vec<ToolKey>,
}

impl ToolRegistry {
    pub(crate) fn get(&self, key: &ToolKey) -> Option<&RegisteredTool> {
        self.tools.get(key)
    }

    pub(crate) fn of(&self, origin: ConfigOrigin) -> impl Iterator<Item = (&ToolKey, &RegisteredTool)> {
        self.tools.iter().filter(move |(_, entry)| entry.origin == origin)
    }

    /// Returns `true` if a whole module is disabled. Its switch has the key of a tool with an empty name, which does
    /// not exist.
    pub(crate) fn is_module_disabled(&self, module: &str) -> bool {
        self.switches.get(&ToolKey::new(module, "")) == Some(&false)
    }

    pub(crate) fn modules(&self) -> impl Iterator<Item = &ModuleRule> {
        self.modules.values()
    }

    pub(crate) fn put(&mut self, entry: RegisteredTool) {
        self.replace(Vec::new(), vec![entry]);
    }

    pub(crate) fn remove(&mut self, key: &ToolKey) {
        self.switches.remove(key);
        self.replace(vec![key.clone()], Vec::new());
    }

    /// Removes and adds tools in one step.
    pub(crate) fn replace(&mut self, away: Vec<ToolKey>, more: Vec<RegisteredTool>) {
        let mut touched: Vec<Arc<str>> = Vec::new();
        for key in away {
            self.tools.remove(&key);
            touched.push(key.module);
        }
        for entry in more {
            let key = entry.registration.key.clone();
            touched.push(Arc::clone(&key.module));
            self.tools.insert(key, entry);
        }
        touched.sort_unstable();
        touched.dedup();
        for module in touched {
            self.make(module);
        }
    }

    fn make(&mut self, module: Arc<str>) {
        let first = ToolKey::new(Arc::clone(&module), "");
        let entries: Vec<&RegisteredTool> =
            self.tools.range(first..).take_while(|(key, _)| key.module == module).map(|(_, entry)| entry).collect();
        if entries.is_empty() {
            self.modules.remove(&module);
            return;
        }
        let name = |entry: &RegisteredTool| Arc::clone(&entry.registration.key.tool);
        let about: HashMap<Arc<str>, Arc<ToolMetadata>> =
            entries.iter().map(|entry| (name(entry), Arc::clone(&entry.registration.about))).collect();
        let tools = entries.iter().map(|entry| {
            let item = ListItem { name: name(entry), raw: entry.registration.definition.clone() };
            (item, Arc::clone(&entry.implementation))
        });
        let disabled = entries.iter().filter(|entry| !entry.registration.enabled).map(|entry| {
            let tool = ToolRef { server: None, tool: name(entry) };
            (tool, Override { enabled: false, ..Override::default() })
        });
        let disabled = disabled.collect();
        let source = Arc::new(RegisteredSource::new(&module, tools));
        let rule = ModuleRule {
            description: "Tools registered with this gateway".into(),
            selection: Arc::new(Selection { overrides: disabled, ..Selection::default() }),
            about: Arc::new(about),
            registered: true,
            ..ModuleRule::new(Arc::clone(&module), source)
        };
        self.modules.insert(module, rule);
    }

    /// Loads the first-seen timestamps from the store.
    pub(crate) fn load_first_seen(&mut self, seen: impl IntoIterator<Item = (ToolKey, u64)>) {
        self.seen.extend(seen);
    }

    /// Records the first-seen time of new tools in a catalog.
    pub(crate) fn note_first_seen(&mut self, catalog: &Catalog, now: u64) {
        for tool in catalog.tools() {
            if !self.seen.contains_key(&tool.key) {
                self.seen.insert(tool.key.clone(), now);
                self.unsaved.push(tool.key.clone());
            }
        }
    }

    pub(crate) fn take_unsaved(&mut self) -> Vec<ToolKey> {
        std::mem::take(&mut self.unsaved)
    }

    pub(crate) fn restore_unsaved(&mut self, unsaved: Vec<ToolKey>) {
        self.unsaved.extend(unsaved);
    }

    pub(crate) fn known_since(&self, key: &ToolKey) -> Option<u64> {
        self.tools.get(key).map(|entry| entry.registered_at).or_else(|| self.seen.get(key).copied())
    }
}
