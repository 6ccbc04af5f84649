//! Tests of conditions and of their syntax errors.

use super::*;

fn bench() -> PlanFixture {
    PlanFixture {
        results: vec![
            (
                "a",
                json!({ "n": 5, "big": 18_446_744_073_709_551_615_u64, "x": 5.0, "state": "open", "list": [1, { "k": 2.0 }],
                          "zero": 0, "empty": "", "no": [], "none": null, "yes": true, "o": {}, "名": "設計" }),
            ),
            ("failed", json!("")),
        ],
    }
}

#[test]
fn conditions_hold_or_do_not() {
    for (text, expected) in [
        ("${a.n}", true),
        ("${a.state}", true),
        ("${a.yes}", true),
        ("${a.list}", true),
        ("${a}", true),
        ("${a.zero}", false),
        ("${a.empty}", false),
        ("${a.no}", false),
        ("${a.none}", false),
        ("${a.o}", false),
        ("${failed?}", false),
        ("true", true),
        ("false", false),
        ("!${a.none}", true),
        ("!!${a.n}", true),
        ("${a.n} == 5", true),
        ("${a.n}==5.0", true),
        ("${a.n} == ${a.x}", true),
        ("${a.n} != 5", false),
        ("${a.n} == \"5\"", false),
        ("${a.n} != \"5\"", true),
        ("${a.n} > 4.5", true),
        ("${a.n} >= 5 ", true),
        ("-1 < ${a.n}", true),
        ("${a.n} <= 4", false),
        ("${a.big} > 18446744073709551614", true),
        ("${a.state} == \"open\"", true),
        ("${a.state} == 'open'", true),
        (r"${a.state} != 'op\'en'", true),
        ("${a.state} < 'opfn'", true),
        ("${a.名} == '設計'", true),
        ("'あ' < 'い'", true),
        ("'$${a}' == '$${a}'", true),
        ("${a.none} == null", true),
        ("${a.none?} > 0", false),
        ("${failed.n?} < 1", false),
        ("${a.yes} == true", true),
        ("${a.list[1]} == ${a.list[-1]}", true),
        ("${a.list[*]} == ${a.list}", true),
        ("${a.zero} || ${a.n} == 5 && ${a.none}", false),
        ("(${a.zero} || ${a.n} == 5) && !${a.none}", true),
        ("${a.n} > 9 || ${a.n} > 8 || ${a.n} > 1", true),
        ("!(${a.n} > 9) && (${a.state} == 'open')", true),
        ("${failed?} && ${failed.n} > 1", false),
        ("${a.n} || ${failed.n} > 1", true),
    ] {
        assert_eq!(bench().condition(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_plain_true_or_false_is_a_condition() {
    let scope = ReferenceScope { result: &|_| None, item: None };
    for constant in [true, false] {
        let condition = bench().last(json!({ "if": constant })).condition.expect("a condition");
        assert_eq!(condition.holds(&scope), Ok(constant));
    }
}

#[test]
fn what_cannot_be_known_is_told() {
    let missing = bench().condition("${a.m} > 0").expect_err("missing");
    assert_eq!(missing.message, "`${a.m}` cannot be resolved: `a` has no `m`.");
    let missing = bench().condition("${a.state} > 0").expect_err("no order");
    assert_eq!(missing.message, "`if` cannot compare a string and a number by order.");
    assert!(bench().condition("${a.list} < ${a.list}").is_err());
}

#[test]
fn conditions_that_cannot_be_read_are_told_with_the_column() {
    let cannot = "a condition is `${a.n} > 0`, `${a.state} == \"open\"`, joined by `&&`, `||`, `!`";
    let no_value = "is not a value: quote strings, and write references as `${task.key}`";
    for (text, column, message) in [
        ("${a.n} = 5", 8, "write `==` instead of `=`".to_owned()),
        ("${a.n} === 5", 8, "write `==` instead of `===`".into()),
        ("${a.名} and ${a.n}", 8, "write `&&` instead of `and`".into()),
        ("${a.n} or 1", 8, "write `||` instead of `or`".into()),
        ("not ${a.n}", 1, "write `!` instead of `not`".into()),
        ("${a.n} & 1", 8, "write `&&` instead of `&`".into()),
        ("${a.n} >", 9, "a reference or a value is expected at the end".into()),
        ("(${a.n}", 8, "`(` without a matching `)`".into()),
        ("${a.n})", 7, format!("unexpected `)`: {cannot}")),
        ("a.n > 0", 1, format!("`a` {no_value}")),
        ("${a.n} > open", 10, format!("`open` {no_value}")),
        ("'${a.state}' == 'open'", 1, "write a reference without quotes: `${a.state} == \"open\"`".into()),
        ("${a.state} == 'open", 15, "a quoted string is not terminated or not valid".into()),
        ("!${a.n} == 5", 9, "`!` is ambiguous here; write `!(… == …)` or `!=`".into()),
        ("(${a.n}) == 5", 10, "an expression in parentheses is true or false and cannot be compared".into()),
        ("${a.n} > true", 8, "`>` compares only numbers and strings; use `==` or `!=`".into()),
        ("${a.n} > 0 && ${a.}", 18, "`.` must be followed by a key".into()),
        ("名 ${a.n}", 1, format!("`名` {no_value}")),
        ("1 < 2 < 3", 7, format!("unexpected `<`: {cannot}")),
        ("${a.n} > 01", 10, format!("`01` {no_value}")),
    ] {
        let faults = bench().plan(json!({ "if": text })).expect_err(text);
        let told = format!("task `last`: `if` is not valid at column {column}: {message}");
        assert_eq!(faults, [("/commands/2/if".to_owned(), told)], "{text}");
    }
}

#[test]
fn no_condition_is_too_deep_to_be_refused() {
    for text in ["(".repeat(100_000), "!".repeat(100_000), "!(".repeat(50_000)] {
        let faults = bench().plan(json!({ "if": text })).expect_err("refused");
        assert!(faults[0].1.ends_with("it is nested too deeply"), "{}", faults[0].1);
    }
    let wide = vec!["${a.n} == 5"; 10_000].join(" && ");
    assert_eq!(bench().condition(&wide), Ok(true));
}
