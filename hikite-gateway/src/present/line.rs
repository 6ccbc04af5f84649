//! The one line that says what is missing in an answer, and how to read on: in the words of the tool that was used.

use hikite_core::compact::LEFT_OUT_BYTES;
use hikite_core::json::{Object, Raw};

use crate::command::Dialect;
use crate::handle::address_of;

/// What such a line takes at most, whatever it tells of.
pub(super) const READ_ON_BYTES: usize = LEFT_OUT_BYTES + 140;

/// For an answer that is kept.
pub(super) fn read_on(left_out: &str, id: &str, page: u32, dialect: Dialect) -> String {
    let way = way(id, dialect, Some(page));
    format!("\n[left out: {left_out}; read on with {way} (or \"jq\", \"search\")]")
}

/// For one that is larger than all that may be kept, where nothing is kept.
pub(super) fn read_on_instead(left_out: &str) -> String {
    let words = "the whole is not kept; ask the tool for less, or take a part with `select`";
    format!("\n[left out: {left_out}; {words}]")
}

/// For a call whose answer nobody got to see.
pub(super) fn ran(id: &str, dialect: Dialect) -> String {
    format!("the tool has run, and its answer is kept: {} (or \"page\", \"search\")", way(id, dialect, None))
}

fn way(id: &str, dialect: Dialect, page: Option<u32>) -> String {
    let (address, mut part) = (address_of(id), Object::default());
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
