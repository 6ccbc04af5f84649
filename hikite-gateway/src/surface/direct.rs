//! The `direct` surface: the real tools of all modules under names that do not clash.

use hikite_core::json::{Object, Raw};
use hikite_core::view::View;

use crate::command::{CallOptions, Command, Target};

pub(super) fn tools(view: &View) -> Vec<Raw> {
    view.enabled_tools().map(hikite_core::catalog::Tool::direct_definition).collect()
}

/// A single server's own instructions; those of many would cost what hikite is there to save.
pub(super) fn instructions(view: &View) -> Option<String> {
    match view.modules() {
        [only] => only.listing.as_ref()?.instructions.clone(),
        _ => None,
    }
}

pub(super) fn translate(name: String, params: Object) -> Command {
    Command::Call { target: Target::Named(name), params, options: CallOptions::default() }
}
