//! The `modules` surface: three tools, one that opens modules, one that runs a tool and one that runs many.

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::view::View;

use crate::command::Command;

pub(super) const INSTRUCTIONS: &str = "Tools are grouped into modules.";

pub(super) fn tools(view: &View) -> Vec<Raw> {
    let _ = view;
    Vec::new()
}

pub(super) fn translate(name: &str, params: &Object) -> Option<Result<Command, Error>> {
    let _ = (name, params);
    None
}
