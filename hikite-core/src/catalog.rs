//! The catalog: an immutable snapshot of all modules, categories, tools, resources and prompts. It is built
//! off the path of a call and replaced as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use crate::about::{About, Policy, Promise};
use crate::category::{Category, CategoryRule, Entry};
use crate::json::{Object, Raw};
use crate::key::ToolKey;
use crate::listing::{Item, ListKind, Listing};
use crate::name;
use crate::selection::{Argument, Override, Selection};
use crate::source::Source;

/// A module as the config names it, with the source that fills it.
#[derive(Clone, Debug)]
pub struct ModuleRule {
    pub name: Arc<str>,
    pub description: String,
    pub selection: Arc<Selection>,
    pub source: Arc<dyn Source>,
    /// What was said of its tools when they were registered, by their own names.
    pub about: Arc<HashMap<Arc<str>, Arc<About>>>,
    /// How calls of its tools are run where their own overrides decide nothing.
    pub policy: Policy,
    /// The same for what is read of its resources.
    pub resources: Policy,
}

#[derive(Debug)]
pub struct Module {
    pub name: Arc<str>,
    pub description: String,
    pub source: Arc<dyn Source>,
    pub listing: Option<Arc<Listing>>,
    pub selection: Arc<Selection>,
    pub tools: Vec<Tool>,
    /// Names the module's own rule writes that its list does not have.
    pub unresolved: Vec<Arc<str>>,
    /// How calls of its tools are run where nothing else is decided.
    pub policy: Policy,
    /// How its resources are read.
    pub resources: Policy,
}

#[derive(Clone, Debug)]
pub struct Tool {
    pub key: ToolKey,
    /// The name after the module's own override.
    pub name: Arc<str>,
    /// The name the `direct` surface shows.
    pub direct_name: Arc<str>,
    /// The definition under `name`.
    pub definition: Raw,
    pub arguments: Arc<[Argument]>,
    pub about: Arc<About>,
    pub promise: Promise,
    pub policy: Policy,
    /// Whether the module's own rule lets it through.
    pub allowed: bool,
    /// Whether it can be called outside a category: allowed, and not switched off by categories alone.
    pub enabled: bool,
}

impl Tool {
    pub fn direct_definition(&self) -> Raw {
        renamed(&self.definition, &self.name, &self.direct_name)
    }
}

/// Something reached by name in one module: a prompt.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub module: usize,
    pub item: Item,
    pub direct_name: Arc<str>,
}

#[derive(Debug, Default)]
pub struct Catalog {
    pub modules: Vec<Module>,
    pub categories: Vec<Category>,
    pub prompts: Vec<Prompt>,
    by_direct_name: HashMap<Arc<str>, (usize, usize)>,
    by_key: HashMap<ToolKey, (usize, usize)>,
    by_uri: HashMap<Arc<str>, usize>,
}

impl Catalog {
    pub fn build(modules: &[ModuleRule], categories: &[Arc<CategoryRule>]) -> Self {
        let mut modules: Vec<Module> = modules.iter().map(Module::read).collect();
        let categories: Vec<Category> =
            categories.iter().map(|rule| Category::resolve(Arc::clone(rule), &modules)).collect();
        switch_off(&mut modules, &categories);
        hide_what_categories_hide(&mut modules, &categories);
        name_tools(&mut modules);
        let mut catalog = Self { prompts: prompts(&modules), modules, categories, ..Self::default() };
        catalog.index();
        catalog
    }

    pub fn module(&self, name: &str) -> Option<&Module> {
        self.modules.iter().find(|module| &*module.name == name)
    }

    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.modules.iter().flat_map(|module| &module.tools)
    }

    pub fn tool_by_direct_name(&self, name: &str) -> Option<&Tool> {
        self.by_direct_name.get(name).map(|(module, tool)| &self.modules[*module].tools[*tool])
    }

    pub fn tool_by_key(&self, key: &ToolKey) -> Option<&Tool> {
        self.by_key.get(key).map(|(module, tool)| &self.modules[*module].tools[*tool])
    }

    /// The first module that lists the resource, else the first with a template or a skill that it fits.
    pub fn module_of_uri(&self, uri: &str) -> Option<&Module> {
        if let Some(module) = self.by_uri.get(uri) {
            return Some(&self.modules[*module]);
        }
        let listed = self.modules.iter().find(|module| {
            let templates = module.listing.iter().flat_map(|listing| &listing.templates);
            templates.into_iter().any(|t| *t.name == *uri || crate::uri::matches(&t.name, uri))
        });
        listed.or_else(|| self.module_of_skill(uri))
    }

    /// Files of a skill need not be listed, and neither need skills: those are with the only module that has any.
    fn module_of_skill(&self, uri: &str) -> Option<&Module> {
        let holds = |module: &&Module| {
            let mut skills = module.listing.iter().flat_map(|listing| &listing.skills);
            skills.any(|skill| {
                let root = skill.name.strip_suffix("/SKILL.md").unwrap_or(&skill.name);
                uri.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let promises = |module: &&Module| {
            let listing = module.listing.as_ref();
            listing.is_some_and(|listing| ListKind::Skills.is_promised(&listing.capabilities))
        };
        self.modules.iter().find(holds).or_else(|| {
            let mut able = self.modules.iter().filter(promises);
            let only = able.next().filter(|_| uri.starts_with("skill://"));
            only.filter(|_| able.next().is_none())
        })
    }

    pub fn prompt(&self, direct_name: &str) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| &*prompt.direct_name == direct_name)
    }

    fn index(&mut self) {
        for (at, module) in self.modules.iter().enumerate() {
            for (index, tool) in module.tools.iter().enumerate() {
                self.by_direct_name.insert(Arc::clone(&tool.direct_name), (at, index));
                self.by_key.insert(tool.key.clone(), (at, index));
            }
            let listed =
                module.listing.iter().flat_map(|listing| listing.resources.iter().chain(&listing.skills));
            for resource in listed {
                self.by_uri.entry(Arc::clone(&resource.name)).or_insert(at);
            }
        }
    }
}

impl Module {
    fn read(rule: &ModuleRule) -> Self {
        let listing = rule.source.listing();
        let items = listing.as_ref().map_or(&[][..], |listing| &listing.tools);
        let unresolved = rule
            .selection
            .written()
            .filter(|name| listing.is_some() && !items.iter().any(|i| name.means(&rule.name, &i.name)))
            .map(|name| Arc::clone(&name.tool))
            .collect();
        Self {
            name: Arc::clone(&rule.name),
            description: description(rule, listing.as_deref()),
            source: Arc::clone(&rule.source),
            tools: items.iter().map(|item| Tool::read(rule, item)).collect(),
            listing,
            selection: Arc::clone(&rule.selection),
            unresolved,
            policy: rule.policy,
            resources: rule.resources,
        }
    }
}

impl Tool {
    fn read(rule: &ModuleRule, item: &Item) -> Self {
        let change = rule.selection.override_of(&rule.name, &item.name);
        let name = change
            .and_then(|change| change.name.as_deref())
            .map_or_else(|| Arc::clone(&item.name), Arc::from);
        let allowed =
            rule.selection.selects(&rule.name, &item.name) && change.is_none_or(|change| change.enabled);
        Self {
            key: ToolKey::new(Arc::clone(&rule.name), Arc::clone(&item.name)),
            direct_name: Arc::clone(&name),
            name,
            definition: change.map_or_else(|| item.raw.clone(), |change| change.apply(&item.raw)),
            arguments: change.map_or_else(|| [].into(), |change| change.arguments.as_slice().into()),
            about: rule.about.get(&item.name).cloned().unwrap_or_default(),
            promise: Promise::read(&item.raw),
            policy: change.map(|change| change.policy).unwrap_or_default().or(rule.policy),
            allowed,
            enabled: allowed,
        }
    }
}

/// The config's own words, else what the server says of itself.
fn description(rule: &ModuleRule, listing: Option<&Listing>) -> String {
    if !rule.description.is_empty() {
        return rule.description.clone();
    }
    let told =
        listing.and_then(|listing| listing.info.text("description").or_else(|| listing.info.text("title")));
    told.unwrap_or_default()
}

/// A tool that some category disables and none enables is disabled everywhere.
fn switch_off(modules: &mut [Module], categories: &[Category]) {
    let mut verdicts: HashMap<&ToolKey, bool> = HashMap::new();
    for entry in categories.iter().flat_map(|category| &category.entries) {
        *verdicts.entry(&entry.key).or_default() |= entry.enabled;
    }
    for tool in modules.iter_mut().flat_map(|module| &mut module.tools) {
        tool.enabled &= verdicts.get(&tool.key).copied().unwrap_or(true);
    }
}

/// An argument that every category hides which shows the tool is hidden outside them too.
fn hide_what_categories_hide(modules: &mut [Module], categories: &[Category]) {
    let mut entries: HashMap<&ToolKey, Vec<&Entry>> = HashMap::new();
    for entry in categories.iter().flat_map(Category::enabled) {
        entries.entry(&entry.key).or_default().push(entry);
    }
    for tool in modules.iter_mut().flat_map(|module| &mut module.tools) {
        let Some([first, others @ ..]) = entries.get(&tool.key).map(Vec::as_slice) else { continue };
        let hides = |entry: &Entry, name: &str| entry.arguments.iter().any(|a| a.hidden && a.name == name);
        let everywhere = first.arguments.iter().filter(|argument| {
            let own = tool.arguments.iter().any(|own| own.hidden && own.name == argument.name);
            argument.hidden && !own && others.iter().all(|entry| hides(entry, &argument.name))
        });
        let arguments: Vec<Argument> = everywhere.cloned().collect();
        if !arguments.is_empty() {
            tool.arguments = tool.arguments.iter().chain(&arguments).cloned().collect();
            tool.definition = Override { arguments, ..Override::default() }.apply(&tool.definition);
        }
    }
}

fn name_tools(modules: &mut [Module]) {
    let names = name::assign(
        modules.iter().flat_map(|module| module.tools.iter().map(|tool| (&*module.name, &*tool.name))),
    );
    for (tool, name) in modules.iter_mut().flat_map(|module| &mut module.tools).zip(names) {
        tool.direct_name = name;
    }
}

fn prompts(modules: &[Module]) -> Vec<Prompt> {
    let all = modules.iter().enumerate().flat_map(|(at, module)| {
        module.listing.iter().flat_map(|listing| &listing.prompts).map(move |item| (at, item))
    });
    let names = name::assign(all.clone().map(|(at, item)| (&*modules[at].name, &*item.name)));
    all.zip(names)
        .map(|((module, item), direct_name)| Prompt {
            module,
            item: Item { name: Arc::clone(&item.name), raw: renamed(&item.raw, &item.name, &direct_name) },
            direct_name,
        })
        .collect()
}

/// The definition with its name replaced, the same bytes if the name is the same.
pub(crate) fn renamed(definition: &Raw, name: &str, shown: &str) -> Raw {
    if name == shown {
        return definition.clone();
    }
    match Object::parse(definition) {
        Ok(object) => object.with("name", shown).raw(),
        Err(_) => definition.clone(),
    }
}
