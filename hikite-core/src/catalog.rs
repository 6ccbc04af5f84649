//! The catalog: an immutable snapshot of all modules, categories, tools, resources and prompts. It is built off the
//! path of a call and replaced as a whole.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use crate::about::{About, Policy, Promise};
use crate::annotation;
use crate::category::{Category, CategoryRule, Entry};
use crate::check::Checker;
use crate::error::{Error, Kind};
use crate::json::{Object, Raw};
use crate::keeper::Keeper;
use crate::key::ToolKey;
use crate::listing::{Item, ListKind, Listing};
use crate::name::{self, NameLength, Names};
use crate::narrow::Given;
use crate::offer::{HeldTool, Offer};
use crate::permission::Permissions;
use crate::pin::Pinning;
use crate::risk::Risk;
use crate::selection::{Argument, Override, Selection};
use crate::source::{Source, State};
use crate::switch::{self, Off, Switches};

/// A configured module and the source that provides its tools.
#[derive(Clone, Debug)]
pub struct ModuleRule {
    pub name: Arc<str>,
    pub description: String,
    pub selection: Arc<Selection>,
    pub source: Arc<dyn Source>,
    /// Metadata of registered tools, by the source's own tool names.
    pub about: Arc<HashMap<Arc<str>, Arc<About>>>,
    /// `true` for modules of registered tools, which can change at run time.
    pub registered: bool,
    /// Origin of the configuration, which decides who may change the module.
    pub keeper: Keeper,
    /// Call policy of the module's tools, unless an override sets one.
    pub policy: Policy,
    /// Call policy for reading the module's resources.
    pub resources: Policy,
    /// Treatment of tools that nobody has approved.
    pub pins: Pinning,
}

impl ModuleRule {
    /// Returns a module with default settings.
    pub fn new(name: impl Into<Arc<str>>, source: Arc<dyn Source>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            selection: Arc::default(),
            source,
            about: Arc::default(),
            registered: false,
            keeper: Keeper::File,
            policy: Policy::default(),
            resources: Policy::default(),
            pins: Pinning::Off,
        }
    }
}

#[derive(Debug)]
pub struct Module {
    pub name: Arc<str>,
    pub description: String,
    pub source: Arc<dyn Source>,
    pub listing: Option<Arc<Listing>>,
    pub registered: bool,
    pub keeper: Keeper,
    pub selection: Arc<Selection>,
    pub tools: Vec<Tool>,
    /// Tools hidden until somebody approves them.
    pub held: Vec<HeldTool>,
    /// Treatment of tools that nobody has approved.
    pub pins: Pinning,
    /// Names in the module's selection that its tool list does not have.
    pub unresolved: Vec<Arc<str>>,
    /// Call policy of the module's tools, unless an override sets one.
    pub policy: Policy,
    /// Call policy for reading the module's resources.
    pub resources: Policy,
    /// `true` if the module lacks an account: it is named, but not listed among the usable modules.
    pub needs_login: bool,
}

#[derive(Clone, Debug)]
pub struct Tool {
    pub key: ToolKey,
    /// Name after the module's override.
    pub name: Arc<str>,
    /// Names on the `direct` surface.
    pub direct: Names,
    /// Definition under `name`.
    pub definition: Raw,
    pub arguments: Arc<[Argument]>,
    pub about: Arc<About>,
    pub promise: Promise,
    /// Risk according to the source's own annotations, unaffected by overrides.
    pub risk: Risk,
    pub policy: Policy,
    /// Definition as the source sent it.
    pub original: Raw,
    pub checker: Arc<Checker>,
    /// Reason why the tool cannot be called outside a category; `None` if it can.
    pub off: Option<Off>,
}

impl Tool {
    pub fn is_enabled(&self) -> bool {
        self.off.is_none()
    }

    pub fn direct_definition(&self, length: NameLength) -> Raw {
        renamed(&self.definition, &self.name, self.direct.of(length))
    }
}

/// A prompt of one module.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub module: usize,
    /// The prompt as its source sent it.
    pub item: Item,
    pub direct: Names,
}

impl Prompt {
    pub fn direct_definition(&self, length: NameLength) -> Raw {
        renamed(&self.item.raw, &self.item.name, self.direct.of(length))
    }
}

#[derive(Debug, Default)]
pub struct Catalog {
    pub modules: Vec<Module>,
    pub categories: Vec<Category>,
    pub prompts: Vec<Prompt>,
    given: Arc<Given>,
    by_direct_name: HashMap<Arc<str>, (usize, usize)>,
    by_key: HashMap<ToolKey, (usize, usize)>,
    by_uri: HashMap<Arc<str>, usize>,
}

impl Catalog {
    /// Builds a catalog from what the sources list. Unchanged parts of `before` are reused.
    pub fn build(
        modules: &[ModuleRule],
        categories: &[Arc<CategoryRule>],
        switches: &Switches,
        before: &Self,
    ) -> Self {
        let offers = modules.iter().cloned().map(Offer::whole).collect();
        Self::of(offers, categories, switches, before)
    }

    /// Builds a catalog from offers whose unapproved tools are already held back.
    pub fn of(
        offers: Vec<Offer>,
        categories: &[Arc<CategoryRule>],
        switches: &Switches,
        before: &Self,
    ) -> Self {
        Self::make(
            Given {
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
    pub fn with_offers(&self, offers: &[Offer]) -> Self {
        let mut given = Given::clone(&self.given);
        for module in &mut given.modules {
            if let Some(offer) = offers.iter().find(|offer| offer.rule.name == module.rule.name) {
                *module = offer.clone();
            }
        }
        Self::make(given, self)
    }

    /// Returns the rules that the modules were built from.
    pub fn rules(&self) -> impl Iterator<Item = &ModuleRule> {
        self.given.modules.iter().map(|offer| &offer.rule)
    }

    /// Returns the catalog restricted to what `permissions` allow.
    #[must_use]
    pub fn narrowed(&self, permissions: &Arc<Permissions>) -> Self {
        Self::make(self.given.narrowed(permissions, self), self)
    }

    fn make(given: Given, before: &Self) -> Self {
        let mut modules: Vec<Module> =
            given.modules.iter().map(|offer| Module::read(offer, &given, before)).collect();
        let resolved =
            given.categories.iter().map(|rule| Category::resolve(Arc::clone(rule), &modules, &given));
        let mut categories: Vec<Category> = resolved.filter(|category| given.shows(category)).collect();
        switch::off_by_categories(&mut modules, &categories);
        switch::off_for_want(&mut modules);
        switch::off_in_categories(&mut categories, &modules);
        hide_what_categories_hide(&mut modules, &categories);
        name_tools(&mut modules);
        let prompts = prompts(&modules);
        let mut catalog = Self { prompts, modules, categories, given: Arc::new(given), ..Self::default() };
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
        self.prompts.iter().find(|prompt| prompt.direct.contains(direct_name))
    }

    /// Returns the modules that were added, removed or changed; `None` if more than modules changed. A view that
    /// contains none of them is still valid.
    pub fn changed_modules(&self, before: &Self) -> Option<Vec<Arc<str>>> {
        let (old, new) = (&before.given, &self.given);
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
        let is_same = |at: usize, offer: &Offer| {
            earlier.get(&*offer.rule.name).is_some_and(|then| {
                old.modules[*then].is_like(offer)
                    && before.modules[*then].needs_login == self.modules[at].needs_login
            })
        };
        let name = |offer: &Offer| Arc::clone(&offer.rule.name);
        let news = new.modules.iter().enumerate().filter(|(at, offer)| !is_same(*at, offer));
        let mut changed: Vec<Arc<str>> = news.map(|(_, offer)| name(offer)).collect();
        changed.extend(old.modules.iter().filter(|offer| !later.contains(&*offer.rule.name)).map(name));
        changed.extend(switch::switched(&old.switches, &new.switches));
        Some(changed)
    }

    /// Returns the approximate memory use. Definitions share their buffers with the lists that they came from.
    pub fn bytes(&self) -> usize {
        let tools: usize = self.modules.iter().map(|module| module.tools.len()).sum();
        let indexed = size_of::<(Arc<str>, (usize, usize))>() + size_of::<(ToolKey, (usize, usize))>();
        // Hash tables are at most seven eighths full and grow by doubling.
        tools * (size_of::<Tool>() + size_of::<Item>() + 2 * indexed)
            + self.modules.len() * (size_of::<Module>() + size_of::<Offer>() + size_of::<Listing>())
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
            let listed =
                module.listing.iter().flat_map(|listing| listing.resources.iter().chain(&listing.skills));
            for resource in listed {
                self.by_uri.entry(Arc::clone(&resource.name)).or_insert(at);
            }
        }
    }
}

impl Module {
    /// Returns the version that the source reports.
    pub fn version(&self) -> Option<String> {
        self.listing.as_ref()?.version()
    }

    /// Returns `true` if the login state of the source is unchanged since the catalog was built.
    pub fn is_logged_in_as_before(&self) -> bool {
        self.needs_login == needs_login(&*self.source)
    }

    /// Returns the error for a module whose source has not returned its lists yet.
    pub fn why_untold(&self) -> Error {
        let message = match self.source.state() {
            State::Failing { reason, .. } => reason,
            State::NeedsLogin { .. } => {
                let error = Error::new(Kind::AccountRequired, format!("`{}` needs a login", self.name));
                return match self.source.advice() {
                    Some(advice) => error.hint(advice),
                    None => error,
                };
            }
            _ => format!("the server `{}` has not told what it offers", self.name),
        };
        Error::new(Kind::UpstreamUnavailable, message)
            .hint("try again in a moment, or use another module; `hikite doctor` tells the reason")
    }

    fn read(offer: &Offer, given: &Given, before: &Catalog) -> Self {
        let Offer { rule, listing, held } = offer;
        let held: Vec<HeldTool> = held.iter().map(|held| HeldTool::read(rule, held)).collect();
        let items = listing.as_ref().map_or(&[][..], |listing| &listing.tools);
        let unresolved = rule
            .selection
            .written()
            .filter(|name| listing.is_some() && !items.iter().any(|i| name.means(&rule.name, &i.name)))
            .filter(|name| !held.iter().any(|held| held.is_meant(name)))
            .filter(|name| given.may_name(&rule.name, &name.tool))
            .map(|name| Arc::clone(&name.tool))
            .collect();
        Self {
            name: Arc::clone(&rule.name),
            description: description(rule, listing.as_deref()),
            source: Arc::clone(&rule.source),
            registered: rule.registered,
            keeper: rule.keeper,
            tools: items.iter().map(|item| Tool::read(rule, item, &given.switches, before)).collect(),
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
    fn read(rule: &ModuleRule, item: &Item, switches: &Switches, before: &Catalog) -> Self {
        let key = ToolKey::new(Arc::clone(&rule.name), Arc::clone(&item.name));
        let known = before.tool_by_key(&key).filter(|tool| tool.original == item.raw);
        let change = rule.selection.override_of(&rule.name, &item.name);
        let name = change
            .and_then(|change| change.name.as_deref())
            .map_or_else(|| Arc::clone(&item.name), Arc::from);
        let allowed =
            rule.selection.selects(&rule.name, &item.name) && change.is_none_or(|change| change.enabled);
        let about = rule.about.get(&item.name).unwrap_or(&NOTHING_SAID).clone();
        let switched_off = switches.get(&key) == Some(&false);
        let (promise, risk) = known.map_or_else(
            || {
                let annotations = annotation::of_definition(&item.raw);
                (Promise::of(&annotations), Risk::of(&annotations))
            },
            |tool| (tool.promise, tool.risk),
        );
        Self {
            key,
            direct: Names::plain(&name),
            name,
            definition: change.map_or_else(|| item.raw.clone(), |change| change.apply(&item.raw)),
            arguments: match change {
                Some(change) if !change.arguments.is_empty() => change.arguments.as_slice().into(),
                _ => Arc::clone(&NO_ARGUMENTS),
            },
            promise,
            risk,
            policy: change.map(|change| change.policy).unwrap_or_default().or(about.policy).or(rule.policy),
            about,
            checker: known
                .map_or_else(|| Arc::new(Checker::new(schema_of(&item.raw))), |t| Arc::clone(&t.checker)),
            original: item.raw.clone(),
            off: if allowed { switched_off.then_some(Off::Switch) } else { Some(Off::File) },
        }
    }
}

/// Shared default: nearly all tools have no metadata, and every view repeats them.
static NOTHING_SAID: LazyLock<Arc<About>> = LazyLock::new(Arc::default);
static NO_ARGUMENTS: LazyLock<Arc<[Argument]>> = LazyLock::new(|| [].into());

fn needs_login(source: &dyn Source) -> bool {
    matches!(source.state(), State::NeedsLogin { .. })
}

/// Returns the `inputSchema` of a tool definition.
pub fn schema_of(definition: &Raw) -> Option<Raw> {
    definition.object()?.get("inputSchema").cloned()
}

/// Returns the configured description, else the one that the server reports.
fn description(rule: &ModuleRule, listing: Option<&Listing>) -> String {
    if !rule.description.is_empty() {
        return rule.description.clone();
    }
    let told =
        listing.and_then(|listing| listing.info.text("description").or_else(|| listing.info.text("title")));
    told.unwrap_or_default()
}

/// Hides an argument outside categories if every category that shows the tool hides it.
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
    let names = name::assign(
        all.clone().map(|(at, item)| (&*modules[at].name, &*item.name, modules[at].needs_login)),
    );
    all.zip(names).map(|((module, item), direct)| Prompt { module, item: item.clone(), direct }).collect()
}

/// Returns the definition with its name replaced; shares the bytes if the name is unchanged.
pub(crate) fn renamed(definition: &Raw, name: &str, shown: &str) -> Raw {
    if name == shown {
        return definition.clone();
    }
    match Object::parse(definition) {
        Ok(object) => object.with("name", shown).raw(),
        Err(_) => definition.clone(),
    }
}
