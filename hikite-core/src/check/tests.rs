//! Tests of the argument check: what passes unchanged, what is repaired, and what is rejected with which message.

mod hostile;
mod real;
mod wildcard;

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn checker(schema: Value) -> ArgumentChecker {
    ArgumentChecker::new(Some(schema.into()))
}

fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).expect("valid JSON")
}

#[track_caller]
fn changed(schema: &Value, sent: &str, relayed: &str) {
    let outcome = checker(schema.clone()).check(Some(&raw(sent)));
    match outcome.expect("passes") {
        CheckOutcome::Changed(arguments) => assert_eq!(arguments.as_str(), relayed),
        CheckOutcome::AsSent => panic!("{sent} was left as it is"),
    }
}

#[track_caller]
fn as_sent(schema: &Value, sent: &str) {
    assert_eq!(checker(schema.clone()).check(Some(&raw(sent))), Ok(CheckOutcome::AsSent), "{sent}");
}

#[track_caller]
fn refused(schema: &Value, sent: &str, expected: &[(&str, &str)]) {
    let faults = checker(schema.clone()).check(Some(&raw(sent))).expect_err("refused");
    let faults: Vec<_> = faults.iter().map(|f| (f.pointer.as_str(), f.message.as_str())).collect();
    assert_eq!(faults, expected);
}

fn of(name: &str, property: &Value) -> Value {
    json!({ "type": "object", "properties": { name: property } })
}

#[test]
fn without_a_schema_everything_passes() {
    for schema in [None, Some(raw("true")), Some(raw("[]")), Some(raw("null"))] {
        let checker = ArgumentChecker::new(schema);
        assert_eq!(checker.check(Some(&raw("[1]"))), Ok(CheckOutcome::AsSent));
        assert_eq!(checker.check(None), Ok(CheckOutcome::AsSent));
        assert_eq!(checker.find_problem(), None);
    }
}

#[test]
fn a_broken_schema_switches_its_own_check_off_and_says_why() {
    let broken = [
        json!({ "type": "strnig" }),
        json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }),
        json!({ "$ref": "https://elsewhere.example/schema.json" }),
        json!({ "properties": { "a": { "$ref": "#/$defs/missing" } } }),
        json!({ "properties": { "a": { "$ref": "file:///etc/passwd" } } }),
    ];
    for schema in broken {
        let checker = checker(schema.clone());
        assert_eq!(checker.problem(), None, "nothing is compiled yet");
        assert_eq!(checker.check(Some(&raw(r#"{"a":1}"#))), Ok(CheckOutcome::AsSent), "{schema}");
        assert!(checker.problem().is_some(), "{schema}");
    }
}

#[test]
fn drafts_are_told_apart_by_schema() {
    let tuple = |schema: &str, keyword: &str| json!({ "$schema": schema, "properties": { "t": { "type": "array", keyword: [{ "type": "string" }] } } });
    let (modern, seven) = ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#");
    let wrong = [("/t/0", "Invalid type for parameter t[0]: expected string")];
    refused(&tuple(modern, "prefixItems"), r#"{"t":[null]}"#, &wrong);
    refused(&tuple(seven, "items"), r#"{"t":[null]}"#, &wrong);
    as_sent(&tuple(seven, "prefixItems"), r#"{"t":[null]}"#);
    let silent = json!({ "properties": { "t": { "items": [{ "type": "string" }] } } });
    refused(&silent, r#"{"t":[null]}"#, &wrong);
    as_sent(&json!({ "$schema": "https://vendor.example/own", "type": "object" }), "{}");
}

#[test]
fn formats_are_not_asserted() {
    as_sent(&of("at", &json!({ "type": "string", "format": "date-time" })), r#"{"at":"tomorrow"}"#);
    let encoded = json!({ "type": "string", "contentEncoding": "base64" });
    let schema = json!({ "$schema": "http://json-schema.org/draft-07/schema#", "properties": { "a": encoded } });
    as_sent(&schema, r#"{"a":"%%"}"#);
}

#[test]
fn all_faults_are_told_at_once_in_the_words_of_the_specification() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "minLength": 2, "pattern": "^[a-z]+$" },
            "count": { "type": "integer", "minimum": 1, "maximum": 9 },
            "mode": { "enum": ["fast", "slow"] },
            "tags": { "type": "array", "items": { "type": "string" }, "maxItems": 2, "uniqueItems": true },
            "filter": { "type": "object", "properties": { "deep/er": { "type": "boolean" } }, "required": ["deep/er"] }
        },
        "required": ["path", "name"],
        "additionalProperties": false
    });
    let sent = r#"{"name":"A","count":5.5,"mode":"fats","tags":[[],"x","x"],"filter":{},"counts":1}"#;
    let faults = checker(schema).check(Some(&raw(sent))).expect_err("refused");
    let told: HashSet<_> = faults.iter().map(|f| (f.pointer.as_str(), f.message.as_str())).collect();
    let expected = HashSet::from([
        ("/path", "Required parameter missing: path"),
        ("/filter/deep~1er", "Required parameter missing: filter.deep/er"),
        ("/count", "Invalid type for parameter count: expected integer"),
        ("/name", "Invalid value for parameter name: must match the pattern ^[a-z]+$"),
        ("/name", "Invalid value for parameter name: must have at least 2 characters"),
        ("/mode", "Invalid value for parameter mode: expected one of \"fast\", \"slow\""),
        ("/tags/0", "Invalid type for parameter tags[0]: expected string"),
        ("/tags", "Invalid value for parameter tags: must have at most 2 items"),
        ("/tags", "Invalid value for parameter tags: must not contain the same item twice"),
        ("/counts", "Unknown parameter: counts. Did you mean `count`?"),
    ]);
    assert_eq!(told, expected);
}

#[test]
fn a_value_that_came_is_never_repeated() {
    let schema = json!({
        "properties": {
            "a": { "type": "integer" }, "b": { "enum": ["x"] }, "c": { "pattern": "^x$" }, "d": { "const": 1 },
            "e": { "maxLength": 1 }, "f": { "anyOf": [{ "const": 1 }, { "type": "integer" }] }, "g": { "not": {} },
            "h": { "oneOf": [{}, {}] }, "i": { "propertyNames": { "maxLength": 1 } }, "j": false
        }
    });
    let canary = "hunter2-canary";
    let sent: serde_json::Map<String, Value> =
        ('a'..='j').map(|name| (name.into(), if name == 'i' { json!({ canary: 1 }) } else { json!(canary) })).collect();
    let faults = checker(schema).check(Some(&Raw::of(&sent))).expect_err("refused");
    assert_eq!(faults.len(), 10, "{faults:?}");
    assert!(faults.iter().all(|fault| !fault.message.contains("hunter2")), "{faults:?}");
}

#[test]
fn at_most_twenty_faults_are_told() {
    let schema = json!({ "required": (0..50).map(|n| format!("p{n}")).collect::<Vec<_>>() });
    let faults = checker(schema).check(None).expect_err("refused");
    assert_eq!(faults.len(), 20);
}

#[test]
fn the_alternative_that_was_meant_is_told() {
    let schema = of(
        "to",
        &json!({ "anyOf": [
            { "type": "object", "properties": { "kind": { "const": "user" }, "id": { "type": "integer" } }, "required": ["kind", "id"] },
            { "type": "object", "properties": { "kind": { "const": "group" }, "name": { "type": "string" } }, "required": ["kind", "name"] },
            { "type": "null" }
        ] }),
    );
    refused(&schema, r#"{"to":{"kind":"group"}}"#, &[("/to/name", "Required parameter missing: to.name")]);
    let none = "Invalid value for parameter to: matches none of the 3 allowed forms";
    refused(&schema, r#"{"to":{"kind":"robot"}}"#, &[("/to", none)]);
    let optional = of("n", &json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }));
    refused(&optional, r#"{"n":[]}"#, &[("/n", "Invalid type for parameter n: expected integer or null")]);
}

#[test]
fn arguments_in_a_wrapper_are_unwrapped() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] });
    for sent in [
        r#""{\"a\": 1}""#,
        r#""\"{\\\"a\\\": 1}\"""#,
        r#"{"arguments":{"a": 1}}"#,
        r#"{"params":{"a": 1}}"#,
        r#"{"input":"{\"a\": 1}"}"#,
        r#"{"params":{"arguments":{"a": 1}}}"#,
        r#""{\"arguments\":{\"a\": 1}}""#,
    ] {
        changed(&schema, sent, r#"{"a": 1}"#);
    }
    changed(&schema, r#"{"arguments":{"a":"1"}}"#, r#"{"a":1}"#);
}

#[test]
fn a_wrapper_is_left_alone_where_it_may_be_meant() {
    let open = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    as_sent(&open, r#"{"arguments":{"a":1}}"#);
    let own = json!({
        "type": "object",
        "properties": { "a": { "type": "integer" }, "arguments": { "type": "string" } },
        "required": ["a"]
    });
    let missing = ("/a", "Required parameter missing: a");
    let faults = checker(own).check(Some(&raw(r#"{"arguments":{"a":1}}"#))).expect_err("refused");
    assert!(faults.iter().any(|f| (f.pointer.as_str(), f.message.as_str()) == missing), "{faults:?}");
    let closed = json!({ "properties": { "a": { "type": "integer" } }, "required": ["a"] });
    refused(&closed, r#"{"arguments":{"a":1},"more":2}"#, &[missing]);
    refused(&closed, r#"{"arguments":{"b":1}}"#, &[missing]);
}

#[test]
fn no_arguments_are_an_empty_object() {
    let schema = json!({ "type": "object", "required": ["a"] });
    for sent in [None, Some(raw("null")), Some(raw("{}"))] {
        let faults = checker(schema.clone()).check(sent.as_ref()).expect_err("refused");
        assert_eq!(faults, [Violation::new("/a", "Required parameter missing: a")]);
    }
    assert_eq!(checker(json!({ "type": "object" })).check(None), Ok(CheckOutcome::AsSent));
    changed(&json!({ "type": "object" }), "null", "{}");
    let expected = [("", "Invalid type for parameter arguments: expected object")];
    for sent in ["[]", "5", r#""text""#, "true"] {
        refused(&json!({ "title": "anything" }), sent, &expected);
    }
}

#[test]
fn defaults_are_filled_in() {
    let schema = json!({
        "$defs": { "size": { "type": "integer", "default": 7 } },
        "properties": {
            "limit": { "type": "integer", "default": 10 },
            "size": { "$ref": "#/$defs/size" },
            "none": { "type": ["string", "null"], "default": null },
            "page": { "type": "object", "properties": { "at": { "default": 1 } } },
            "rows": { "type": "array", "items": { "properties": { "n": { "default": 0 } } } },
            "either": { "anyOf": [{ "properties": { "x": { "default": 1 } } }] }
        },
        "allOf": [{ "properties": { "mode": { "default": "fast" } } }]
    });
    changed(&schema, r#"{ "limit": 3.0 }"#, r#"{"limit":3.0,"size":7,"mode":"fast"}"#);
    changed(
        &schema,
        r#"{"limit":1,"size":2,"mode":"m","page":{},"rows":[{"n":5},{}],"either":{}}"#,
        r#"{"limit":1,"size":2,"mode":"m","page":{"at":1},"rows":[{"n":5},{"n":0}],"either":{}}"#,
    );
    as_sent(&schema, r#"{"limit":1,"size":2,"mode":"m"}"#);
    let checker = checker(of("a", &json!({ "default": 1 })));
    assert_eq!(checker.check(None), Ok(CheckOutcome::Changed(raw(r#"{"a":1}"#))));
}

#[test]
fn defaults_are_filled_in_wherever_a_reference_brings_them() {
    let schema = json!({
        "properties": {
            "n": { "default": 1 },
            "same": { "$ref": "#/properties/n" },
            "inner": { "$ref": "#" }
        }
    });
    changed(&schema, r#"{"inner":{"n":2}}"#, r#"{"inner":{"n":2,"same":1},"n":1,"same":1}"#);
}

#[test]
fn a_default_never_makes_valid_arguments_invalid() {
    let wrong = json!({ "properties": { "a": { "type": "integer", "default": "x" }, "b": { "default": 2 } } });
    changed(&wrong, "{}", r#"{"b":2}"#);
    let crowded = json!({ "properties": { "a": { "default": 1 }, "b": {} }, "maxProperties": 1 });
    as_sent(&crowded, r#"{"b":1}"#);
}

#[test]
fn values_that_can_only_mean_one_thing_are_coerced() {
    let cases = [
        (json!({ "type": "integer" }), r#""5""#, "5"),
        (json!({ "type": "integer" }), r#""-17""#, "-17"),
        (json!({ "type": "number" }), r#""5.25""#, "5.25"),
        (json!({ "type": "boolean" }), r#""true""#, "true"),
        (json!({ "type": "boolean" }), r#""false""#, "false"),
        (json!({ "type": "string" }), "5", r#""5""#),
        (json!({ "type": "string" }), "true", r#""true""#),
        (json!({ "type": "string" }), "12345678901234567890123", r#""12345678901234567890123""#),
        (json!({ "type": "object" }), r#""{\"x\": 1}""#, r#"{"x": 1}"#),
        (json!({ "type": "array" }), r#""[1, 2]""#, "[1, 2]"),
        (json!({ "type": ["integer", "null"] }), r#""5""#, "5"),
        (json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }), r#""5""#, "5"),
        (json!({ "oneOf": [{ "type": "boolean" }, { "type": "integer" }] }), r#""true""#, "true"),
        (json!({ "type": "array", "items": { "type": "integer" } }), r#""[\"1\",2]""#, "[1,2]"),
        (json!({ "type": "integer", "enum": [1, 2] }), r#""2""#, "2"),
    ];
    for (property, sent, relayed) in cases {
        changed(&of("a", &property), &format!(r#"{{"a":{sent}}}"#), &format!(r#"{{"a":{relayed}}}"#));
    }
}

#[test]
fn what_could_lose_something_is_not_coerced() {
    let cases = [
        (json!({ "type": "boolean" }), r#""yes""#),
        (json!({ "type": "boolean" }), r#""True""#),
        (json!({ "type": "boolean" }), "1"),
        (json!({ "type": "boolean" }), r#""1""#),
        (json!({ "type": "integer" }), "5.5"),
        (json!({ "type": "integer" }), r#""5.0""#),
        (json!({ "type": "integer" }), r#"" 5""#),
        (json!({ "type": "integer" }), r#""+5""#),
        (json!({ "type": "integer" }), r#""05""#),
        (json!({ "type": "integer" }), r#""-0""#),
        (json!({ "type": "integer" }), r#""12345678901234567890123""#),
        (json!({ "type": "integer" }), "true"),
        (json!({ "type": "number" }), r#""1e3""#),
        (json!({ "type": "number" }), r#""0.10000000000000000001""#),
        (json!({ "type": "number" }), r#""NaN""#),
        (json!({ "type": "string" }), "[]"),
        (json!({ "type": "string" }), r#"{"a":1}"#),
        (json!({ "type": "array" }), r#""1,2""#),
        (json!({ "type": "array" }), r#""{}""#),
        (json!({ "type": "object" }), r#""[]""#),
        (json!({ "type": "array" }), "1"),
        (json!({ "type": "array", "items": { "type": "string" } }), "[null]"),
        (json!({ "anyOf": [{ "type": "string" }, { "type": "boolean" }] }), "[]"),
        (json!({ "type": "integer", "maximum": 3 }), r#""5""#),
    ];
    for (property, sent) in cases {
        let outcome = checker(of("a", &property)).check(Some(&raw(&format!(r#"{{"a":{sent}}}"#))));
        assert!(outcome.is_err(), "{sent}: {outcome:?}");
    }
}

#[test]
fn a_null_is_removed_only_where_an_optional_property_was_meant() {
    let schema = json!({
        "$defs": { "text": { "type": "string" } },
        "properties": {
            "a": { "$ref": "#/$defs/text" }, "b": { "type": "integer" }, "n": { "type": ["string", "null"] },
            "e": { "enum": ["x", "y"] }, "env": { "type": "object", "additionalProperties": { "type": "string" } }
        },
        "required": ["b"]
    });
    changed(&schema, r#"{"a":null,"b":1,"n":null,"e":null}"#, r#"{"b":1,"n":null}"#);
    refused(&schema, r#"{"b":null}"#, &[("/b", "Required parameter missing: b")]);
    let wrong = [("/env/K", "Invalid type for parameter env.K: expected string")];
    refused(&schema, r#"{"b":1,"env":{"K":null}}"#, &wrong);
}

#[test]
fn what_is_not_touched_keeps_its_bytes() {
    let schema =
        json!({ "properties": { "n": { "type": "integer" }, "page": { "properties": { "at": { "default": 1 } } } } });
    changed(
        &schema,
        r#"{"big":12345678901234567890123, "n":"5", "page": {"x": 1.50, "u":"\u00e9"}}"#,
        r#"{"big":12345678901234567890123,"n":5,"page":{"x":1.50,"u":"\u00e9","at":1}}"#,
    );
}

#[test]
fn of_two_members_with_one_name_only_the_checked_one_is_relayed() {
    let schema = of("o", &json!({ "properties": { "path": { "enum": ["safe"] } } }));
    changed(&schema, r#"{"o":{"path":"evil","path":"safe"}}"#, r#"{"o":{"path":"safe"}}"#);
    let evil = checker(schema.clone()).check(Some(&raw(r#"{"o":{"path":"safe","path":"evil"}}"#)));
    assert!(evil.is_err());
    let text = r#"{"o":"{\"path\":\"evil\",\"path\":\"safe\"}"}"#;
    changed(&of("o", &json!({ "type": "object" })), text, r#"{"o":{"path":"safe"}}"#);
}

#[test]
fn recursive_schemas_are_checked() {
    let schema = json!({
        "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" }, "v": { "type": "integer", "default": 0 } } } },
        "$ref": "#/$defs/node"
    });
    changed(&schema, r#"{"v":1,"next":{"next":{"v":"3"}}}"#, r#"{"v":1,"next":{"next":{"v":3},"v":0}}"#);
    let wrong = [("/next/next/v", "Invalid type for parameter next.next.v: expected integer")];
    refused(&schema, r#"{"next":{"next":{"v":[]}}}"#, &wrong);
}

#[test]
fn arguments_that_cannot_be_read_are_refused() {
    let schema = json!({ "type": "object" });
    let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    refused(&schema, &deep, &[("", "the arguments are nested too deeply")]);
    let large = [("", "the arguments contain a number or a string that cannot be read")];
    refused(&schema, r#"{"a":1e999}"#, &large);
}

#[test]
fn no_schema_makes_a_check_run_away() {
    let doubled = |kind: &str| {
        let mut defs = serde_json::Map::new();
        for n in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
            defs.insert(format!("d{n}"), json!({ kind: [next, next] }));
        }
        defs.insert("d40".into(), json!({ "type": "integer" }));
        json!({ "$defs": defs, "properties": { "a": { "$ref": "#/$defs/d0" } } })
    };
    let deep = (0..60).fold(json!({ "type": "integer" }), |inner, _| json!({ "allOf": [inner] }));
    let patterns: serde_json::Map<_, _> =
        (0..300).map(|n| (format!("p{n}"), json!({ "pattern": "^(a{50}){50}$" }))).collect();
    for schema in [
        doubled("anyOf"),
        doubled("allOf"),
        doubled("oneOf"),
        of("a", &deep),
        json!({ "properties": patterns }),
        json!({ "properties": { "a": { "pattern": "(((a{100}){100}){100}){100}" } } }),
        json!({ "description": "x".repeat(2 << 20) }),
    ] {
        let checker = checker(schema);
        assert_eq!(checker.check(Some(&raw(r#"{"a":"x"}"#))), Ok(CheckOutcome::AsSent));
        assert!(checker.problem().is_some());
    }
}

#[test]
fn no_value_makes_a_check_run_away() {
    let node = json!({ "anyOf": [
        { "type": "object", "properties": { "x": { "$ref": "#" } }, "required": ["x"] },
        { "type": "object", "properties": { "x": { "$ref": "#" } }, "minProperties": 1 }
    ] });
    let deep = format!(r#"{}{{"x":0}}{}"#, r#"{"x":"#.repeat(50), "}".repeat(50));
    let told = "the arguments do not match the tool's schema in too many places to list them; send fewer arguments";
    refused(&node, &deep, &[("", told)]);
    let evil = of("a", &json!({ "type": "string", "pattern": "^(?=(a+)+$)(a+)+$" }));
    let sent = format!(r#"{{"a":"{}b"}}"#, "a".repeat(5000));
    let faults = checker(evil).check(Some(&raw(&sent))).expect_err("refused");
    assert_eq!(faults[0].pointer, "/a");
}

/// Everything that the survey accepts must fit the stack of a worker thread, however deep the arguments.
#[test]
fn the_deepest_of_everything_fits_a_small_stack() {
    let nested = (0..11).fold(json!({ "$ref": "#" }), |inner, _| json!({ "allOf": [inner], "type": "object" }));
    let schema = json!({ "properties": { "x": nested }, "additionalProperties": false });
    let check = move || {
        let checker = checker(schema);
        assert_eq!(checker.find_problem(), None);
        let deep = |core: &str| format!("{}{core}{}", r#"{"x":"#.repeat(62), "}".repeat(62));
        assert_eq!(checker.check(Some(&raw(&deep("{}")))), Ok(CheckOutcome::AsSent));
        assert!(checker.check(Some(&raw(&deep(r#"{"y":1}"#)))).is_err());
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(check).expect("a thread");
    thread.join().expect("no overflow");
}

fn argument() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i32>().prop_map(Into::into),
        any::<bool>().prop_map(Into::into),
        "[a-z0-9 {}\"\\[\\]]{0,8}".prop_map(Into::into),
        Just(Value::Null),
        prop::collection::vec(any::<u8>(), 0..3).prop_map(|items| json!(items)),
        any::<Option<u8>>().prop_map(|n| json!({ "n": n, "s": "t" })),
    ]
}

fn property() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["integer", "number", "string", "boolean", "array", "object", "null"]);
    (kind, any::<Option<u8>>()).prop_map(|(kind, default)| match default {
        Some(default) => json!({ "type": kind, "default": default }),
        None => json!({ "type": kind }),
    })
}

proptest! {
    /// Valid arguments come out unchanged, apart from added defaults.
    #[test]
    fn valid_arguments_are_returned_untouched(
        properties in prop::collection::hash_map("[a-d]", property(), 0..4),
        arguments in prop::collection::hash_map("[a-e]", argument(), 0..5),
    ) {
        let schema = json!({ "type": "object", "properties": properties });
        let sent = Raw::of(&arguments);
        let valid = jsonschema::is_valid(&schema, &sent.value());
        let has_defaults = schema.to_string().contains("default");
        match checker(schema.clone()).check(Some(&sent)) {
            Ok(CheckOutcome::Changed(arguments)) if valid => {
                prop_assert!(has_defaults);
                let object = arguments.object().expect("object");
                for (name, value) in sent.object().expect("object").iter() {
                    prop_assert_eq!(object.get(name), Some(value));
                }
                prop_assert!(jsonschema::is_valid(&schema, &arguments.value()));
            }
            Ok(CheckOutcome::Changed(arguments)) => {
                prop_assert!(jsonschema::is_valid(&schema, &arguments.value()));
            }
            Ok(CheckOutcome::AsSent) => prop_assert!(valid),
            Err(faults) => prop_assert!(!valid && !faults.is_empty()),
        }
    }
}

/// A cyclic reference for the same value adds no constraint, by whichever path.
#[test]
fn references_in_a_circle_end() {
    let circle = |keyword: &str, inner: Value| json!({ "type": "object", keyword: inner });
    let own = || json!({ "$ref": "#" });
    for schema in [
        json!({ "type": "object", "$ref": "#" }),
        json!({ "type": "object", "$dynamicRef": "#" }),
        json!({ "$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#" }),
        json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } }, "$ref": "#/$defs/a" }),
        circle("allOf", json!([own(), own()])),
        circle("anyOf", json!([own(), own()])),
        circle("oneOf", json!([own()])),
        circle("not", own()),
        circle("if", own()),
        json!({ "if": true, "then": own() }),
        json!({ "if": false, "else": own() }),
        json!({ "dependentSchemas": { "a": own() } }),
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "dependencies": { "a": own() } }),
        json!({ "$ref": "#", "unevaluatedProperties": false }),
        json!({ "allOf": [own()], "unevaluatedProperties": false }),
        json!({ "anyOf": [own(), true], "unevaluatedProperties": { "type": "string" } }),
        json!({ "properties": { "a": { "$ref": "#/properties/a" } } }),
        json!({ "properties": { "a": { "$ref": "#/properties/a", "unevaluatedItems": false } } }),
        json!({ "$defs": { "n": { "$ref": "#", "required": ["z"] } }, "$ref": "#/$defs/n" }),
    ] {
        let check = move || {
            let checker = checker(schema);
            for sent in [r#"{"a":"x"}"#, r#"{"a":[1]}"#, "{}", "[]", "7"] {
                let _ = checker.check(Some(&raw(sent)));
            }
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn(check).expect("starts").join().expect("ends");
    }
}
