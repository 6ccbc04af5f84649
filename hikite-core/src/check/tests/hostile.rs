//! Arguments and schemas built to take long: the work must grow linearly or be refused. At these sizes, quadratic work
//! would exceed the time limit of a test.

use serde_json::{Value, json};

use super::{changed, checker, of, raw};
use crate::check::CheckOutcome;
use crate::json::Raw;

const MANY: usize = 12_000;

fn integers() -> Value {
    of("l", &json!({ "type": "array", "items": { "type": "integer" } }))
}

fn list(items: usize) -> String {
    format!(r#"{{"l":[{}]}}"#, vec![r#""1""#; items].join(","))
}

#[test]
fn so_many_values_of_the_wrong_type_are_converted_and_no_more() {
    changed(&integers(), &list(256), &format!(r#"{{"l":[{}]}}"#, vec!["1"; 256].join(",")));
    for items in [257, MANY] {
        let faults = checker(integers()).check(Some(&raw(&list(items)))).expect_err("too many");
        assert_eq!(faults[0].message, "Invalid type for parameter l[0]: expected integer");
        let last = faults.last().expect("one");
        assert!(last.message.starts_with("more than 256 values have the wrong type"), "{last:?}");
        assert_eq!(faults.len(), 21);
    }
}

#[test]
fn longer_lists_than_their_faults_can_be_looked_for_in_are_refused_in_words() {
    let faults = checker(integers()).check(Some(&raw(&list(200_000)))).expect_err("too many");
    assert_eq!(faults.len(), 1);
    assert!(faults[0].message.contains("send fewer arguments"), "{faults:?}");
}

#[test]
fn members_that_stand_twice_are_taken_out_in_one_walk() {
    let names = (0..MANY).map(|n| format!(r#""k{n}":{n}"#)).collect::<Vec<_>>().join(",");
    let sent = format!(r#"{{"deep":[{{{names},"k0":[{{"x":1,"x":2}}]}}],"a":1, "a" : 2}}"#);
    let outcome = checker(json!({ "type": "object" })).check(Some(&raw(&sent))).expect("passes");
    let CheckOutcome::Changed(arguments) = outcome else { panic!("the earlier ones are gone") };
    let value: Value = serde_json::from_str(&arguments.as_str()).expect("JSON");
    assert_eq!(value["deep"][0].as_object().map(serde_json::Map::len), Some(MANY));
    assert_eq!((&value["a"], &value["deep"][0]["k0"]), (&json!(2), &json!([{ "x": 2 }])));
    assert_eq!(arguments.as_str().matches("\"a\"").count(), 1);
    assert_eq!(arguments.as_str().matches("\"x\"").count(), 1);
}

#[test]
fn nulls_that_nobody_meant_are_taken_out_in_one_walk() {
    let properties: serde_json::Map<String, Value> =
        (0..200).map(|n| (format!("p{n}"), json!({ "type": "string" }))).collect();
    let others = (0..MANY).map(|n| format!(r#""o{n}":{n}"#)).collect::<Vec<_>>().join(",");
    let nulls = (0..200).map(|n| format!(r#""p{n}":null"#)).collect::<Vec<_>>().join(",");
    let schema = json!({ "type": "object", "properties": properties });
    changed(&schema, &format!("{{{nulls},{others}}}"), &format!("{{{others}}}"));
}

#[test]
fn a_long_name_above_many_faults_is_neither_kept_nor_told_with_each() {
    let free = json!({ "additionalProperties": { "type": "array", "items": { "type": "integer" } } });
    let name = "n".repeat(1 << 20);
    let sent = format!(r#"{{"{name}":[{}]}}"#, vec![r#""x""#; 10_000].join(","));
    let faults = checker(free.clone()).check(Some(&raw(&sent))).expect_err("refused");
    assert!(faults.iter().all(|fault| fault.pointer.len() + fault.message.len() < 5000), "cut");
    let few = format!(r#"{{"{name}":["x"]}}"#);
    let faults = checker(free).check(Some(&raw(&few))).expect_err("refused");
    assert!(faults.iter().all(|fault| fault.pointer.len() + fault.message.len() < 5000), "cut");
}

#[test]
fn many_unknown_names_against_many_known_ones_are_told_in_part() {
    let properties: serde_json::Map<String, Value> = (0..5000).map(|n| (format!("{n:0>100}"), json!(true))).collect();
    let schema = json!({ "properties": properties, "additionalProperties": false });
    let sent: serde_json::Map<String, Value> = (0..5000).map(|n| (format!("{n:9>101}"), json!(1))).collect();
    let faults = checker(schema).check(Some(&Raw::of(&sent))).expect_err("refused");
    assert_eq!(faults.len(), 20);
}

/// Comparing 400,000 values with 10,000 alternatives each would take 4 billion comparisons.
#[test]
fn more_work_than_any_call_needs_is_refused_before_it_is_done() {
    let options: Vec<Value> = (0..10_000).map(|n| json!({ "n": n })).collect();
    let required: Vec<String> = (0..10_000).map(|n| format!("m{n}")).collect();
    let branches: Vec<Value> = (0..5000).map(|n| json!({ "const": [n] })).collect();
    for items in [json!({ "enum": options }), json!({ "required": required }), json!({ "anyOf": branches })] {
        let schema = of("l", &json!({ "type": "array", "items": items }));
        let sent = format!(r#"{{"l":[{}]}}"#, vec!["{}"; 400_000].join(","));
        let faults = checker(schema).check(Some(&raw(&sent))).expect_err("refused");
        assert!(faults[0].message.contains("too large to be checked against"), "{faults:?}");
    }
    let bulk = format!(r#"{{"l":[{}]}}"#, vec!["1"; 400_000].join(","));
    assert_eq!(checker(integers()).check(Some(&raw(&bulk))), Ok(CheckOutcome::AsSent), "large and simple is fine");
}

#[test]
fn a_text_in_a_text_does_not_lead_deeper_than_arguments_may_be() {
    let node = json!({ "$defs": { "n": { "type": "object", "properties": { "x": { "$ref": "#/$defs/n" } } } },
        "$ref": "#/$defs/n" });
    let deep = |core: &str| format!("{}{core}{}", r#"{"x":"#.repeat(60), "}".repeat(60));
    let text = Value::from(deep("{}")).to_string();
    assert!(checker(node).check(Some(&raw(&deep(&text)))).is_err());
}

#[test]
fn schemas_that_take_long_to_compile_are_broken() {
    let name = "n".repeat(400_000);
    let inner: serde_json::Map<String, Value> = (0..20_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let long = json!({ "properties": { name: { "properties": inner } } });
    let reference = json!({ "$ref": format!("#/$defs/{}", "n".repeat(10_000)) });
    for schema in [long, reference] {
        assert!(checker(schema).find_problem().is_some());
    }
}

/// A text from a bug report, which took 13 s.
#[test]
fn a_long_text_is_not_held_against_a_pattern_that_looks_around() {
    let pattern = "(?=(a+)+$)b";
    let long = "a".repeat(160_000);
    let by_value = of("t", &json!({ "type": "string", "pattern": pattern }));
    let by_name = json!({ "patternProperties": { (pattern): {} } });
    let names = json!({ "propertyNames": { "anyOf": [{ "pattern": pattern }, {}] } });
    for (schema, sent) in [
        (by_value.clone(), json!({ "t": long })),
        (by_name, json!({ (long.as_str()): 1 })),
        (names, json!({ (long.as_str()): 1 })),
        (of("t", &json!({ "type": "array", "items": { "pattern": pattern } })), json!({ "t": vec!["a"; 9000] })),
    ] {
        let checker = checker(schema);
        let faults = checker.check(Some(&Raw::of(&sent))).expect_err("too long");
        assert!(faults[0].message.contains("a pattern with lookaround or backreferences"), "{faults:?}");
        assert!(checker.check_template(&sent, &[]).is_err());
    }
    let faults = checker(by_value).check(Some(&raw(r#"{"t":"aaaa"}"#))).expect_err("no match");
    assert_eq!(faults[0].pointer, "/t");
    let password = of("t", &json!({ "type": "string", "pattern": r"^(?=.*\d)(?=.*[a-z]).{8,}$" }));
    let sent = json!({ "t": format!("1{}", "a".repeat(4000)) });
    assert_eq!(checker(password).check(Some(&Raw::of(&sent))), Ok(CheckOutcome::AsSent));
}
