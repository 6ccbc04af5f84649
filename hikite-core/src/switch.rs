//! Disabled tools and the reason: the config file, a runtime switch, an unavailable dependency, or a definition that is
//! not approved.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::{Module, Tool};
use crate::category::Category;
use crate::error::{Error, Kind};
use crate::key::ToolKey;
use crate::pin::Why;

/// Tools that were enabled or disabled at runtime; persisted.
pub type Switches = HashMap<ToolKey, bool>;

/// Returns the modules of tools whose switch changed.
pub(crate) fn switched(before: &Switches, after: &Switches) -> Vec<Arc<str>> {
    let differs = |other: &Switches, key: &ToolKey, on: bool| other.get(key) != Some(&on);
    let gone = before.iter().filter(|(key, on)| differs(after, key, **on));
    let new = after.iter().filter(|(key, on)| differs(before, key, **on));
    let mut modules: Vec<Arc<str>> = gone.chain(new).map(|(key, _)| Arc::clone(&key.module)).collect();
    modules.sort_unstable();
    modules.dedup();
    modules
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Off {
    /// Disabled in the config file.
    File,
    /// Disabled at runtime.
    Switch,
    /// A dependency does not exist.
    Missing(Arc<str>),
    /// A dependency is disabled.
    Needs(Arc<str>),
    /// The definition is not approved.
    Held { key: ToolKey, why: Why },
}

impl Off {
    pub fn error(&self, name: &str) -> Error {
        let error = |message: String| Error::new(Kind::ToolDisabled, message);
        match self {
            Self::File => error(format!("the tool `{name}` is disabled"))
                .hint("it is switched off in the configuration; use another tool"),
            Self::Switch => error(format!("the tool `{name}` is disabled"))
                .hint(format!("use another tool, or switch it on: `hikite tools enable {name}`")),
            Self::Missing(needed) | Self::Needs(needed) => {
                error(format!("the tool `{name}` is disabled: {}", self.reason()))
                    .hint(format!("use another tool, or see to `{needed}`, which it needs"))
            }
            Self::Held { key, why } => error(format!("the tool `{name}` is held back: it {}", why.reason()))
                .hint(format!("look at it with `hikite pin show {key}`")),
        }
    }

    /// Returns a short explanation for people.
    pub fn reason(&self) -> String {
        match self {
            Self::File => "switched off in the configuration".into(),
            Self::Switch => "switched off".into(),
            Self::Missing(needed) => format!("it needs `{needed}`, which is not registered"),
            Self::Needs(needed) => format!("it needs `{needed}`, which is disabled"),
            Self::Held { why, .. } => format!("it {}", why.reason()),
        }
    }
}

/// Disables tools that some category disables and none enables.
pub(crate) fn off_by_categories(modules: &mut [Module], categories: &[Category]) {
    let mut verdicts: HashMap<&ToolKey, bool> = HashMap::new();
    for entry in categories.iter().flat_map(|category| &category.entries) {
        *verdicts.entry(&entry.key).or_default() |= entry.off.is_none();
    }
    for tool in modules.iter_mut().flat_map(|module| &mut module.tools) {
        if tool.off.is_none() && verdicts.get(&tool.key) == Some(&false) {
            tool.off = Some(Off::File);
        }
    }
}

/// Disables tools whose dependencies are missing or disabled, transitively.
pub(crate) fn off_for_want(modules: &mut [Module]) {
    let wants = |tool: &&Tool| !tool.about.dependencies.is_empty();
    if !modules.iter().flat_map(|module| &module.tools).any(|tool| wants(&tool)) {
        return;
    }
    let places = Places::of(modules);
    let all = modules.iter().flat_map(|module| &module.tools).filter(wants);
    let needs: Vec<(Place, Vec<Need>)> = all
        .map(|tool| {
            let written = tool.about.dependencies.iter();
            let resolved = written.map(|written| places.resolve(modules, tool, written)).collect();
            (places.by_key[&tool.key], resolved)
        })
        .collect();
    // Each round disables at least one more tool, so the loop ends.
    loop {
        let still = needs.iter().filter(|(place, _)| at(modules, *place).is_enabled());
        let verdicts: Vec<(Place, Off)> = still
            .filter_map(|(place, needs)| Some((*place, needs.iter().find_map(|need| need.want(modules))?)))
            .collect();
        if verdicts.is_empty() {
            return;
        }
        for ((module, tool), off) in verdicts {
            modules[module].tools[tool].off = Some(off);
        }
    }
}

/// Copies the disabled state of tools to their category entries.
pub(crate) fn off_in_categories(categories: &mut [Category], modules: &[Module]) {
    let off: HashMap<&ToolKey, &Off> = modules
        .iter()
        .flat_map(|module| &module.tools)
        .filter_map(|tool| Some((&tool.key, tool.off.as_ref()?)))
        .filter(|(_, off)| **off != Off::File)
        .collect();
    for entry in categories.iter_mut().flat_map(|category| &mut category.entries) {
        if entry.off.is_none() {
            entry.off = off.get(&entry.key).map(|off| (*off).clone());
        }
    }
}

/// A dependency as written, and the tool it refers to.
struct Need {
    written: Arc<str>,
    meant: Meant,
}

enum Meant {
    Tool(Place),
    /// Its module has no listing yet; the dependency is assumed to exist.
    Unlisted,
    Nothing,
}

impl Need {
    fn want(&self, modules: &[Module]) -> Option<Off> {
        match self.meant {
            Meant::Unlisted => None,
            Meant::Nothing => Some(Off::Missing(Arc::clone(&self.written))),
            Meant::Tool(place) if at(modules, place).is_enabled() => None,
            Meant::Tool(_) => Some(Off::Needs(Arc::clone(&self.written))),
        }
    }
}

/// Indexes of a module and of a tool in it.
type Place = (usize, usize);

fn at(modules: &[Module], (module, tool): Place) -> &Tool {
    &modules[module].tools[tool]
}

struct Places {
    by_key: HashMap<ToolKey, Place>,
    /// `None` if several modules have a tool of that name.
    by_name: HashMap<Arc<str>, Option<Place>>,
}

impl Places {
    fn of(modules: &[Module]) -> Self {
        let mut places = Self { by_key: HashMap::new(), by_name: HashMap::new() };
        for (module, tools) in modules.iter().enumerate() {
            for (index, tool) in tools.tools.iter().enumerate() {
                let place = (module, index);
                places.by_key.insert(tool.key.clone(), place);
                let same = places.by_name.entry(Arc::clone(&tool.key.tool));
                same.and_modify(|only| *only = None).or_insert(Some(place));
            }
        }
        places
    }

    /// Resolves a dependency: by key, else within the same module, else by a globally unique name.
    fn resolve(&self, modules: &[Module], tool: &Tool, written: &Arc<str>) -> Need {
        let named = |module: &str, name: &str| self.by_key.get(&ToolKey::new(module, name)).copied();
        let by_key = written.split_once(':').and_then(|(module, name)| named(module, name));
        let place = by_key
            .or_else(|| named(&tool.key.module, written))
            .or_else(|| self.by_name.get(written).copied().flatten());
        let unlisted = written.split_once(':').is_some_and(|(module, _)| {
            modules.iter().any(|known| &*known.name == module && known.listing.is_none())
        });
        let meant = match place {
            Some(place) => Meant::Tool(place),
            None if unlisted => Meant::Unlisted,
            None => Meant::Nothing,
        };
        Need { written: Arc::clone(written), meant }
    }
}
