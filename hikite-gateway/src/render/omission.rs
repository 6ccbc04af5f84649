//! The line that says what a result leaves out and how to read on, in the dialect of the tool that was used.

use hikite_core::compact::LEFT_OUT_BYTES;
use hikite_core::json::{Object, Raw};

use crate::command::Dialect;
use crate::handle::result_uri;

/// Maximum length of such a line.
pub(super) const READ_ON_BYTES: usize = LEFT_OUT_BYTES + 140;

/// Builds the line for a stored result.
pub(super) fn read_on(left_out: &str, id: &str, page: u32, dialect: Dialect) -> String {
    let way = way(id, dialect, Some(page));
    format!("\n[left out: {left_out}; continue with {way} (or \"jq\", \"search\")]")
}

/// Builds the line for a result that exceeds the result store, of which nothing is stored.
pub(super) fn read_on_instead(left_out: &str) -> String {
    let words = "the full result is not stored; ask the tool for less, or select a part with `select`";
    format!("\n[left out: {left_out}; {words}]")
}

/// Builds the hint for a call whose result could not be shown.
pub(super) fn ran(id: &str, dialect: Dialect) -> String {
    format!("The tool has run and its result is stored: {} (or \"page\", \"search\")", way(id, dialect, None))
}

fn way(id: &str, dialect: Dialect, page: Option<u32>) -> String {
    let (address, mut part) = (result_uri(id), Object::default());
    match page {
        Some(page) => part.set("page", Raw::of(&page)),
        None => part.set("jq", "…"),
    }
    match dialect {
        Dialect::Result => {
            let mut call = Object::default().with("uri", address);
            for (name, value) in part.iter() {
                call.set(name, value.clone());
            }
            format!("call {}", call.raw().as_str())
        }
        Dialect::Value => {
            let call = Object::default().with("toolKey", address).with("arguments", part);
            format!("tool_execute {}", call.raw().as_str())
        }
    }
}
