//! The module list in every conversation: one line per module, shorter the more modules there are, within a token
//! budget. Equal views yield equal bytes.

use hikite_core::catalog::{Module, Tool};
use hikite_core::signature::brief;
use hikite_core::tokens::estimate;
use hikite_core::view::View;

/// Maximum lengths of a module's line; the first that fits the budget is used.
const LINE_CHARS: [usize; 3] = [110, 60, 30];
/// Maximum number of tool names for a module without a description.
const NAMES: usize = 8;

/// Returns the list, to be appended to a text; empty without modules. `finder` is the tool that finds what does not
/// fit.
pub(super) fn modules(view: &View, tokens: usize, finder: Option<&str>) -> String {
    let modules: Vec<(&str, String)> = view
        .ready_modules()
        .filter(|module| offers_something(module))
        .map(|module| (&*module.name, about(module)))
        .collect();
    let not_connected = not_connected(view);
    let tokens = tokens.saturating_sub(estimate(&not_connected));
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
    fits.unwrap_or_else(|| named(&names, tokens, finder)) + &not_connected
}

/// Returns a line with the modules that need a login first.
fn not_connected(view: &View) -> String {
    let needing = view.modules().iter().filter(|module| module.needs_login);
    let names: Vec<&str> = needing.map(|module| &*module.name).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("\nNot connected yet (a call says how): {}", names.join(", "))
}

/// Returns as many names as fit, and the number of the others.
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

/// Returns a module's description, else the names of its first tools.
fn about(module: &Module) -> String {
    if !module.description.is_empty() {
        return module.description.clone();
    }
    let tools = module.tools.iter().filter(|tool| tool.is_enabled());
    let names: Vec<&str> = tools.take(NAMES).map(|tool| &*tool.name).collect();
    names.join(", ")
}
