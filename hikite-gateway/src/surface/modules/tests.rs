//! Arguments of the three tools in both spellings, and rejected ones.

use hikite_core::compact::AnswerFormat;
use hikite_core::selector::Selector;

use super::*;
use crate::command::{Dialect, ToolTarget};
use crate::fake::raw;
use crate::handle::ResultPart;
use crate::render::OutputOptions;

fn read(name: &str, arguments: &str) -> Result<Command, Error> {
    let params = Object::default().with("name", name).with("arguments", raw(arguments)).with("_meta", raw("{}"));
    translate(name, &params).expect("ours")
}

fn opening(arguments: &str) -> ModuleQuery {
    match read(OPEN, arguments) {
        Ok(Command::Open(opening)) => opening,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn runs(arguments: &str, target: &str, inner: &str) -> OutputOptions {
    match read(CALL, arguments) {
        Ok(Command::Execute { target: found, params, wanted, dialect: Dialect::Result, .. }) => {
            let found = match found {
                ToolTarget::Keyed(key) => key.to_string(),
                other => format!("{other:?}"),
            };
            assert_eq!(found, target, "{arguments}");
            assert_eq!(params.get("arguments"), Some(&raw(inner)), "{arguments}");
            assert!(params.get("_meta").is_some());
            wanted
        }
        other => panic!("{arguments}: {other:?}"),
    }
}

#[track_caller]
fn refused(name: &str, arguments: &str, parts: &[&str]) {
    let error = read(name, arguments).expect_err("refused");
    for part in parts {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
    assert!(error.schema.expect("a schema").value()["properties"].is_object());
}

#[test]
fn modules_are_opened_in_both_spellings() {
    assert_eq!(opening(r#"{"modules":["notion","jira"]}"#).modules, ["notion", "jira"]);
    assert_eq!(opening(r#"{"module":"notion"}"#).modules, ["notion"]);
    assert_eq!(opening(r#"{"modules":"notion"}"#).modules, ["notion"]);
    assert_eq!(opening(r#""{\"module\":\"notion\"}""#).modules, ["notion"], "some models send text");
    let whole = opening(r#"{"modules":["a"],"detail":"schemas","refresh":true,"known":["0a"],"tools":["t"]}"#);
    assert_eq!(
        (whole.detail, whole.refresh, whole.known, whole.tools),
        (Detail::Schemas, true, vec!["0a".into()], vec!["t".into()])
    );
}

#[test]
fn a_tool_is_called_in_every_spelling() {
    let inner = r#"{"query":"設計"}"#;
    for arguments in [
        r#"{"module":"notion","tool":"search","params":{"query":"設計"}}"#,
        r#"{"module":"notion","tool_name":"search","params":{"query":"設計"}}"#,
        r#"{"toolKey":"notion:search","arguments":{"query":"設計"}}"#,
        r#"{"module":"notion","tool":"search","args":{"query":"設計"},"uri":null,"account":"work"}"#,
    ] {
        assert_eq!(runs(arguments, "notion:search", inner), OutputOptions::default());
    }
    runs(r#"{"module":"notion","tool":"search"}"#, "notion:search", "{}");
    runs(r#"{"tool":"search"}"#, r#"Named("search")"#, "{}");
    let wanted = runs(r#"{"module":"a","tool":"b","format":"raw","select":".x"}"#, "a:b", "{}");
    assert_eq!(wanted.format, Some(AnswerFormat::Raw));
    assert_eq!(wanted.select, Selector::parse(".x").ok());
}

#[test]
fn resources_and_prompts_are_called_too() {
    match read(CALL, r#"{"uri":"result://1","page":2,"jq":".a","search":"b"}"#) {
        Ok(Command::Fetch { uri, part, dialect, .. }) => {
            assert_eq!((uri.as_str(), dialect), ("result://1", Dialect::Result));
            assert_eq!(part, ResultPart { page: Some(2), jq: Some(".a".into()), search: Some("b".into()) });
        }
        other => panic!("{other:?}"),
    }
    match read(CALL, r#"{"module":"notion","prompt":"summarize","params":{"id":"1"}}"#) {
        Ok(Command::FetchPrompt { module, name, params }) => {
            assert_eq!((module.as_deref(), name.as_str()), (Some("notion"), "summarize"));
            assert_eq!(params.get("arguments"), Some(&raw(r#"{"id":"1"}"#)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_batch_is_lines_or_a_list() {
    for commands in [r#""{\"id\":\"a\"}\n""#, r#"[{"id":"a"}]"#] {
        match read(BATCH, &format!(r#"{{"commands":{commands},"dry_run":true,"on_error":"fail_fast"}}"#)) {
            Ok(Command::Batch(batch)) => {
                assert_eq!((batch.commands, batch.dry_run), (raw(commands), true));
                assert_eq!((batch.on_error, batch.concurrency), (OnError::FailFast, None));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_wrong_is_told_at_once_with_the_schema() {
    refused(OPEN, "{}", &["`modules` must contain the name of a module"]);
    refused(
        OPEN,
        r#"{"modules":[1],"detail":"all","refresh":1,"kown":[]}"#,
        &["list of strings", "`names`, `signatures` or `schemas`", "true or false", "Did you mean `known`?"],
    );
    refused(CALL, "{}", &["`tool` must be the tool to run; or set `uri`"]);
    refused(CALL, r#"{"module":"notion"}"#, &["`tool` must be"]);
    refused(
        CALL,
        r#"{"module":3,"tool":"","params":[],"format":"toon","select":" ","page":1,"parms":{}}"#,
        &[
            "`module` must be a string.",
            "`tool` must not be empty",
            "`params` must be a JSON object",
            "`compact` or `raw`",
            "`select` must",
            "Did you mean `params`?",
        ],
    );
    refused(CALL, r#"{"tool":"a","uri":"b:c"}"#, &["`uri` cannot be combined with `tool`"]);
    refused(CALL, r#"{"tool":"a","tool_name":"a"}"#, &["`tool_name` cannot be combined with `tool`"]);
    refused(CALL, r#"{"toolKey":"a:b","module":"a"}"#, &["`module` is already part of `toolKey`"]);
    refused(CALL, r#"{"tool":"a","page":2}"#, &["`page` can only be used with `uri`"]);
    refused(CALL, r#"{"uri":"a:b","params":{"x":1},"select":"x"}"#, &["`params` cannot", "`select` cannot"]);
    refused(CALL, r#"{"prompt":"a","format":"raw"}"#, &["`format` cannot be used with `prompt`"]);
    refused(CALL, r#"{"tool":"a","params":{},"args":{}}"#, &["`args` cannot be combined with `params`"]);
    refused(BATCH, "{}", &["`commands` must be"]);
    refused(BATCH, r#"{"commands":{},"concurrency":0,"on_error":"stop"}"#, &["`commands`", "1 to", "`fail_fast`"]);
    assert!(translate("other", &Object::default()).is_none());
}
