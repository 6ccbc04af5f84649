//! Argument checking. No schema and no arguments make it panic, the arguments it returns pass a second check, and its
//! messages never repeat a value. Canonical JSON is stable for any JSON input.

use bytes::Bytes;
use hikite_core::check::{ArgumentChecker, CheckOutcome};
use hikite_core::json::{Raw, canonical};
use hikite_core::parameter;

/// Checks one input: the first line is the schema, the rest are the arguments.
pub fn assert_properties(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (schema, arguments) = input.split_at(end);
    let read = |bytes: &[u8]| Raw::parse(Bytes::copy_from_slice(bytes)).ok();
    let (schema, arguments) = (read(schema), read(arguments));
    [&schema, &arguments].into_iter().flatten().for_each(spelling_is_stable);
    let Some(schema) = schema else { return };
    if let Ok(shown) = parameter::schema(&schema) {
        assert_eq!(ArgumentChecker::new(Some(shown)).find_problem(), None, "we wrote a broken schema");
    }
    let checker = ArgumentChecker::new(Some(schema));
    match checker.check(arguments.as_ref()) {
        Ok(CheckOutcome::AsSent) => {}
        Ok(CheckOutcome::Changed(arguments)) => {
            assert!(checker.check(Some(&arguments)).is_ok(), "what was set right is refused");
        }
        Err(faults) => {
            assert!((1..=20).contains(&faults.len()));
            assert!(faults.iter().all(|fault| fault.pointer.is_empty() || fault.pointer.starts_with('/')));
        }
    }
}

fn spelling_is_stable(raw: &Raw) {
    let once = canonical(raw);
    let again = Raw::parse(once.clone()).expect("canonical JSON is JSON");
    assert_eq!(canonical(&again), once);
}
