//! The `direct` surface: the tools of all modules under unique names.

use hikite_core::json::{Object, Raw};
use hikite_core::name::NameLength;
use hikite_core::view::View;

use crate::command::{CallOptions, Command, ToolTarget};

pub(super) fn tools(view: &View, names: NameLength) -> Vec<Raw> {
    let tools = view.ready_modules().flat_map(|module| &module.tools);
    tools.filter(|tool| tool.is_enabled()).map(|tool| tool.direct_definition(names)).collect()
}

/// Returns the instructions of a single server; those of many would cost the tokens that hikite saves.
pub(super) fn instructions(view: &View) -> Option<String> {
    let mut modules = view.ready_modules();
    match (modules.next(), modules.next()) {
        (Some(only), None) => only.listing.as_ref()?.instructions.clone(),
        _ => None,
    }
}

pub(super) fn translate(name: String, params: Object) -> Command {
    Command::Call { target: ToolTarget::Named(name), params, options: CallOptions::default() }
}
