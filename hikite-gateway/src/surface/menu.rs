//! The list of modules that stands in every conversation: a line for each, the shorter the more there are, and never more
//! tokens than it may cost. The same view gives the same bytes.

use hikite_core::catalog::{Module, Tool};
use hikite_core::signature::brief;
use hikite_core::tokens::estimate;
use hikite_core::view::View;

/// What is said of a module is cut here; with too many modules, there.
const LINE_CHARS: [usize; 3] = [110, 60, 30];
/// Tools that are named of a module of which nothing is said.
const NAMES: usize = 8;

/// The list, to be put below a text; empty if there are no modules. `finder` is the tool that finds what has no place.
pub(super) fn modules(view: &View, tokens: usize, finder: Option<&str>) -> String {
    let modules: Vec<(&str, String)> = view
        .ready_modules()
        .filter(|module| offers_something(module))
        .map(|module| (&*module.name, about(module)))
        .collect();
    let waiting = waiting(view);
    let tokens = tokens.saturating_sub(estimate(&waiting));
    let lines = |chars: usize| {
        let line = |(name, about): &(&str, String)| match about.as_str() {
            "" => format!("\n- {name}"),
            about => format!("\n- {name}: {}", brief(about, chars)),
        };
        modules.iter().map(line).collect::<String>()
    };
    let texts = LINE_CHARS.into_iter().map(lines);
    let names: Vec<&str> = modules.iter().map(|(name, _)| *name).collect();
    let fits = texts.into_iter().find(|text| estimate(text) <= tokens);
    fits.unwrap_or_else(|| named(&names, tokens, finder)) + &waiting
}

/// The modules that could be used if somebody connected an account, in one line.
fn waiting(view: &View) -> String {
    let needing = view.modules().iter().filter(|module| module.needs_login);
    let names: Vec<&str> = needing.map(|module| &*module.name).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("\nNot connected yet (a call says how): {}", names.join(", "))
}

/// As many names as there is room for, and how many there are beside them.
fn named(names: &[&str], tokens: usize, finder: Option<&str>) -> String {
    let all = format!("\n{}", names.join(", "));
    if estimate(&all) <= tokens {
        return all;
    }
    let how = finder.map(|finder| format!(": `{finder}` finds their tools")).unwrap_or_default();
    let rest = |left: usize| format!("and {left} more{how}");
    let mut room = tokens.saturating_sub(estimate(&rest(names.len())) + 1);
    let fits = |name: &&&str| {
        let cost = estimate(name) + 1;
        let fits = cost <= room;
        room = room.saturating_sub(cost);
        fits
    };
    let mut shown: Vec<&str> = names.iter().take_while(fits).copied().collect();
    let rest = rest(names.len() - shown.len());
    shown.push(&rest);
    format!("\n{}", shown.join(", "))
}

fn offers_something(module: &Module) -> bool {
    let Some(listing) = &module.listing else { return true };
    let beside = [&listing.resources, &listing.templates, &listing.prompts];
    module.tools.iter().any(Tool::is_enabled) || beside.iter().any(|items| !items.is_empty())
}

/// What the module says of itself, else what its first tools are called.
fn about(module: &Module) -> String {
    if !module.description.is_empty() {
        return module.description.clone();
    }
    let tools = module.tools.iter().filter(|tool| tool.is_enabled());
    let names: Vec<&str> = tools.take(NAMES).map(|tool| &*tool.name).collect();
    names.join(", ")
}
