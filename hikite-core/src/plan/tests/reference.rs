//! Tests of references: types, interpolation, lists, and unresolved ones.

use super::*;

fn bench() -> PlanFixture {
    PlanFixture {
        results: vec![
            (
                "search",
                json!({
                    "results": [
                        { "id": "abc", "n": 1, "tags": [{ "名": "x" }, { "名": "y" }], "題 名": "設計" },
                        { "id": "def", "n": 2.5, "tags": [], "o": { "a": null } },
                    ],
                    "more": false, "none": null, "a.b": { "c}d": "odd" }, "it's": 1, "": "empty", "0": "zero"
                }),
            ),
            ("grid", json!([[[1, 2], [3]], [[4]], []])),
            ("text", json!("plain ${search.results} $${x}")),
            ("検索", json!({ "件数": 3 })),
            ("failed", json!("")),
        ],
    }
}

#[track_caller]
fn gives(template: Value, expected: Value) {
    let told = template.to_string();
    assert_eq!(bench().params(of("v", template)), Ok(of("v", expected)), "{told}");
}

#[track_caller]
fn misses(text: &str, message: &str, hint: &str) {
    let missing = bench().params(json!({ "v": text })).expect_err("missing");
    assert_eq!((missing.message.as_str(), missing.hint.as_str()), (message, hint));
}

#[test]
fn a_reference_alone_keeps_its_type() {
    for (text, expected) in [
        ("${search.results[0].id}", json!("abc")),
        ("${search.results[0].n}", json!(1)),
        ("${search.results[1].n}", json!(2.5)),
        ("${search.more}", json!(false)),
        ("${search.none}", json!(null)),
        ("${search.results[1].o}", json!({ "a": null })),
        ("${search.results[-1].id}", json!("def")),
        ("${search.results[-2].id}", json!("abc")),
        ("${search[\"a.b\"][\"c}d\"]}", json!("odd")),
        ("${search['a.b']['c}d']}", json!("odd")),
        (r#"${search["it's"]}"#, json!(1)),
        (r"${search['it\'s']}", json!(1)),
        (r#"${search["\u0061.b"]["c}d"]}"#, json!("odd")),
        ("${search[\"\"]}", json!("empty")),
        ("${search.0}", json!("zero")),
        ("${search.results.0.id}", json!("abc")),
        ("${search.results[0].題 名}", json!("設計")),
        ("${検索.件数}", json!(3)),
        ("${ search.results[ 0 ].id }", json!("abc")),
        ("${検索}", json!({ "件数": 3 })),
        ("${grid[0][0][1]}", json!(2)),
    ] {
        gives(json!(text), expected);
    }
}

#[test]
fn a_reference_inside_a_text_becomes_part_of_it() {
    for (text, expected) in [
        ("id ${search.results[0].id}.", "id abc."),
        (" ${検索.件数}", " 3"),
        ("${search.results[0].id}${search.results[1].id}", "abcdef"),
        ("${search.more}/${search.none}/${search.results[1].n}", "false/null/2.5"),
        ("o=${search.results[1].o}", r#"o={"a":null}"#),
        ("${grid} 設計", "[[[1,2],[3]],[[4]],[]] 設計"),
        ("$${search} ${検索.件数} $$${x} $", "${search} 3 $${x} $"),
    ] {
        gives(json!(text), json!(expected));
    }
}

#[test]
fn what_is_no_reference_stays() {
    for text in ["", "$", "{}", "$ {a}", "a$b", "}", "100$"] {
        gives(json!(text), json!(text));
    }
    gives(json!("$${HOME}/x"), json!("${HOME}/x"));
    gives(json!({ "${search}": ["$${a}", 1, null] }), json!({ "${search}": ["${a}", 1, null] }));
}

#[test]
fn results_are_not_looked_through_again() {
    gives(json!("${text}"), json!("plain ${search.results} $${x}"));
    gives(json!("<${text}>"), json!("<plain ${search.results} $${x}>"));
}

#[test]
fn all_elements_are_a_list() {
    for (text, expected) in [
        ("${search.results[*].id}", json!(["abc", "def"])),
        ("${search.results[*].tags}", json!([[{ "名": "x" }, { "名": "y" }], []])),
        ("${search.results[*].tags[*].名}", json!(["x", "y"])),
        ("${grid[*]}", json!([[[1, 2], [3]], [[4]], []])),
        ("${grid[*][*]}", json!([[1, 2], [3], [4]])),
        ("${grid[*][*][*]}", json!([1, 2, 3, 4])),
        ("${grid[*][*][0]}", json!([1, 3, 4])),
        ("${grid[2][*]}", json!([])),
        ("${search.results[*].o?}", json!([null, { "a": null }])),
        ("${search.results[*].o.a?}", json!([null, null])),
        ("${grid[*][0]?}", json!([[1, 2], [4], null])),
        ("${search.nothing[*].x?}", json!(null)),
    ] {
        gives(json!(text), expected);
    }
    gives(json!("ids: ${search.results[*].id}"), json!(r#"ids: ["abc","def"]"#));
}

#[test]
fn what_may_be_missing_is_null() {
    for text in ["${search.quux?}", "${search.results[9].id?}", "${search.more.x?}", "${failed?}", "${failed.a?}"] {
        gives(json!(text), json!(null));
    }
    gives(json!("${search.results[0].id?}"), json!("abc"));
    gives(json!("<${failed.x? }>"), json!("<null>"));
}

#[test]
fn deep_places_are_filled() {
    let deep = |core: Value| {
        (0..60).fold(core, |inner, n| if n % 2 == 0 { json!([0, inner]) } else { json!({ "a/~": inner }) })
    };
    gives(deep(json!("${検索.件数}")), deep(json!(3)));
    let last = bench().last(json!({ "params": { "a/~": [0, "${検索}", { "": "x ${検索}" }] } }));
    assert_eq!(last.params.as_written().1, ["/a~1~0/1", "/a~1~0/2/"]);
    assert_eq!(last.after, [3]);
}

#[test]
fn a_reference_is_waited_for() {
    let last = bench().last(json!({
        "params": { "a": "${検索}", "b": ["x ${grid[0]} ${search}", "$${text}"] },
        "after": "failed", "for_each": "${grid}", "if": "${text} == 'x'"
    }));
    assert_eq!(last.after, [0, 1, 2, 3, 4]);
}

#[test]
fn an_element_and_its_place_are_filled_in() {
    let last = bench().last(json!({
        "for_each": "${search.results}",
        "params": { "id": "${item.id}", "all": "${item}", "n": "${index}", "text": "no. ${index}: ${item.n} of ${検索.件数}", "maybe": "${item.o.a?}" }
    }));
    let bench = bench();
    let scope = ReferenceScope { result: &|place| bench.result(place), item: None };
    let found = last.for_each.expect("a list").resolve(&scope).expect("found");
    let item = &found[1];
    let filled = last.params.resolve(&ReferenceScope { item: Some((item, 1)), ..scope });
    let expected = json!({ "id": "def", "all": item, "n": 1, "text": "no. 1: 2.5 of 3", "maybe": null });
    assert_eq!(filled, Ok(expected));
}

#[test]
fn a_reference_that_leads_nowhere_says_how_far_it_came_and_what_there_is() {
    let or_null = |hint: &str, text: &str| format!("{hint} Write `{text}` if it may be missing.");
    let found = "It has `results`, `more`, `none`, `a.b`, `it's`, ``, `0`.";
    misses(
        "${search.result[0].id}",
        "`${search.result[0].id}` cannot be resolved: `search` has no `result`.",
        &or_null(&format!("Did you mean `results`? {found}"), "${search.result[0].id?}"),
    );
    misses(
        "see ${search.quux}",
        "`${search.quux}` cannot be resolved: `search` has no `quux`.",
        &or_null(found, "${search.quux?}"),
    );
    misses(
        "${search.results[2].id}",
        "`${search.results[2].id}` cannot be resolved: `search.results` is a list of 2.",
        &or_null("The last element is `[1]`.", "${search.results[2].id?}"),
    );
    misses(
        "${grid[2][0]}",
        "`${grid[2][0]}` cannot be resolved: `grid[2]` is an empty list.",
        &or_null("It has no elements.", "${grid[2][0]?}"),
    );
    misses(
        "${search.results.id}",
        "`${search.results.id}` cannot be resolved: `search.results` is a list of 2, not an object.",
        &or_null("Write `[0]` for the first element, `[-1]` for the last, `[*]` for all.", "${search.results.id?}"),
    );
    misses(
        "${search.results[*].o.a}",
        "`${search.results[*].o.a}` cannot be resolved: `search.results[0]` has no `o`.",
        &or_null("Did you mean `n`? It has `id`, `n`, `tags`, `題 名`.", "${search.results[*].o.a?}"),
    );
    misses(
        "${検索[0]}",
        "`${検索[0]}` cannot be resolved: `検索` is an object, not a list.",
        &or_null("It has `件数`.", "${検索[0]?}"),
    );
    misses(
        "${search[\"a.b\"][\"c}d\"].x}",
        "`${search[\"a.b\"][\"c}d\"].x}` cannot be resolved: `search[\"a.b\"][\"c}d\"]` is a string, not an object.",
        &or_null("It has no members.", "${search[\"a.b\"][\"c}d\"].x?}"),
    );
    misses(
        "${search.none[*]}",
        "`${search.none[*]}` cannot be resolved: `search.none` is null, not a list.",
        &or_null("It has no members.", "${search.none[*]?}"),
    );
    misses(
        "${failed.id}",
        "`${failed.id}` is missing: `failed` has no result.",
        &or_null("It failed or did not run.", "${failed.id?}"),
    );
}

#[test]
fn what_is_told_of_a_large_result_stays_small() {
    let members: serde_json::Map<String, Value> =
        (0..10_000).map(|n| (format!("{n}{}", "k".repeat(n % 300)), json!("secret"))).collect();
    let bench = PlanFixture { results: vec![("big", json!(members))] };
    let missing = bench.params(json!({ "v": format!("${{big.{}}}", "k".repeat(5000)) })).expect_err("missing");
    assert!(missing.hint.contains(" and 9980 more"), "{}", missing.hint);
    assert!(missing.hint.len() + missing.message.len() < 5000);
    assert!(!missing.hint.contains("secret"));
}

#[test]
fn what_references_bring_in_is_bounded() {
    let bench = PlanFixture { results: vec![("big", json!(vec!["x".repeat(1000); 1000]))] };
    assert!(bench.params(json!({ "v": vec!["${big}"; 10] })).is_ok());
    let missing = bench.params(json!({ "v": vec!["${big}"; 100] })).expect_err("too much");
    assert_eq!(missing.message, "The references insert more than 16777216 bytes.");
    assert!(bench.params(json!({ "v": "${big} ".repeat(100) })).is_err());
}

#[test]
fn a_reference_that_is_written_wrong_is_told() {
    let literal = "write `$${` for a literal `${`";
    let cannot = "a reference is `${task}`, optionally with `.key`, `[\"key\"]`, `[0]`, `[-1]` or `[*]` after the task";
    for (text, message) in [
        ("${", format!("`${{` without a matching `}}`; {literal}")),
        ("${search.results", format!("`${{` without a matching `}}`; {literal}")),
        ("echo ${}", format!("`${{}}` names no task; {literal}")),
        ("${search.}", "`.` must be followed by a key".into()),
        ("${search..a}", "`.` must be followed by a key".into()),
        ("${search.[0]}", "`.` must be followed by a key".into()),
        ("${search[]}", "`[` must be followed by an index or a key: `[0]`, `[-1]`, `[*]` or `[\"key\"]`".into()),
        ("${search[id]}", "`[id]` is not a list index; write `[\"key\"]` for a key".into()),
        ("${search[1.5]}", "`[` without a matching `]`".into()),
        ("${search[0}", "`[` without a matching `]`".into()),
        ("${search[\"a}", "a quoted key is not terminated".into()),
        ("${search[\"a\"x]}", "`[` without a matching `]`".into()),
        ("${search?.a}", "`?` is only allowed at the end of a reference".into()),
        ("${search.${text}}", format!("unexpected `{{`: {cannot}")),
        ("${.a}", format!("unexpected `}}`: {cannot}")),
        ("${search]}", format!("unexpected `]`: {cannot}")),
    ] {
        let faults = bench().plan(json!({ "params": { "v": text } })).expect_err(text);
        assert_eq!(faults, [("/commands/5/params/v".to_owned(), format!("task `last`: {message}"))], "{text}");
    }
}
