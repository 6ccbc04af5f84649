//! Tests of permission entries and of the errors for invalid ones.

use serde_json::json;

use super::*;

fn read(form: &str) -> Permissions {
    Permissions::read(&Raw::parse(form.to_owned()).expect("valid JSON")).expect("no faults")
}

/// Checks each `(key, risk, allowed)` case.
#[track_caller]
fn check(form: &str, cases: &[(&str, Risk, bool)]) {
    let permissions = read(form);
    for (key, risk, expected) in cases {
        let (module, tool) = key.split_once(':').expect("a key");
        let allowed = permissions.allows(&ToolKey::new(module, tool), *risk);
        assert_eq!(allowed, *expected, "{form} on {key} ({})", risk.name());
    }
}

#[test]
fn without_a_list_everything_is_allowed_and_with_an_empty_one_nothing() {
    for form in ["null", "{}", r#"{"allow":null}"#, r#"{"deny":[]}"#] {
        check(form, &[("git:push", Risk::Destructive, true)]);
        assert!(read(form).is_unrestricted() && read(form).allows_module("git"));
    }
    check(r#"{"allow":[]}"#, &[("git:status", Risk::Read, false)]);
    assert!(!read(r#"{"allow":[]}"#).allows_module("git") && !read(r#"{"allow":[]}"#).may_reach("git"));
    assert!(!nothing().may_reach("git"));
}

#[test]
fn an_entry_names_a_module_a_tool_a_pattern_or_a_risk() {
    for whole in [r#""git""#, r#""git:*""#, r#"{"module":"git"}"#] {
        check(
            &format!(r#"{{"allow":[{whole}]}}"#),
            &[("git:push", Risk::Write, true), ("github:push", Risk::Write, false), ("it:git", Risk::Read, false)],
        );
    }
    for one in [r#""git:push""#, r#"{"tool":"git:push"}"#, r#"{"module":"git","tool":"push"}"#] {
        check(
            &format!(r#"{{"allow":[{one}]}}"#),
            &[("git:push", Risk::Write, true), ("git:push_all", Risk::Write, false), ("hg:push", Risk::Write, false)],
        );
    }
    check(
        r#"{"deny":["*:delete_*","git*:force","/^k8s:.*secret/",{"pattern":"aws:{run,stop}*"}]}"#,
        &[
            ("files:delete_all", Risk::Read, false),
            ("files:undelete_all", Risk::Read, true),
            ("gitlab:force", Risk::Read, false),
            ("gitlab:forced", Risk::Read, true),
            ("k8s:get_secrets", Risk::Read, false),
            ("k9s:get_secrets", Risk::Read, true),
            ("aws:stop_it", Risk::Read, false),
            ("aws:start_it", Risk::Read, true),
        ],
    );
    for reading in [r#""risk:read""#, r#"{"risk":"read"}"#] {
        check(
            &format!(r#"{{"allow":[{reading}]}}"#),
            &[("a:b", Risk::Read, true), ("a:b", Risk::Write, false), ("a:b", Risk::Destructive, false)],
        );
    }
    check(r#"{"allow":[{"tool":"*_issue"}]}"#, &[("a:get_issue", Risk::Read, true), ("a:issue", Risk::Read, false)]);
}

#[test]
fn all_that_one_entry_says_must_hold() {
    check(
        r#"{"allow":[{"module":"git","risk":"read"},{"pattern":"/status/","risk":"write"}]}"#,
        &[
            ("git:log", Risk::Read, true),
            ("git:log", Risk::Write, false),
            ("k8s:status", Risk::Write, true),
            ("k8s:status", Risk::Read, false),
        ],
    );
}

#[test]
fn a_denial_comes_before_an_allowance() {
    check(
        r#"{"allow":["git:push"],"deny":["risk:destructive"]}"#,
        &[("git:push", Risk::Write, true), ("git:push", Risk::Destructive, false)],
    );
    check(r#"{"allow":["git:push"],"deny":["git"]}"#, &[("git:push", Risk::Read, false)]);
}

#[test]
fn each_tool_may_have_its_own_switch() {
    check(
        r#"{"tools":{"git:push":false,"git:log":true}}"#,
        &[("git:push", Risk::Read, false), ("git:log", Risk::Read, true), ("hg:log", Risk::Read, true)],
    );
    check(
        r#"{"allow":["hg"],"tools":{"git:log":true}}"#,
        &[("hg:log", Risk::Read, true), ("git:log", Risk::Read, true), ("git:push", Risk::Read, false)],
    );
}

#[test]
fn what_a_module_offers_beside_its_tools_goes_with_the_whole_of_it() {
    let open = |form: &str| read(form).allows_module("git");
    for form in [r#"["git"]"#, r#"["*"]"#, r#"["*:*"]"#, r#"["risk:read"]"#, r#"["/^git:/"]"#] {
        assert!(open(&format!(r#"{{"allow":{form}}}"#)), "{form}");
        assert!(!open(&format!(r#"{{"deny":{form}}}"#)), "{form}");
    }
    for form in [r#"["hg"]"#, r#"["git:get_*"]"#, r#"["*:get_*"]"#, r#"["risk:write"]"#, r#"["/get/"]"#] {
        assert!(!open(&format!(r#"{{"allow":{form}}}"#)), "{form}");
        assert!(open(&format!(r#"{{"deny":{form}}}"#)), "{form}");
    }
}

#[test]
fn a_module_without_a_list_is_reached_if_something_in_it_could_be_allowed() {
    let reached = |form: &str| read(form).may_reach("git");
    for form in [
        r#"{"allow":["git:get_*"]}"#,
        r#"{"allow":["*:get_*"]}"#,
        r#"{"allow":["risk:read"]}"#,
        r#"{"deny":["git:push"]}"#,
        r#"{"deny":["risk:read"]}"#,
    ] {
        assert!(reached(form), "{form}");
    }
    for form in [
        r#"{"allow":["hg:get_*"]}"#,
        r#"{"allow":["git:get"],"deny":["git"]}"#,
        r#"{"deny":["*"]}"#,
        r#"{"deny":["/^git:/"]}"#,
    ] {
        assert!(!reached(form), "{form}");
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let form = r#"{"alow":[],"allow":["risk:reed","/(/",7,{},{"modul":"a"},{"risk":1},""],"deny":"git","tools":{"push":false,"git:push":0}}"#;
    let faults = Permissions::read(&Raw::parse(form.to_owned()).expect("valid")).expect_err("faults");
    let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    assert_eq!(
        pointers,
        [
            "/alow",
            "/allow/0",
            "/allow/1",
            "/allow/2",
            "/allow/3",
            "/allow/4/modul",
            "/allow/5/risk",
            "/allow/6",
            "/deny",
            "/tools/push",
            "/tools/git:push"
        ]
    );
    let told = |at: usize, words: &str| assert!(faults[at].message.contains(words), "{}", faults[at].message);
    told(0, "Did you mean `allow`?");
    told(1, "Did you mean `read`?");
    told(2, "not a valid regular expression");
    told(5, "Did you mean `module`?");
    told(9, "`module:tool`");
    assert!(Permissions::read(&Raw::parse("[]").expect("valid")).is_err());
}

#[test]
fn the_form_is_kept_as_it_was_written() {
    let form = r#"{"deny": ["git:push"], "tools": {"a:b": false}}"#;
    assert_eq!(read(form).form().as_str(), form);
    assert_eq!(Permissions::default().form().as_str(), "{}");
}

#[test]
fn together_everything_must_allow_and_one_account_for_each_module() {
    let of = |form: serde_json::Value| Arc::new(Permissions::read(&Raw::of(&form)).expect("permissions"));
    let reader = of(json!({ "deny": ["risk:write", "risk:destructive"] }));
    let narrow = of(json!({ "allow": ["notion:search", "github:*"] }));
    let key = |tool: &str| ToolKey::new("notion", tool);
    let both = Permissions::intersection([Arc::clone(&reader), Arc::clone(&narrow)], AccountPermissions::new());
    assert!(both.allows(&key("search"), Risk::Read) && !both.allows(&key("search"), Risk::Write));
    assert!(!both.allows(&key("get_page"), Risk::Read) && !both.is_unrestricted());
    assert!(both.may_reach("github") && !both.may_reach("jira"));
    let accounts = |all: &[&Arc<Permissions>]| {
        AccountPermissions::from([(Arc::from("notion"), all.iter().map(|one| Arc::clone(one)).collect())])
    };
    let served = Permissions::intersection([], accounts(&[&reader, &narrow]));
    assert!(served.allows(&key("get_page"), Risk::Read), "the first account may");
    assert!(served.allows(&key("search"), Risk::Destructive), "the second account may");
    assert!(!served.allows(&key("delete_page"), Risk::Destructive), "neither may");
    assert!(served.allows(&ToolKey::new("github", "x"), Risk::Destructive), "no account serves it");
    assert!(Permissions::intersection([], accounts(&[&reader, &of(json!({}))])).is_unrestricted());
    assert!(Permissions::intersection([of(json!({}))], AccountPermissions::new()).is_unrestricted());
}
