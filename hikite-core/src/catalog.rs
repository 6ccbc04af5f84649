//! The catalog: an immutable snapshot of all modules, categories, tools, resources and prompts. It is built off the
//! path of a call and replaced as a whole.

mod disable;
pub(crate) mod input;
pub(crate) mod module;
pub(crate) mod module_rule;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use crate::annotation;
use crate::call_policy::{ToolHints, ToolMetadata};
use crate::category::{Category, CategoryEntry, CategoryRule};
use crate::check::ArgumentChecker;
use crate::json::Raw;
use crate::key::ToolKey;
use crate::listing::{ListItem, ListKind, Listing};
use crate::name::{self, DirectNames};
use crate::offer::{HeldTool, ModuleOffer};
use crate::permission::Permissions;
use crate::risk::Risk;
use crate::switch::{self, DisabledReason, Switches};
use crate::tool_selection::{Override, PresetArgument};

use input::CatalogInput;
use module::needs_login;
pub use module::{Module, Prompt, Tool};
pub use module_rule::ModuleRule;

#[derive(Debug, Default)]
pub struct Catalog {
    pub modules: Vec<Module>,
    pub categories: Vec<Category>,
    pub prompts: Vec<Prompt>,
    input: Arc<CatalogInput>,
    by_direct_name: HashMap<Arc<str>, (usize, usize)>,
    by_key: HashMap<ToolKey, (usize, usize)>,
    by_uri: HashMap<Arc<str>, usize>,
}

impl Catalog {
    /// Builds a catalog from what the sources list. Unchanged parts of `before` are reused.
    pub fn build(modules: &[ModuleRule], categories: &[Arc<CategoryRule>], switches: &Switches, before: &Self) -> Self {
        let offers = modules.iter().cloned().map(ModuleOffer::whole).collect();
        Self::of(offers, categories, switches, before)
    }

    /// Builds a catalog from offers whose unapproved tools are already held back.
    pub fn of(offers: Vec<ModuleOffer>, categories: &[Arc<CategoryRule>], switches: &Switches, before: &Self) -> Self {
        Self::make(
            CatalogInput {
                modules: offers,
                categories: categories.to_vec(),
                switches: switches.clone(),
                permissions: None,
            },
            before,
        )
    }

    /// Returns the catalog with the offers of some modules replaced.
    #[must_use]
    pub fn with_offers(&self, offers: &[ModuleOffer]) -> Self {
        let mut input = CatalogInput::clone(&self.input);
        for module in &mut input.modules {
            if let Some(offer) = offers.iter().find(|offer| offer.rule.name == module.rule.name) {
                *module = offer.clone();
            }
        }
        Self::make(input, self)
    }

    /// Returns the rules that the modules were built from.
    pub fn rules(&self) -> impl Iterator<Item = &ModuleRule> {
        self.input.modules.iter().map(|offer| &offer.rule)
    }

    /// Returns the catalog restricted to what `permissions` allow.
    #[must_use]
    pub fn restricted(&self, permissions: &Arc<Permissions>) -> Self {
        Self::make(self.input.restricted(permissions, self), self)
    }

    fn make(input: CatalogInput, before: &Self) -> Self {
        let mut modules: Vec<Module> = input.modules.iter().map(|offer| Module::read(offer, &input, before)).collect();
        let resolved = input.categories.iter().map(|rule| Category::resolve(Arc::clone(rule), &modules, &input));
        let mut categories: Vec<Category> = resolved.filter(|category| input.shows(category)).collect();
        disable::disable_by_category(&mut modules, &categories);
        disable::disable_for_dependencies(&mut modules);
        disable::disable_in_categories(&mut categories, &modules);
        hide_arguments_hidden_in_categories(&mut modules, &categories);
        name_tools(&mut modules);
        let prompts = prompts(&modules);
        let mut catalog = Self { prompts, modules, categories, input: Arc::new(input), ..Self::default() };
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

    /// Returns the first module that lists the resource, else the first whose template or skill matches it.
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

    /// Returns the module of a skill's file. Neither files nor skills need to be listed; an unlisted `skill://` address
    /// belongs to the only module that declares skills, if there is exactly one.
    fn module_of_skill(&self, uri: &str) -> Option<&Module> {
        let holds = |module: &&Module| {
            let mut skills = module.listing.iter().flat_map(|listing| &listing.skills);
            skills.any(|skill| {
                let root = skill.name.strip_suffix("/SKILL.md").unwrap_or(&skill.name);
                uri.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let declares_skills = |module: &&Module| {
            let listing = module.listing.as_ref();
            listing.is_some_and(|listing| ListKind::Skills.is_declared(&listing.capabilities))
        };
        self.modules.iter().find(holds).or_else(|| {
            let mut able = self.modules.iter().filter(declares_skills);
            let only = able.next().filter(|_| uri.starts_with("skill://"));
            only.filter(|_| able.next().is_none())
        })
    }

    pub fn prompt(&self, direct_name: &str) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| prompt.direct.contains(direct_name))
    }

    /// Returns the modules that were added, removed or changed; `None` if more than modules changed. A view that
    /// contains none of them is still valid.
    pub fn changed_modules(&self, before: &Self) -> Option<Vec<Arc<str>>> {
        let (old, new) = (&before.input, &self.input);
        let same_categories = old.categories.len() == new.categories.len()
            && old.categories.iter().zip(&new.categories).all(|(old, new)| Arc::ptr_eq(old, new));
        let earlier: HashMap<&str, usize> =
            old.modules.iter().enumerate().map(|(at, offer)| (&*offer.rule.name, at)).collect();
        let later: HashSet<&str> = new.modules.iter().map(|offer| &*offer.rule.name).collect();
        let places = new.modules.iter().filter_map(|offer| earlier.get(&*offer.rule.name));
        // Direct names are assigned in module order.
        if !same_categories || !places.is_sorted() {
            return None;
        }
        let is_same = |at: usize, offer: &ModuleOffer| {
            earlier.get(&*offer.rule.name).is_some_and(|then| {
                old.modules[*then].is_equivalent(offer)
                    && before.modules[*then].needs_login == self.modules[at].needs_login
            })
        };
        let name = |offer: &ModuleOffer| Arc::clone(&offer.rule.name);
        let news = new.modules.iter().enumerate().filter(|(at, offer)| !is_same(*at, offer));
        let mut changed: Vec<Arc<str>> = news.map(|(_, offer)| name(offer)).collect();
        changed.extend(old.modules.iter().filter(|offer| !later.contains(&*offer.rule.name)).map(name));
        changed.extend(switch::switched_modules(&old.switches, &new.switches));
        Some(changed)
    }

    /// Returns the approximate memory use. Definitions share their buffers with the lists that they came from.
    pub fn bytes(&self) -> usize {
        let tools: usize = self.modules.iter().map(|module| module.tools.len()).sum();
        let indexed = size_of::<(Arc<str>, (usize, usize))>() + size_of::<(ToolKey, (usize, usize))>();
        // Hash tables are at most seven eighths full and grow by doubling.
        tools * (size_of::<Tool>() + size_of::<ListItem>() + 2 * indexed)
            + self.modules.len() * (size_of::<Module>() + size_of::<ModuleOffer>() + size_of::<Listing>())
            + self.prompts.len() * size_of::<Prompt>()
            + self.by_uri.len() * 2 * size_of::<(Arc<str>, usize)>()
    }

    fn index(&mut self) {
        for (at, module) in self.modules.iter().enumerate() {
            for (index, tool) in module.tools.iter().enumerate() {
                for name in [&tool.direct.short, &tool.direct.shown] {
                    self.by_direct_name.insert(Arc::clone(name), (at, index));
                }
                self.by_key.insert(tool.key.clone(), (at, index));
            }
            let listed = module.listing.iter().flat_map(|listing| listing.resources.iter().chain(&listing.skills));
            for resource in listed {
                self.by_uri.entry(Arc::clone(&resource.name)).or_insert(at);
            }
        }
    }
}

impl Module {
    fn read(offer: &ModuleOffer, input: &CatalogInput, before: &Catalog) -> Self {
        let ModuleOffer { rule, listing, held } = offer;
        let held: Vec<HeldTool> = held.iter().map(|held| HeldTool::read(rule, held)).collect();
        let items = listing.as_ref().map_or(&[][..], |listing| &listing.tools);
        let unresolved = rule
            .selection
            .written()
            .filter(|name| listing.is_some() && !items.iter().any(|i| name.matches(&rule.name, &i.name)))
            .filter(|name| !held.iter().any(|held| held.matches(name)))
            .filter(|name| input.may_mention(&rule.name, &name.tool))
            .map(|name| Arc::clone(&name.tool))
            .collect();
        Self {
            name: Arc::clone(&rule.name),
            description: description(rule, listing.as_deref()),
            source: Arc::clone(&rule.source),
            registered: rule.registered,
            origin: rule.origin,
            tools: items.iter().map(|item| Tool::read(rule, item, &input.switches, before)).collect(),
            listing: listing.clone(),
            held,
            pins: rule.pins,
            selection: Arc::clone(&rule.selection),
            unresolved,
            policy: rule.policy,
            resources: rule.resources,
            needs_login: needs_login(&*rule.source),
        }
    }
}

impl Tool {
    fn read(rule: &ModuleRule, item: &ListItem, switches: &Switches, before: &Catalog) -> Self {
        let key = ToolKey::new(Arc::clone(&rule.name), Arc::clone(&item.name));
        let known = before.tool_by_key(&key).filter(|tool| tool.original == item.raw);
        let change = rule.selection.override_of(&rule.name, &item.name);
        let name = change.and_then(|change| change.name.as_deref()).map_or_else(|| Arc::clone(&item.name), Arc::from);
        let allowed = rule.selection.selects(&rule.name, &item.name) && change.is_none_or(|change| change.enabled);
        let about = rule.about.get(&item.name).unwrap_or(&NO_METADATA).clone();
        let switched_off = switches.get(&key) == Some(&false);
        let (hints, risk) = known.map_or_else(
            || {
                let annotations = annotation::from_definition(&item.raw);
                (ToolHints::of(&annotations), Risk::of(&annotations))
            },
            |tool| (tool.hints, tool.risk),
        );
        Self {
            key,
            direct: DirectNames::plain(&name),
            name,
            definition: change.map_or_else(|| item.raw.clone(), |change| change.apply(&item.raw)),
            arguments: match change {
                Some(change) if !change.arguments.is_empty() => change.arguments.as_slice().into(),
                _ => Arc::clone(&NO_ARGUMENTS),
            },
            hints,
            risk,
            policy: change.map(|change| change.policy).unwrap_or_default().or(about.policy).or(rule.policy),
            about,
            checker: known
                .map_or_else(|| Arc::new(ArgumentChecker::new(schema_of(&item.raw))), |t| Arc::clone(&t.checker)),
            original: item.raw.clone(),
            disabled_reason: if allowed {
                switched_off.then_some(DisabledReason::Switch)
            } else {
                Some(DisabledReason::File)
            },
        }
    }
}

/// Shared default: nearly all tools have no metadata, and every view repeats them.
static NO_METADATA: LazyLock<Arc<ToolMetadata>> = LazyLock::new(Arc::default);
static NO_ARGUMENTS: LazyLock<Arc<[PresetArgument]>> = LazyLock::new(|| [].into());

/// Returns the `inputSchema` of a tool definition.
pub fn schema_of(definition: &Raw) -> Option<Raw> {
    definition.object()?.get("inputSchema").cloned()
}

/// Returns the configured description, else the one that the server reports.
fn description(rule: &ModuleRule, listing: Option<&Listing>) -> String {
    if !rule.description.is_empty() {
        return rule.description.clone();
    }
    let told = listing.and_then(|listing| listing.info.text("description").or_else(|| listing.info.text("title")));
    told.unwrap_or_default()
}

/// Hides an argument outside categories if every category that shows the tool hides it.
fn hide_arguments_hidden_in_categories(modules: &mut [Module], categories: &[Category]) {
    let mut entries: HashMap<&ToolKey, Vec<&CategoryEntry>> = HashMap::new();
    for entry in categories.iter().flat_map(Category::enabled) {
        entries.entry(&entry.key).or_default().push(entry);
    }
    for tool in modules.iter_mut().flat_map(|module| &mut module.tools) {
        let Some([first, others @ ..]) = entries.get(&tool.key).map(Vec::as_slice) else { continue };
        let hides = |entry: &CategoryEntry, name: &str| entry.arguments.iter().any(|a| a.hidden && a.name == name);
        let everywhere = first.arguments.iter().filter(|argument| {
            let own = tool.arguments.iter().any(|own| own.hidden && own.name == argument.name);
            argument.hidden && !own && others.iter().all(|entry| hides(entry, &argument.name))
        });
        let arguments: Vec<PresetArgument> = everywhere.cloned().collect();
        if !arguments.is_empty() {
            tool.arguments = tool.arguments.iter().chain(&arguments).cloned().collect();
            tool.definition = Override { arguments, ..Override::default() }.apply(&tool.definition);
        }
    }
}

fn name_tools(modules: &mut [Module]) {
    let names = name::assign(modules.iter().flat_map(|module| {
        let tools = module.tools.iter().map(|tool| &tool.name);
        let all = tools.chain(module.held.iter().map(|held| &held.name));
        all.map(|name| (&*module.name, &**name, module.needs_login))
    }));
    let places = modules.iter_mut().flat_map(|module| {
        let tools = module.tools.iter_mut().map(|tool| &mut tool.direct);
        tools.chain(module.held.iter_mut().map(|held| &mut held.direct))
    });
    for (place, name) in places.zip(names) {
        // An equal name keeps its existing allocation.
        if *place != name {
            *place = name;
        }
    }
}

fn prompts(modules: &[Module]) -> Vec<Prompt> {
    let all = modules.iter().enumerate().flat_map(|(at, module)| {
        module.listing.iter().flat_map(|listing| &listing.prompts).map(move |item| (at, item))
    });
    let names = name::assign(all.clone().map(|(at, item)| (&*modules[at].name, &*item.name, modules[at].needs_login)));
    all.zip(names).map(|((module, item), direct)| Prompt { module, item: item.clone(), direct }).collect()
}
