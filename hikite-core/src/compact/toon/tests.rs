//! Tests of the encoder: the cases of the specification, round trips through a decoder, and size limits.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};
use toon_format::{DecodeOptions, Indent, decode};

use super::*;

/// Number of cases in the specification.
const CASES: usize = 160;

#[test]
fn every_case_of_the_specification_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hikite-testkit/fixtures/toon/encode");
    let mut ran = 0;
    for entry in std::fs::read_dir(folder).expect("the fixtures") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a fixture");
        let file: Value = serde_json::from_str(&text).expect("JSON");
        for case in file["tests"].as_array().expect("cases") {
            let options = options(&case["options"]);
            assert_eq!(encode_with(&case["input"], options), case["expected"], "{}", case["name"]);
            ran += 1;
        }
    }
    assert_eq!(ran, CASES);
}

fn options(given: &Value) -> ToonOptions {
    let delimiter = match given["delimiter"].as_str() {
        None | Some(",") => Delimiter::Comma,
        Some("\t") => Delimiter::Tab,
        Some("|") => Delimiter::Pipe,
        Some(other) => panic!("no delimiter: {other}"),
    };
    let indent = given["indentSize"].as_u64().map_or(2, |indent| indent.try_into().expect("small"));
    ToonOptions { delimiter, indent }
}

#[track_caller]
fn check(json: &str, expected: &str) {
    let value: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(encode(&value), expected);
    assert!(same(&read(expected, ToonOptions::default()), &value), "{json}");
}

#[test]
fn numbers_keep_their_value_in_the_fewest_digits() {
    check("18446744073709551615", "18446744073709551615");
    check("-9223372036854775808", "-9223372036854775808");
    check("[0,9,10,99,100,1234567890]", "[6]: 0,9,10,99,100,1234567890");
    check("[-0.0,0e5,1.0,-1.50,1e2]", "[5]: 0,0,1,-1.5,100");
    check(
        "[1e15,1.5e15,1e16,123456789012345678e3]",
        "[4]: 1000000000000000,1500000000000000,10000000000000000,123456789012345680000",
    );
    check("[0.0001,0.00001,0.000001,0.0000015]", "[4]: 0.0001,0.00001,0.000001,0.0000015");
    check("[1e21,-1.5e300,9.5e-7,-1e-7,5e-324]", "[5]: 1e+21,-1.5e+300,9.5e-7,-1e-7,5e-324");
}

#[test]
fn of_two_numbers_that_are_equally_near_the_even_one_is_written() {
    check("1136715703178197.25", "1136715703178197.2");
    check("8.0000152587890625", "8.000015258789062");
    check("8.0000457763671875", "8.000045776367188");
}

#[test]
fn an_exponent_is_used_only_where_it_is_allowed() {
    for exponent in -30..30 {
        let value: Value = serde_json::from_str(&format!("-1.2345678901234567e{exponent}")).expect("JSON");
        let text = encode(&value);
        assert_eq!(text.contains('e'), !(-6..21).contains(&exponent), "{text}");
        assert_eq!(text.parse(), Ok(value.as_f64().expect("a float")), "{text}");
    }
}

#[test]
fn depth_is_no_matter() {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(60), close.repeat(60));
    for json in [deep("[[", "]]"), deep("{\"a\":[", "]}"), deep("{\"a\":{\"b\":0,\"c\":", "}}"), deep("[{},", "]")] {
        let value: Value = serde_json::from_str(&json).expect("JSON");
        assert!(same(&read(&encode(&value), ToonOptions::default()), &value), "{json}");
    }
}

#[test]
fn text_is_bare_unless_it_would_be_misread() {
    check(r#"["東京","a b","+","1.","1e","e1","v1.2",".5","1.2.3"]"#, "[9]: 東京,a b,+,1.,1e,e1,v1.2,.5,1.2.3");
    check(r#"["1e5","+1.5E-3","007","0x1f","nullable","true"]"#, r#"[6]: "1e5","+1.5E-3","007",0x1f,nullable,"true""#);
    check(r#""0123456789abcde\u0001""#, r#""0123456789abcde\u0001""#);
    check(r#"["0123456789abcdef:","0123456789abcdefg"]"#, r#"[2]: "0123456789abcdef:",0123456789abcdefg"#);
    check(r#"{"氏名":"山田 太郎","a|b":"x|y"}"#, "\"氏名\": 山田 太郎\n\"a|b\": x|y");
}

#[test]
fn a_table_that_turns_out_to_be_none_leaves_no_trace() {
    check(
        r#"{"r":[{"a":1,"b":{"c":2}},{"a":1,"b":{"d":2}}]}"#,
        "r[2]:\n  - a: 1\n    b:\n      c: 2\n  - a: 1\n    b:\n      d: 2",
    );
    check(r#"{"r":[{"a":1},{"b":2}]}"#, "r[2]:\n  - a: 1\n  - b: 2");
    check(r#"{"x":{"a":1},"y":{"a":[]}}"#, "x:\n  a: 1\ny:\n  a: []");
    check(r#"[{"a":{"b":1,"c":2}},{"a":{"c":3,"b":4}}]"#, "[2]{a{b,c}}:\n  1,2\n  4,3");
}

#[test]
fn a_document_is_written_behind_what_is_there() {
    let mut out = String::from("before\n");
    encode_into(&json!({"a": {"b": 1}}), ToonOptions::default(), &mut out);
    assert_eq!(out, "before\na:\n  b: 1");
}

#[test]
fn it_stops_where_it_gets_too_long() {
    let rows: Vec<Value> = (0..1000).map(|id| json!({"id": id, "name": "山田"})).collect();
    let table = json!({ "rows": rows });
    let length = encode(&table).len();
    assert_eq!(encode_within(&table, length), Some(encode(&table)));
    assert_eq!(encode_within(&table, length - 1), None);
    // The text exceeds the limit as a table, but it is not a table.
    let none = json!({"x": {"h": 1}, "y": {"h": []}});
    assert_eq!(encode_within(&none, encode(&none).len()).as_deref(), Some("x:\n  h: 1\ny:\n  h: []"));
}

/// Decodes a text.
#[track_caller]
fn read(text: &str, options: ToonOptions) -> Value {
    let indent = Indent::Spaces(options.indent);
    match decode(text, &DecodeOptions::new().with_strict(true).with_indent(indent)) {
        Ok(value) => value,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// Returns `true` if the values are equal, ignoring `1` versus `1.0` and the member order, which tables do not
/// preserve.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

/// Generates texts close to the syntax of the format.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,20}",
        "[-+#.,:|\"\\\\ \t\n\\[\\]{}0-9eEa-c]{0,5}",
        "[-+]?[0-9]{1,3}(\\.[0-9]{0,2})?([eE][-+]?[0-9]{0,2})?",
        "[ぁ-ん一-十ァ-ン、。：，＃ー]{1,12}",
        prop::sample::select(&["true", "false", "null", "-", "- a", "[2]: a", "\u{feff}x", "#", "a: b"][..])
            .prop_map(str::to_owned),
        any::<String>(),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-d]", 2 => "[a-z_.][a-z0-9_.]{0,6}", 1 => text()]
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        (-1000_i64..1000).prop_map(Number::from),
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        (-1e6..1e6).prop_filter_map("finite", Number::from_f64),
        any::<f64>().prop_filter_map("finite", Number::from_f64),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number().prop_map(Value::Number),
        text().prop_map(Value::from),
    ]
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec((name(), inner), 0..4).prop_map(|members| Map::from_iter(members).into())
}

/// Generates mostly uniform rows: equal keys in some order, with an occasional value that does not fit.
fn rows() -> impl Strategy<Value = Vec<Value>> {
    let cell = prop_oneof![
        12 => scalar(),
        3 => (scalar(), scalar()).prop_map(|(a, b)| json!({"p": a, "q": b})),
        1 => Just(json!({})),
        1 => Just(json!([1])),
    ];
    let row = (prop::collection::vec(cell, 3), any::<bool>(), 0..30).prop_map(|(cells, turned, odd)| {
        let names = ["id", "氏名", if odd == 0 { "other" } else { "note" }];
        let mut members: Vec<(String, Value)> = names.iter().map(|name| (*name).to_owned()).zip(cells).collect();
        if turned {
            members.reverse();
        }
        Map::from_iter(members).into()
    });
    let grouped = (prop::collection::vec((scalar(), scalar(), scalar()), 1..5))
        .prop_map(|rows| rows.into_iter().map(|(a, b, c)| json!({"a": a, "g": {"b": b, "h": {"c": c}}})).collect());
    prop_oneof![prop::collection::vec(row, 1..6), grouped]
}

fn document() -> impl Strategy<Value = Value> {
    let table = rows().prop_map(Value::from);
    let keyed = (rows(), prop::collection::vec(name(), 6))
        .prop_map(|(rows, names)| names.into_iter().zip(rows).collect::<Map<_, _>>().into());
    let leaf = prop_oneof![6 => scalar(), 1 => table, 1 => keyed];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from), object(inner)]
    })
}

fn any_options() -> impl Strategy<Value = ToonOptions> {
    let delimiter = prop::sample::select(&[Delimiter::Comma, Delimiter::Tab, Delimiter::Pipe][..]);
    (delimiter, 1_usize..5).prop_map(|(delimiter, indent)| ToonOptions { delimiter, indent })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_encoded_decodes_to_the_same(value in document(), options in any_options()) {
        let text = encode_with(&value, options);
        let back = read(&text, options);
        prop_assert!(same(&back, &value), "{text}\n{back}");
    }

    #[test]
    fn a_limit_changes_nothing_but_whether(value in document(), part in 0.0..1.2) {
        let text = encode(&value);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "some length")]
        let limit = (text.len() as f64 * part) as usize;
        prop_assert_eq!(encode_within(&value, limit), (text.len() <= limit).then_some(text));
    }
}
