//! Disables tools of a catalog: those that every category disables, and those whose dependencies are unavailable.

use std::collections::HashMap;
use std::sync::Arc;

use crate::category::Category;
use crate::key::ToolKey;
use crate::switch::DisabledReason;

use super::module::{Module, Tool};

/// Disables tools that some category disables and none enables.
pub(crate) fn disable_by_category(modules: &mut [Module], categories: &[Category]) {
    let mut verdicts: HashMap<&ToolKey, bool> = HashMap::new();
    for entry in categories.iter().flat_map(|category| &category.entries) {
        *verdicts.entry(&entry.key).or_default() |= entry.disabled_reason.is_none();
    }
    for tool in modules.iter_mut().flat_map(|module| &mut module.tools) {
        if tool.disabled_reason.is_none() && verdicts.get(&tool.key) == Some(&false) {
            tool.disabled_reason = Some(DisabledReason::File);
        }
    }
}

/// Disables tools whose dependencies are missing or disabled, transitively.
pub(crate) fn disable_for_dependencies(modules: &mut [Module]) {
    let has_dependencies = |tool: &&Tool| !tool.about.dependencies.is_empty();
    if !modules.iter().flat_map(|module| &module.tools).any(|tool| has_dependencies(&tool)) {
        return;
    }
    let places = ToolPositions::of(modules);
    let all = modules.iter().flat_map(|module| &module.tools).filter(has_dependencies);
    let dependencies: Vec<(ToolPosition, Vec<Dependency>)> = all
        .map(|tool| {
            let written = tool.about.dependencies.iter();
            let resolved = written.map(|written| places.resolve(modules, tool, written)).collect();
            (places.by_key[&tool.key], resolved)
        })
        .collect();
    // Each round disables at least one more tool, so the loop ends.
    loop {
        let still = dependencies.iter().filter(|(place, _)| at(modules, *place).is_enabled());
        let verdicts: Vec<(ToolPosition, DisabledReason)> = still
            .filter_map(|(place, dependencies)| {
                Some((*place, dependencies.iter().find_map(|need| need.unmet(modules))?))
            })
            .collect();
        if verdicts.is_empty() {
            return;
        }
        for ((module, tool), disabled_reason) in verdicts {
            modules[module].tools[tool].disabled_reason = Some(disabled_reason);
        }
    }
}

/// Copies the disabled state of tools to their category entries.
pub(crate) fn disable_in_categories(categories: &mut [Category], modules: &[Module]) {
    let disabled_reason: HashMap<&ToolKey, &DisabledReason> = modules
        .iter()
        .flat_map(|module| &module.tools)
        .filter_map(|tool| Some((&tool.key, tool.disabled_reason.as_ref()?)))
        .filter(|(_, disabled_reason)| **disabled_reason != DisabledReason::File)
        .collect();
    for entry in categories.iter_mut().flat_map(|category| &mut category.entries) {
        if entry.disabled_reason.is_none() {
            entry.disabled_reason = disabled_reason.get(&entry.key).map(|disabled_reason| (*disabled_reason).clone());
        }
    }
}

/// A dependency as written, and the tool it refers to.
struct Dependency {
    written: Arc<str>,
    target: DependencyTarget,
}

enum DependencyTarget {
    Tool(ToolPosition),
    /// Its module has no listing yet; the dependency is assumed to exist.
    Unlisted,
    NotFound,
}

impl Dependency {
    fn unmet(&self, modules: &[Module]) -> Option<DisabledReason> {
        match self.target {
            DependencyTarget::Unlisted => None,
            DependencyTarget::NotFound => Some(DisabledReason::DependencyMissing(Arc::clone(&self.written))),
            DependencyTarget::Tool(place) if at(modules, place).is_enabled() => None,
            DependencyTarget::Tool(_) => Some(DisabledReason::DependencyDisabled(Arc::clone(&self.written))),
        }
    }
}

/// Indexes of a module and of a tool in it.
type ToolPosition = (usize, usize);

fn at(modules: &[Module], (module, tool): ToolPosition) -> &Tool {
    &modules[module].tools[tool]
}

struct ToolPositions {
    by_key: HashMap<ToolKey, ToolPosition>,
    /// `None` if several modules have a tool of that name.
    by_name: HashMap<Arc<str>, Option<ToolPosition>>,
}

impl ToolPositions {
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
    fn resolve(&self, modules: &[Module], tool: &Tool, written: &Arc<str>) -> Dependency {
        let named = |module: &str, name: &str| self.by_key.get(&ToolKey::new(module, name)).copied();
        let by_key = written.split_once(':').and_then(|(module, name)| named(module, name));
        let place = by_key
            .or_else(|| named(&tool.key.module, written))
            .or_else(|| self.by_name.get(written).copied().flatten());
        let unlisted = written
            .split_once(':')
            .is_some_and(|(module, _)| modules.iter().any(|known| &*known.name == module && known.listing.is_none()));
        let target = match place {
            Some(place) => DependencyTarget::Tool(place),
            None if unlisted => DependencyTarget::Unlisted,
            None => DependencyTarget::NotFound,
        };
        Dependency { written: Arc::clone(written), target }
    }
}
