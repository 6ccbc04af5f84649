//! Parameters with unresolved references: only violations that no resolved value could fix are reported.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{checker, of};
use crate::plan::{OnError, Plan, ReferenceScope};

/// Reads params as a task of a batch would, after a task `a` that they can refer to.
fn template(params: &Value) -> crate::plan::JsonTemplate {
    let batch = json!([{ "id": "a", "toolKey": "m:t" }, { "id": "b", "toolKey": "m:t", "params": params }]);
    let mut plan = Plan::read(&batch.into(), OnError::Skip, 10).expect("a plan");
    plan.tasks.pop().expect("a task").params
}

fn faults(schema: &Value, params: &Value) -> Vec<(String, String)> {
    let template = template(params);
    let (value, filled) = template.as_written();
    match checker(schema.clone()).check_template(value, &filled) {
        Ok(()) => Vec::new(),
        Err(faults) => faults.into_iter().map(|fault| (fault.pointer, fault.message)).collect(),
    }
}

#[track_caller]
fn passes(schema: &Value, params: &Value) {
    assert_eq!(faults(schema, params), []);
}

#[track_caller]
fn refused(schema: &Value, params: &Value, place: &str, message: &str) {
    assert_eq!(faults(schema, params), [(place.to_owned(), message.to_owned())]);
}

#[test]
fn a_reference_may_become_anything() {
    for property in [
        json!({ "type": "integer", "minimum": 3 }),
        json!({ "type": "array", "items": { "type": "integer" }, "minItems": 2 }),
        json!({ "type": "object", "required": ["x"] }),
        json!({ "enum": [1, 2] }),
        json!({ "const": null }),
        json!({ "type": "string", "maxLength": 2, "pattern": "^[a-z]$" }),
        json!({ "oneOf": [{ "type": "integer" }, { "type": "boolean" }] }),
        json!({ "not": { "type": "string" } }),
    ] {
        passes(&of("v", &property), &json!({ "v": "${a.x}" }));
        let list = of("v", &json!({ "type": "array", "items": property }));
        passes(&list, &json!({ "v": ["${a.x}", "${a.y?}"] }));
    }
}

#[test]
fn what_stands_above_a_reference_is_known() {
    let schema = json!({
        "type": "object",
        "properties": {
            "page_id": { "type": "string" },
            "filter": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["by"] },
            "list": { "type": "array", "maxItems": 1 },
            "number": { "type": "number" },
        },
        "required": ["page_id"],
        "additionalProperties": false
    });
    refused(
        &schema,
        &json!({ "pageid": "${a.id}", "page_id": "x" }),
        "/pageid",
        "Unknown parameter: pageid. Did you mean `page_id`?",
    );
    refused(&schema, &json!({ "number": "${a.n}" }), "/page_id", "Required parameter missing: page_id");
    let filter = json!({ "page_id": "x", "filter": { "n": "${a.n}" } });
    refused(&schema, &filter, "/filter/by", "Required parameter missing: filter.by");
    let list = json!({ "page_id": "${a}", "list": ["${a.x}", "${a.y}"] });
    refused(&schema, &list, "/list", "Invalid value for parameter list: must have at most 1 items");
    let number = json!({ "page_id": "x", "number": ["${a.x}"] });
    refused(&schema, &number, "/number", "Invalid type for parameter number: expected number");
}

#[test]
fn faults_beside_a_reference_are_told() {
    let schema =
        json!({ "properties": { "a": { "type": "integer" }, "b": { "enum": ["x"] }, "c": { "type": "integer" } } });
    let params = json!({ "a": "${a.n}", "b": "y", "c": "many" });
    let told = faults(&schema, &params);
    assert_eq!(told.iter().map(|(place, _)| place.as_str()).collect::<Vec<_>>(), ["/b", "/c"]);
}

#[test]
fn a_reference_inside_a_text_makes_a_text() {
    let wrong = "Invalid type for parameter v: expected integer";
    refused(&of("v", &json!({ "type": "integer" })), &json!({ "v": "no. ${a.n}" }), "/v", wrong);
    let either = json!({ "anyOf": [{ "type": "integer" }, { "type": "boolean" }] });
    refused(
        &of("v", &either),
        &json!({ "v": "no. ${a.n}" }),
        "/v",
        "Invalid type for parameter v: expected boolean or integer",
    );
    for property in [
        json!({ "type": "string", "maxLength": 1, "pattern": "^x$" }),
        json!({ "enum": ["no. 5"] }),
        json!({ "type": ["integer", "string"], "const": "no. 1" }),
        json!({ "anyOf": [{ "type": "integer" }, { "type": "string", "maxLength": 1 }] }),
    ] {
        passes(&of("v", &property), &json!({ "v": "no. ${a.n}" }));
    }
}

#[test]
fn keywords_that_look_at_the_value_wait_for_it() {
    let x = json!({ "x": "${a.x}" });
    for schema in [
        json!({ "anyOf": [{ "properties": { "x": { "const": 1 } } }, { "required": ["y"] }] }),
        json!({ "oneOf": [{ "properties": { "x": { "const": 1 } } }, { "properties": { "x": { "const": 2 } } }] }),
        json!({ "oneOf": [{ "properties": { "x": { "type": "string" } } }, { "required": ["x"] }] }),
        json!({ "not": { "properties": { "x": { "type": "string" } } } }),
        json!({ "enum": [{ "x": 1 }] }),
        json!({ "const": { "x": 1 } }),
        json!({ "if": { "properties": { "x": { "type": "string" } } }, "then": { "required": ["y"] } }),
        json!({ "if": { "properties": { "x": { "type": "integer" } } }, "else": { "required": ["y"] } }),
        json!({ "dependentRequired": { "x": ["y"] } }),
        json!({ "dependentSchemas": { "x": { "required": ["y"] } } }),
        json!({ "unevaluatedProperties": false, "anyOf": [{ "required": ["x"] }] }),
        json!({ "maxProperties": 0 }),
    ] {
        passes(&schema, &x);
    }
    for property in [json!({ "contains": { "const": 5 } }), json!({ "uniqueItems": true })] {
        passes(&of("v", &property), &json!({ "v": ["${a.x}", "${a.x}"] }));
    }
    // If every alternative is certainly invalid, so is the whole.
    let none = json!({ "anyOf": [{ "required": ["y"] }, { "required": ["z"] }] });
    assert_eq!(faults(&none, &x).len(), 1);
    let named = json!({ "propertyNames": { "maxLength": 0 } });
    refused(&named, &x, "", "Invalid value for parameter arguments: has a member with a name that is not allowed");
}

#[test]
fn without_a_reference_below_all_keywords_count() {
    let schema = json!({ "properties": { "o": { "not": { "required": ["k"] } }, "l": { "uniqueItems": true }, "e": { "enum": [[1]] } } });
    let told = faults(&schema, &json!({ "o": { "k": 1 }, "l": [1, 1], "e": [2], "free": "${a}" }));
    assert_eq!(told.len(), 3, "{told:?}");
}

#[test]
fn what_is_set_right_in_a_call_is_no_fault() {
    let schema = json!({
        "properties": { "n": { "type": "integer" }, "o": { "type": "object" }, "s": { "type": "string" }, "id": { "type": "integer" } },
        "required": ["id"], "additionalProperties": false
    });
    passes(&schema, &json!({ "id": "${a.id}", "n": "5", "o": "{\"k\":1}", "s": 7 }));
    passes(&schema, &json!({ "id": "${a.id}", "n": null }));
    passes(&schema, &json!({ "arguments": { "id": "${a.id}", "n": "5" } }));
    passes(&schema, &json!({ "params": { "arguments": { "id": "${a.id}" } } }));
    passes(&schema, &json!({ "params": "${a.params}" }));
    passes(&schema, &json!({ "params": { "arguments": "${a.params}" } }));
    refused(
        &of("o", &json!({ "type": "object" })),
        &json!({ "o": "${a.x} and" }),
        "/o",
        "Invalid type for parameter o: expected object",
    );
}

#[test]
fn params_that_are_one_reference_pass() {
    passes(&json!({ "required": ["x"], "properties": {} }), &json!("${a.params}"));
}

#[test]
fn params_no_check_could_follow_are_refused() {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    refused(&json!({ "type": "object" }), &json!({ "v": deep }), "", "the arguments are nested too deeply");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9_i64).prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec(("[a-c]", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn schema() -> impl Strategy<Value = Value> {
    const KINDS: &[&str] = &["string", "integer", "boolean", "array", "object", "null"];
    let leaf = prop_oneof![
        prop::sample::select(KINDS).prop_map(|kind| json!({ "type": kind })),
        value().prop_map(|value| json!({ "const": value })),
        proptest::collection::vec(value(), 1..3).prop_map(|values| json!({ "enum": values })),
        Just(json!({ "required": ["a"] })),
        Just(json!({ "minItems": 1, "minProperties": 1, "maxProperties": 1 })),
        Just(json!({ "uniqueItems": true, "dependentRequired": { "a": ["b"] } })),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|(a, b)| json!({ "properties": { "a": a, "b": b }, "additionalProperties": false })),
            two.clone().prop_map(|(a, b)| json!({ "properties": { "a": a }, "unevaluatedProperties": b })),
            two.clone().prop_map(|(a, b)| json!({ "anyOf": [a, b] })),
            two.clone().prop_map(|(a, b)| json!({ "oneOf": [a, b] })),
            two.clone().prop_map(|(a, b)| json!({ "items": a, "contains": b })),
            (inner.clone(), two).prop_map(|(a, (b, c))| json!({ "if": a, "then": b, "else": c })),
            inner.prop_map(|a| json!({ "not": a, "additionalProperties": a })),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    /// Invariant: params that are valid once resolved were not refused before.
    #[test]
    fn nothing_is_refused_that_a_reference_could_make_right(
        schema in schema(),
        params in proptest::collection::vec(("[a-c]", value()), 0..3),
        filled in proptest::collection::vec(any::<prop::sample::Index>(), 1..3),
    ) {
        let checker = checker(json!({ "properties": { "a": schema, "b": schema }, "allOf": [schema] }));
        let whole = Value::Object(params.into_iter().collect());
        prop_assume!(checker.check(Some(&whole.clone().into())).is_ok());
        let mut places = Vec::new();
        list(&whole, "", &mut places);
        let mut written = whole.clone();
        let mut results = Vec::new();
        for index in filled {
            let Some(place) = places.get(index.index(places.len().max(1))) else { continue };
            if let Some(value) = written.pointer_mut(place) {
                let reference = json!(format!("${{a[{}]}}", results.len()));
                results.push(std::mem::replace(value, reference));
            }
        }
        let template = template(&written);
        let results = Value::from(results);
        let scope = ReferenceScope { result: &|_| Some(&results), item: None };
        let (value, filled) = template.as_written();
        if filled.len() == results.as_array().map_or(0, Vec::len) {
            prop_assert_eq!(template.resolve(&scope), Ok(whole));
        }
        prop_assert_eq!(checker.check_template(value, &filled), Ok(()));
    }
}

/// Collects the pointers below the top level.
fn list(value: &Value, pointer: &str, places: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, member)| (name.clone(), member)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, item)| (n.to_string(), item)).collect(),
        _ => return,
    };
    for (step, inner) in below {
        let pointer = format!("{pointer}/{step}");
        list(inner, &pointer, places);
        places.push(pointer);
    }
}
