//! Tests of the violations reported for invalid batches.

use super::*;

#[test]
fn bad_json_is_told_in_the_lines_that_were_sent() {
    let right = r#"{"id":"a","module":"m","tool":"t"}"#;
    let text = format!("{right}\n\n{{\"id\":\"b\" \"module\":\"m\"}}\r\n{{\"id\":\"検索\",,}}\n{right}");
    let faults = read(&json!(text)).expect_err("refused");
    let told: Vec<&str> = faults.iter().map(|(_, message)| message.as_str()).collect();
    assert_eq!(
        told,
        [
            "line 3, column 11: expected `,` or `}`",
            "line 4, column 12: key must be a string",
            "line 5: `a` is also the id of line 1",
        ]
    );
    let places: Vec<&str> = faults.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(places, ["/commands/1", "/commands/2", "/commands/3/id"]);
}

#[test]
fn bad_json_over_several_lines_is_told_once() {
    let list = "[\n  {\"id\": \"a\"},\n  {\"id\": }\n]";
    refused(&json!(list), &[("/commands", "line 3, column 10: expected value")]);
    let object = "{\n  \"id\": \"a\",\n  \"module\": m\n}";
    refused(&json!(object), &[("/commands", "line 3, column 13: expected value")]);
    refused(&json!("{\"id\":\"a\""), &[("/commands", "line 1, column 9: EOF while parsing an object")]);
}

#[test]
fn what_is_no_list_of_tasks_is_refused() {
    let form = "`commands` must be a list of tasks, or a string with one task per line, each a JSON object";
    for commands in [json!({ "id": "a" }), json!(7), json!(null), json!(true)] {
        refused(&commands, &[("/commands", form)]);
    }
    for commands in [json!([]), json!(""), json!(" \n\n"), json!("[]")] {
        refused(&commands, &[("/commands", "there are no tasks")]);
    }
    refused(&json!([7]), &[("/commands/0", "task 1: a task must be a JSON object")]);
    refused(&json!("[]\n[]"), &[("/commands", "line 2, column 1: trailing characters")]);
    refused(
        &json!("\"a\"\n7"),
        &[
            ("/commands/0", "line 1: a task must be a JSON object"),
            ("/commands/1", "line 2: a task must be a JSON object"),
        ],
    );
}

#[test]
fn too_many_tasks_are_counted_and_not_read() {
    let many = |count: usize| json!((0..count).map(|n| task(&format!("t{n}"), json!({}))).collect::<Vec<_>>());
    assert_eq!(plan(&many(TASKS_MAX)).tasks.len(), TASKS_MAX);
    refused(&many(1001), &[("/commands", "the batch has 1001 tasks; the limit is 1000")]);
    let lines = "{}\n".repeat(2000);
    refused(&json!(lines), &[("/commands", "the batch has 2000 tasks; the limit is 1000")]);
    let elements = task("a", json!({ "for_each": vec![0; 1001] }));
    refused(
        &json!([elements]),
        &[("/commands/0/for_each", "task `a`: `for_each` has 1001 elements; the limit is 1000")],
    );
}

#[test]
fn a_wrong_field_is_told_with_its_place_and_what_it_should_be() {
    for (fields, place, message) in [
        (json!({ "modul": "m" }), "/modul", "`modul` is not a field of a task. Did you mean `module`?"),
        (json!({ "depends/on": "m" }), "/depends~1on", "`depends/on` is not a field of a task"),
        (json!({ "params": [] }), "/params", "`params` must be an object"),
        (json!({ "params": "7" }), "/params", "`params` must be an object"),
        (
            json!({ "args": "{\"a\": ${b}}" }),
            "/args",
            "`args` is a string without a JSON object: line 1, column 7: expected value",
        ),
        (
            json!({ "params": {}, "arguments": {} }),
            "/arguments",
            "`arguments` and `params` are the same field; use one of them",
        ),
        (json!({ "after": 1 }), "/after", "`after` must be an id or a list of ids"),
        (json!({ "after": [1] }), "/after", "`after` must be an id or a list of ids"),
        (json!({ "output": "yes" }), "/output", "`output` must be true or false"),
        (json!({ "raw_output": 1 }), "/raw_output", "`raw_output` must be true or false"),
        (
            json!({ "for_each": "all of ${b}" }),
            "/for_each",
            "`for_each` must be a list or a reference such as `${task.items}`",
        ),
        (json!({ "for_each": {} }), "/for_each", "`for_each` must be a list or a reference such as `${task.items}`"),
        (json!({ "if": 1 }), "/if", "`if` must be a condition as a string"),
        (json!({ "select": "" }), "/select", "`select` must be a string that is not empty"),
        (
            json!({ "on_error": "fail-fast" }),
            "/on_error",
            "`on_error` must be `skip`, `continue` or `fail_fast`. Did you mean `fail_fast`?",
        ),
        (
            json!({ "timeout_ms": 0 }),
            "/timeout_ms",
            "`timeout_ms` must be an integer number of milliseconds, at least 1",
        ),
        (
            json!({ "timeout_ms": "5s" }),
            "/timeout_ms",
            "`timeout_ms` must be an integer number of milliseconds, at least 1",
        ),
        (json!({ "account": 5 }), "/account", "`account` must be a string that is not empty"),
        (json!({ "toolKey": "nothing" }), "/toolKey", "`toolKey` must be `module:tool`"),
        (json!({ "toolKey": "m:other" }), "/tool", "`tool` does not match `toolKey`"),
        (json!({ "tool_name": "t" }), "/tool_name", "`tool_name` and `tool` are the same field; use one of them"),
    ] {
        let told = format!("task `a`: {message}");
        refused(&json!([task("a", fields)]), &[(&format!("/commands/0{place}"), &told)]);
    }
}

#[test]
fn what_a_task_must_say_is_missed() {
    let hint = "is missing; or set `toolKey` to `module:tool`";
    refused(
        &json!([{}]),
        &[
            ("/commands/0/id", "task 1: `id` is missing"),
            ("/commands/0/module", &format!("task 1: `module` {hint}")),
            ("/commands/0/tool", &format!("task 1: `tool` {hint}")),
        ],
    );
    refused(&json!("{\"id\":\"a\",\"tool\":\"t\"}"), &[("/commands/0/module", &format!("task `a`: `module` {hint}"))]);
    refused(
        &json!([{ "id": "a", "module": 5, "tool": " " }]),
        &[
            ("/commands/0/module", "task `a`: `module` must be a string that is not empty"),
            ("/commands/0/tool", "task `a`: `tool` must be a string that is not empty"),
        ],
    );
}

#[test]
fn an_id_must_be_one_that_can_be_referred_to() {
    for id in ["a.b", "a[0]", "a}", "a]", "a?", "a{", "a\"", "a'", " a", "a\n"] {
        let message =
            format!("task 1: `id` {} cannot be used in `${{id}}`; use letters, digits, `-` and `_`", json!(id));
        refused(&json!([task(id, json!({}))]), &[("/commands/0/id", &message)]);
    }
    for (id, message) in [
        (json!(5), "task 1: `id` must be a string"),
        (json!(""), "task 1: `id` must not be empty"),
        (json!("x".repeat(101)), "task 1: `id` must have at most 100 characters"),
        (json!("item"), "task 1: `id` must not be `item`, which is reserved for `for_each`"),
    ] {
        refused(&json!([task("a", json!({ "id": id }))]), &[("/commands/0/id", message)]);
    }
    for id in ["a", "a-b_c", "検索", "a b", "1", "$", "é".repeat(100).as_str()] {
        plan(&json!([task(id, json!({})), task("z", json!({ "params": { "v": format!("${{{id}.x}}") } }))]));
    }
}

#[test]
fn an_id_stands_for_one_task() {
    refused(
        &json!([task("a", json!({})), task("b", json!({})), task("a", json!({}))]),
        &[("/commands/2/id", "task 3: `a` is also the id of task 1")],
    );
}

#[test]
fn tasks_that_are_not_there_are_missed_by_every_way_to_name_them() {
    let batch = json!([
        task("search", json!({})),
        task(
            "page",
            json!({
                "after": ["serach", "search"],
                "if": "${serach.n} > 0",
                "for_each": "${quux.items}",
                "params": { "a/b": ["${serach.id} and ${pag}"], "plain": "$${serach}" }
            })
        ),
    ]);
    let literal = "write `$${` for a literal `${`";
    refused(
        &batch,
        &[
            (
                "/commands/1/for_each",
                &format!("task `page`: `${{quux.items}}` refers to no task of this batch; {literal}"),
            ),
            (
                "/commands/1/params/a~1b/0",
                &format!(
                    "task `page`: `${{serach.id}}` refers to no task of this batch; {literal}. Did you mean `search`?"
                ),
            ),
            (
                "/commands/1/params/a~1b/0",
                &format!("task `page`: `${{pag}}` refers to no task of this batch; {literal}. Did you mean `page`?"),
            ),
            (
                "/commands/1/if",
                &format!(
                    "task `page`: `if` is not valid at column 1: `${{serach.n}}` refers to no task of this batch; {literal}. Did you mean `search`?"
                ),
            ),
            (
                "/commands/1/after/0",
                "task `page`: `after` contains `serach`, which is not a task of this batch. Did you mean `search`?",
            ),
        ],
    );
}

#[test]
fn a_task_that_could_not_be_read_is_not_missed_as_well() {
    let text = "{\"id\":\"a\"\n{\"id\":\"b\",\"module\":\"m\",\"tool\":\"t\",\"after\":\"a\",\"params\":{\"x\":\"${a.x}\"},\"if\":\"${a}\"}";
    refused(&json!(text), &[("/commands/0", "line 1, column 9: EOF while parsing an object")]);
}

#[test]
fn item_and_index_are_known_where_there_is_a_list() {
    let there = task("a", json!({ "for_each": [1], "params": { "x": "${item.id}", "n": "no. ${index}" } }));
    plan(&json!([there]));
    let told = |text: &str| format!("task `a`: `{text}` is only available in `params` of a task with `for_each`");
    let outside = task("a", json!({ "params": { "x": "${item.id}", "n": "${index}" } }));
    refused(
        &json!([outside]),
        &[("/commands/0/params/x", &told("${item.id}")), ("/commands/0/params/n", &told("${index}"))],
    );
    let itself = task("a", json!({ "for_each": "${item}" }));
    refused(&json!([itself]), &[("/commands/0/for_each", &told("${item}"))]);
    let part = task("a", json!({ "for_each": [1], "params": { "x": "${index.a}" } }));
    refused(&json!([part]), &[("/commands/0/params/x", "task `a`: `${index.a}` has no members: `index` is a number")]);
}

#[test]
fn a_circle_is_named() {
    let circle = "the tasks form a dependency cycle";
    refused(&json!([task("a", json!({ "after": "a" }))]), &[("/commands/0/after", &format!("{circle}: a → a"))]);
    let batch = json!([
        task("x", json!({ "after": "c" })),
        task("a", json!({ "params": { "v": "${b.id}" } })),
        task("b", json!({ "if": "${c.n} > 0" })),
        task("c", json!({ "for_each": "${a}" })),
        task("d", json!({ "after": ["e", "x"] })),
        task("e", json!({ "after": "d" })),
        task("free", json!({})),
    ]);
    refused(
        &batch,
        &[
            ("/commands/1/after", &format!("{circle}: a → b → c → a")),
            ("/commands/4/after", &format!("{circle}: d → e → d")),
        ],
    );
    let long: Vec<Value> =
        (0..500).map(|n| task(&format!("t{n}"), json!({ "after": format!("t{}", (n + 1) % 500) }))).collect();
    let faults = read(&json!(long)).expect_err("a circle");
    assert_eq!(faults.len(), 1);
    assert!(faults[0].1.ends_with("t10 → t11 → … (488 more) → t0"), "{}", faults[0].1);
}

#[test]
fn faults_are_counted_where_there_are_too_many() {
    let wrong: Vec<Value> = (0..100).map(|n| task(&format!("t{n}"), json!({ "after": "none" }))).collect();
    let faults = read(&json!(wrong)).expect_err("refused");
    assert_eq!(faults.len(), 21);
    assert_eq!(faults[20].1, "and 80 more");
}

#[test]
fn values_that_cannot_be_read_are_refused() {
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    for params in [format!(r#"{{"a":{deep}}}"#), r#"{"a":1e999}"#.into(), r#"{"a":"\ud800"}"#.into()] {
        let text = format!(r#"[{{"id":"a","module":"m","tool":"t","params":{params}}}]"#);
        let faults = Plan::read(&Raw::parse(text).expect("JSON"), OnError::Skip, 1).expect_err("refused");
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].pointer, "/commands/0");
    }
}
