//! Token counts of tool lists.

use hikite_core::json::Raw;
use hikite_core::tokens;
use hikite_core::view::View;

/// Returns the token counts of a menu and of a flat list of the view's tools.
pub(crate) fn count_tokens(view: &View, menu: &[Raw], count: impl Fn(&str) -> usize) -> (usize, usize) {
    let menu = menu.iter().map(|item| count(&item.as_str())).sum();
    let ready = view.ready_modules().flat_map(|module| &module.tools);
    let tools = ready.filter(|tool| tool.is_enabled());
    (menu, tools.map(|tool| count(&tool.definition.as_str())).sum())
}

/// Returns estimated token counts.
pub(crate) fn estimate_tokens(view: &View, menu: &[Raw]) -> (usize, usize) {
    count_tokens(view, menu, tokens::estimate)
}
