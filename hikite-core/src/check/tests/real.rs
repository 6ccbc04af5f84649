//! Schemas of real tools: each compiles, and a broken one affects no other.

use serde_json::{Map, Value, json};

use crate::check::{ArgumentChecker, CheckOutcome};
use crate::json::Raw;

fn tools() -> impl Iterator<Item = (String, Value)> {
    let servers: Map<String, Value> =
        serde_json::from_str(include_str!("../../../tests/fixtures/tools.json")).expect("valid JSON");
    servers.into_iter().flat_map(|(server, tools)| {
        let Value::Object(tools) = tools else { panic!("{server} has no tools") };
        tools.into_iter().map(move |(tool, schema)| (format!("{server}:{tool}"), schema))
    })
}

#[test]
fn real_schemas_compile() {
    let problems: Vec<String> = tools()
        .filter_map(|(name, schema)| {
            let checker = ArgumentChecker::new(Some(schema.into()));
            checker.find_problem().map(|problem| format!("{name}: {problem}"))
        })
        .collect();
    assert!(problems.is_empty(), "{problems:#?}");
    assert_eq!(tools().count(), 1162);
}

/// A broken schema disables the check of its own tool only.
#[test]
fn a_broken_schema_among_real_ones_is_broken_alone() {
    let mut spoiled: Vec<(String, Value)> = tools().take(50).collect();
    spoiled[7].1["properties"] = json!({ "a": { "type": "strnig" } });
    let broken = spoiled.into_iter().enumerate().filter_map(|(index, (_, schema))| {
        let checker = ArgumentChecker::new(Some(schema.into()));
        assert_eq!(index == 7, checker.check(Some(&Raw::of("no object"))) == Ok(CheckOutcome::AsSent));
        checker.problem().map(|_| index)
    });
    assert_eq!(broken.collect::<Vec<_>>(), [7]);
}

#[test]
fn plain_arguments_pass_the_schemas_of_real_tools() {
    let mut passed = 0;
    for (name, schema) in tools() {
        let Some(arguments) = plain(&schema) else { continue };
        let (sent, checker) = (Raw::of(&arguments), ArgumentChecker::new(Some(schema.into())));
        let outcome = checker.check(Some(&sent)).unwrap_or_else(|faults| panic!("{name}: {sent:?}: {faults:?}"));
        if let CheckOutcome::Changed(filled) = outcome {
            let object = filled.object().expect("an object");
            let kept = |(name, value): (&String, &Value)| object.get(name) == Some(&Raw::of(value));
            assert!(arguments.iter().all(kept), "{name}: {object:?}");
        }
        passed += 1;
    }
    assert!(passed > 900, "{passed} tools");
}

#[test]
fn real_schemas_refuse_what_they_require_and_does_not_come() {
    let mut refused = 0;
    for (name, schema) in tools() {
        let Some(required) = schema["required"].as_array().filter(|required| !required.is_empty()) else {
            continue;
        };
        let count = required.len();
        let checker = ArgumentChecker::new(Some(schema.into()));
        let faults = checker.check(Some(&Raw::empty_object())).expect_err(&name);
        let missing = faults.iter().filter(|fault| fault.message.starts_with("Required parameter missing: "));
        assert!(missing.count() >= count.min(20), "{name}: {faults:?}");
        refused += 1;
    }
    assert!(refused > 700, "{refused} tools");
}

/// Returns values for the required properties, if all are of a plain type without further constraints.
fn plain(schema: &Value) -> Option<Map<String, Value>> {
    let conditions = ["anyOf", "oneOf", "allOf", "not", "if", "minProperties", "$ref"];
    if conditions.iter().any(|keyword| schema.get(keyword).is_some()) {
        return None;
    }
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    required
        .iter()
        .map(|name| Some((name.as_str()?.to_owned(), value(&schema["properties"][name.as_str()?])?)))
        .collect()
}

fn value(property: &Value) -> Option<Value> {
    let plain = ["type", "default", "format", "additionalProperties", "items", "uniqueItems", "maxItems"];
    if let Some(options) = property["enum"].as_array() {
        return options.first().cloned();
    }
    if !property.as_object()?.keys().all(|keyword| plain.contains(&keyword.as_str())) {
        return None;
    }
    Some(match property["type"].as_str()? {
        "string" => json!("text é"),
        "integer" => json!(7),
        "number" => json!(1.5),
        "boolean" => json!(true),
        "array" => json!([]),
        "object" => json!({}),
        _ => return None,
    })
}
