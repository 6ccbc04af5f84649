//! One thing that is wrong with a JSON document, and where. Whoever checks one tells all of them at once.

use crate::error::{Error, Kind};
use crate::json::{Object, Raw};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// A JSON Pointer (RFC 6901); empty for the whole.
    pub pointer: String,
    pub message: String,
}

impl Fault {
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }
}

/// The error that tells all of them: the message in one line, the details one by one.
pub fn error(faults: &[Fault]) -> Error {
    let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
    let details: Vec<Raw> = faults
        .iter()
        .map(|fault| {
            Object::default()
                .with("pointer", fault.pointer.as_str())
                .with("message", fault.message.as_str())
                .raw()
        })
        .collect();
    Error { details: Some(Raw::array(&details)), ..Error::new(Kind::Validation, messages.join("; ")) }
}

/// A member's name as a step of a JSON Pointer.
pub fn step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}
