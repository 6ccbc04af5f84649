//! A violation: one thing that is wrong with a JSON document, and its location. Checks report all violations at once.

use crate::error::{Error, ErrorKind};
use crate::json::{Object, Raw};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer (RFC 6901); empty for the whole document.
    pub pointer: String,
    pub message: String,
}

/// Maximum bytes of a pointer and of a message. Both may quote names from the document.
const POINTER_MAX: usize = 1000;
const MESSAGE_MAX: usize = 2000;

impl Violation {
    /// Builds a violation. A long pointer is cut to an enclosing location, a long message to its beginning.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        let (mut pointer, mut message) = (pointer.into(), message.into());
        if pointer.len() > POINTER_MAX {
            pointer.truncate(pointer.as_bytes()[..POINTER_MAX].iter().rposition(|b| *b == b'/').unwrap_or(0));
            pointer.shrink_to_fit();
        }
        cut(&mut message, MESSAGE_MAX);
        Self { pointer, message }
    }
}

/// Truncates a longer text and marks the cut with `…`.
pub(crate) fn cut(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push('…');
        text.shrink_to_fit();
    }
}

/// Maximum number of violations reported for one document.
pub const REPORTED_MAX: usize = 64;

/// Builds the error for all violations: the message in one line, the details as a list. Very many are truncated.
pub fn error(faults: &[Violation]) -> Error {
    let Some((told, _)) = faults.split_at_checked(REPORTED_MAX + 1) else { return of_reported(faults) };
    let mut told = told.to_vec();
    told[REPORTED_MAX] = Violation::new("", format!("and {} more", faults.len() - REPORTED_MAX));
    of_reported(&told)
}

fn of_reported(faults: &[Violation]) -> Error {
    let details: Vec<Raw> = faults
        .iter()
        .map(|fault| {
            Object::default().with("pointer", fault.pointer.as_str()).with("message", fault.message.as_str()).raw()
        })
        .collect();
    Error { details: Some(Raw::array(&details)), ..Error::new(ErrorKind::Validation, joined(faults)) }
}

/// Joins the messages: sentences with a space, fragments with a semicolon.
fn joined(faults: &[Violation]) -> String {
    let mut text = String::new();
    for fault in faults {
        match text.chars().last() {
            None => {}
            Some('.' | '?') => text.push(' '),
            Some(_) => text.push_str("; "),
        }
        text.push_str(&fault.message);
    }
    text
}

/// Returns a member's name as an escaped step of a JSON Pointer.
pub fn step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_not_repeated_at_length() {
        let fault = Violation::new(format!("/a/b/{}", "x".repeat(1 << 20)), "é".repeat(1 << 20));
        assert_eq!(fault.pointer, "/a/b");
        assert!(fault.message.len() <= MESSAGE_MAX + 3 && fault.message.ends_with("é…"));
        let told = error(&vec![fault; 1000]).details.and_then(|raw| raw.items()).unwrap_or_default();
        assert_eq!(told.len(), REPORTED_MAX + 1);
        assert!(told[REPORTED_MAX].as_str().contains("and 936 more"));
        let fault = Violation::new("/a", "short");
        assert_eq!((fault.pointer.as_str(), fault.message.as_str()), ("/a", "short"));
    }
}
