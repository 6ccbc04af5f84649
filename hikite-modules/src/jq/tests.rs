//! Tests of valid, invalid and endless programs.

use hikite_core::json::Raw;

use super::*;

const MOST: usize = 1 << 20;

fn outcome(program: &str, input: &str) -> Result<String, JqError> {
    let output = JqProgram::compile(program)?.run(input.as_bytes(), MOST)?;
    Raw::parse(output.clone()).expect("every output is JSON");
    Ok(String::from_utf8(output).expect("text"))
}

#[track_caller]
fn gives(program: &str, input: &str, expected: &str) {
    assert_eq!(outcome(program, input).as_deref(), Ok(expected), "{program}");
}

#[track_caller]
fn wrong(program: &str, part: &str) {
    match outcome(program, "null") {
        Err(JqError::Invalid(words)) => assert!(words.contains(part), "{program}: {words}"),
        other => panic!("{program}: {other:?}"),
    }
}

#[track_caller]
fn fails(program: &str, input: &str, part: &str) {
    match outcome(program, input) {
        Err(JqError::Failed(words)) => assert!(words.contains(part), "{program}: {words}"),
        other => panic!("{program}: {other:?}"),
    }
}

#[test]
fn one_output_is_itself_several_are_a_list_and_none_is_null() {
    gives(".a", r#"{"a":{"b":1}}"#, r#"{"b":1}"#);
    gives(".[]", "[1,[2]]", "[1,[2]]");
    gives(".[] | select(. > 9)", "[1,2]", "null");
    gives(".[]", "[[1,2]]", "[1,2]");
}

#[test]
fn the_usual_programs_work() {
    let issues = r#"[{"number":1,"state":"open","labels":[{"name":"bug"},{"name":"急"}]},{"number":2,"state":"closed","labels":[]}]"#;
    gives(
        r#"map(select(.state == "open") | {number, labels: [.labels[].name]})"#,
        issues,
        r#"[{"number":1,"labels":["bug","急"]}]"#,
    );
    gives("group_by(.state) | map({(.[0].state): length}) | add", issues, r#"{"closed":1,"open":1}"#);
    gives(".[0].labels | map(.name) | join(\", \")", issues, r#""bug, 急""#);
    gives(r#".["題名"]"#, r#"{"題名":"設計 📄"}"#, r#""設計 📄""#);
    gives("[.[] | tostring | length] | add / 2", r#"["設計",12]"#, "2");
    gives("to_entries | map(.key)", r#"{"b":1,"a":2}"#, r#"["b","a"]"#);
    gives("keys", r#"{"b":1,"a":2}"#, r#"["a","b"]"#);
    gives(r#"test("^v[0-9]+$")"#, r#""v12""#, "true");
    gives("fromdate | todate", r#""2026-01-16T00:00:00Z""#, r#""2026-01-16T00:00:00Z""#);
    gives("@csv", r#"[1,"a\"b",null,true]"#, r#""1,\"a\"\"b\",,true""#);
    gives("@tsv", r#"["a\tb",1]"#, r#""a\\tb\t1""#);
    gives("[tostream]", r#"{"a":[1]}"#, r#"[[["a",0],1],[["a",0]],[["a"]]]"#);
    gives("walk(if isstring then ascii_upcase else . end)", r#"["a",{"k":"b"}]"#, r#"["A",{"k":"B"}]"#);
    gives("try error(\"x\") catch .", "null", r#""x""#);
    gives(".a?", "3", "null");
    gives("limit(2; repeat(1))", "null", "[1,1]");
}

#[test]
fn numbers_keep_what_they_say() {
    gives(".", "[1.0,1e2,12345678901234567890,0.10,-0]", "[1.0,1e2,12345678901234567890,0.10,0]");
    gives(".[0] / 2", "[4]", "2");
    gives("[nan, infinite, 0.5, -infinite]", "null", "[null,null,0.5,null]");
    gives("1e400", "null", "1e400");
}

#[test]
fn what_json_does_not_have_is_still_given_as_json() {
    gives("{(1 | tostring): 2}", "null", r#"{"1":2}"#);
    gives("[255, 104] | tobytes", "null", "\"\u{fffd}h\"");
    gives("\"\\u0000\\u001f\"", "null", "\"\\u0000\\u001f\"");
}

#[test]
fn a_program_sees_nothing_of_where_it_runs() {
    gives("env", "1", "{}");
    gives("$ENV", "1", "{}");
    gives("$ENV.PATH", "1", "null");
    gives("[inputs]", "1", "[]");
    fails("input", "1", "there is no further input");
    gives("0 | localtime == gmtime", "1", "true");
    wrong(r#"import "a" as a; ."#, "are not supported");
    wrong(r#"include "a"; ."#, "are not supported");
    wrong(r#"import "/etc/passwd" as $x; $x"#, "are not supported");
    fails("halt", "1", "stops nothing");
    fails("halt(3)", "1", "stops nothing");
    fails(r#""gone" | halt_error"#, "1", "gone");
    gives("debug, stderr", "1", "[1,1]");
    wrong("get_search_list", "unknown filter");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    wrong(".[", "line 1, column 3: expected closing bracket, found the end of the program");
    wrong(".a |\n  | .b", "line 2, column 3: expected term, found `|");
    wrong("\"設計\" | lenght", "line 1, column 8: unknown filter `lenght` with 0 arguments");
    wrong("maps(.)", "Did you mean `map`?");
    wrong("$x", "unknown variable `$x`");
    wrong("", "expected term, found the end of the program");
    wrong("\"abc", "expected closing quote");
    fails(".a", "[1]", "cannot index [1] with \"a\"");
    fails(".[]", "3", "cannot use 3 as iterable");
    fails("error({a: 1})", "null", r#"{"a":1}"#);
    fails(".", "{", "byte offset");
    let long = outcome("error(\"x\" * 1000)", "null").expect_err("fails").to_string();
    assert_eq!(long.chars().count(), 301);
}

#[test]
fn the_output_is_bounded() {
    let program = JqProgram::compile("range(1000000)").expect("a program");
    assert_eq!(program.run(b"null", 1000), Err(JqError::TooLong));
    let endless = JqProgram::compile("repeat(\"x\")").expect("a program");
    assert_eq!(endless.run(b"null", 1000), Err(JqError::TooLong));
}
