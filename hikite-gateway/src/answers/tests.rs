//! Rendering in every format.

use hikite_core::limits::Limits;
use hikite_core::signer::HmacSigner;
use hikite_core::source::BoxFuture;
use hikite_core::tool_output::wrap_value;
use serde_json::json;

use super::*;
use crate::builder::GatewayBuilder;
use crate::catalogs::GatewayRules;
use crate::command::{CallOptions, Command, ToolTarget};
use crate::fake::{self, FakeSource, context, raw};
use crate::gateway::Gateway;
use crate::probe;
use hikite_identity::Project;

/// A jq runner that returns the program and the size of its input.
#[derive(Debug)]
struct EchoJqRunner;

impl JqRunner for EchoJqRunner {
    fn run(&self, program: Arc<str>, input: Raw) -> BoxFuture<'_, Result<Raw, Error>> {
        let outcome = match &*program {
            "wrong(" => Err(Error::new(ErrorKind::Validation, "jq: the program is not valid: line 1, column 6")),
            _ => Ok(Raw::of(&json!({ "program": &*program, "bytes": input.bytes().len() }))),
        };
        Box::pin(std::future::ready(outcome))
    }
}

fn gateway_with(result: Raw, limits: Limits, jq_runner: Option<Arc<dyn JqRunner>>) -> Arc<Gateway> {
    let source = FakeSource::new(move |_| Box::pin(std::future::ready(Ok(result.clone()))));
    let builder = GatewayBuilder::new(Arc::new(limits), HmacSigner::new([7; 32]), probe::registry_detached());
    let gateway = GatewayBuilder { jq_runner, ..builder }.build();
    let form = raw(r#"{"format":"compact"}"#).object().expect("an object");
    let project = Arc::new(Project::read("short", &form).expect("a project"));
    let policy = hikite_core::call_policy::CallPolicy::default();
    let rules = fake::rules(&source, policy, policy);
    gateway.apply(GatewayRules { projects: vec![project], ..rules });
    gateway
}

fn gateway(result: Raw) -> Arc<Gateway> {
    gateway_with(result, Limits::default(), None)
}

fn gateway_with_jq(result: Raw) -> Arc<Gateway> {
    gateway_with(result, Limits::default(), Some(Arc::new(EchoJqRunner)))
}

async fn run(gateway: &Gateway, wanted: OutputOptions, dialect: Dialect, project: Option<&str>) -> Result<Raw, Error> {
    let params = Object::default().with("name", "read");
    let target = ToolTarget::Named("m:read".into());
    let command = Command::Execute { target, params, options: CallOptions::default(), wanted, dialect };
    let mut context = context("owner");
    if let Some(project) = project {
        let caller = Caller { project: Some(project.into()), ..Caller::owner() };
        let session = hikite_core::caller::Session { caller, ..session_like(&context.session) };
        context.session = Arc::new(session);
    }
    gateway.dispatch(command, context).await
}

fn session_like(session: &hikite_core::caller::Session) -> hikite_core::caller::Session {
    hikite_core::caller::Session {
        id: session.id,
        caller: session.caller.clone(),
        client_capabilities: session.client_capabilities.clone(),
    }
}

fn wanted(format: Option<AnswerFormat>, select: Option<&str>) -> OutputOptions {
    OutputOptions { format, select: select.map(|text| Selector::parse(text).expect("a selector")) }
}

fn issues(count: usize) -> Raw {
    let issue =
        |n| json!({ "number": n, "title": format!("題名 {n}"), "body": "x".repeat(50), "user": { "login": "a" } });
    wrap_value(&Raw::of(&(0..count).map(issue).collect::<Vec<_>>()))
}

const COMPACT: Option<AnswerFormat> = Some(AnswerFormat::Compact);

#[tokio::test]
async fn what_nothing_is_wanted_of_is_the_bytes_that_came() {
    let odd = raw(r#"{ "content":[ {"type":"text","text":"x"} ], "n": 1.50e2 }"#);
    let gateway = gateway(odd.clone());
    let relayed = run(&gateway, OutputOptions::default(), Dialect::Result, None).await.expect("a result");
    assert_eq!(relayed, odd);
    let said = run(&gateway, wanted(Some(AnswerFormat::Raw), None), Dialect::Result, Some("short")).await;
    assert_eq!(said.expect("a result"), odd, "the call's word goes before the project's");
}

#[tokio::test]
async fn the_projects_word_counts_where_the_call_says_nothing() {
    let gateway = gateway(issues(3));
    let result = run(&gateway, OutputOptions::default(), Dialect::Result, Some("short")).await.expect("a result");
    assert!(result.value()["_meta"]["hikite/answer"]["form"].is_string(), "{result:?}");
    let other = run(&gateway, OutputOptions::default(), Dialect::Result, Some("gone")).await;
    assert_eq!(other.expect_err("nothing is there").kind, ErrorKind::ToolNotFound);
}

#[tokio::test]
async fn a_compact_result_is_one_text_with_the_rest_beside_it() {
    let picture = r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#;
    let text = r#"{"type":"text","text":"{\"a\":[1,2],\"b\":null}"}"#;
    let result = format!(
        r#"{{"content":[{text},{picture}],"structuredContent":{{"a":[1,2],"b":null}},"_meta":{{"own":1}},"resultType":"complete"}}"#
    );
    let gateway = gateway(raw(&result));
    let compact = run(&gateway, wanted(COMPACT, None), Dialect::Result, None).await.expect("a result").value();
    assert_eq!(compact["content"][0]["type"], "text");
    assert_eq!(compact["content"][1]["type"], "image");
    assert!(compact.get("structuredContent").is_none());
    assert_eq!((&compact["_meta"]["own"], &compact["resultType"]), (&json!(1), &json!("complete")));
    let text = compact["content"][0]["text"].as_str().expect("text");
    assert_eq!(compact["_meta"]["hikite/answer"]["bytes"], json!([20, text.len()]));
    let value = run(&gateway, wanted(COMPACT, None), Dialect::Value, None).await.expect("a result").value();
    assert_eq!(value["structuredContent"], json!({ "result": text }));
    assert_eq!(value["content"][0]["text"], text);
}

#[tokio::test]
async fn a_result_without_a_text_gets_none() {
    let gateway = gateway(raw(r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}"#));
    let compact = run(&gateway, wanted(COMPACT, None), Dialect::Result, None).await.expect("a result").value();
    assert_eq!(compact["content"].as_array().map(Vec::len), Some(1), "{compact}");
    let value = run(&gateway, wanted(COMPACT, None), Dialect::Value, None).await.expect("a result").value();
    assert_eq!(value["structuredContent"], json!({ "result": null }));
}

#[tokio::test]
async fn failures_questions_and_tasks_are_not_touched() {
    for result in [
        r#"{"content":[{"type":"text","text":"it broke"}],"isError":true}"#,
        r#"{"resultType":"input_required","inputRequests":{}}"#,
        r#"{"resultType":"task","taskId":"t"}"#,
    ] {
        let gateway = gateway(raw(result));
        let given = run(&gateway, wanted(COMPACT, Some("a,b")), Dialect::Result, None).await.expect("a result");
        assert_eq!(given, raw(result));
    }
}

#[tokio::test]
async fn a_part_is_taken_by_fields_path_or_program() {
    let gateway = gateway_with_jq(issues(2));
    let part = async |select: &str| {
        let raw = run(&gateway, wanted(Some(AnswerFormat::Raw), Some(select)), Dialect::Value, None).await;
        raw.map(|result| result.value()["structuredContent"]["result"].clone())
    };
    assert_eq!(
        part("number,user.login").await.expect("fields"),
        json!([{ "number": 0, "user": { "login": "a" } }, { "number": 1, "user": { "login": "a" } }])
    );
    assert_eq!(part(".[1].title").await.expect("a path"), json!("題名 1"));
    let program = part("map(.number)").await.expect("a program");
    assert_eq!(program["program"], "map(.number)");
    let whole = run(&gateway, wanted(None, Some(".[1].title")), Dialect::Result, None).await.expect("compact");
    assert_eq!(whole.value()["content"][0]["text"], "題名 1", "without a format it is compact");
}

#[tokio::test]
async fn a_part_that_is_not_there_is_told_and_the_answer_is_kept() {
    let gateway = gateway_with_jq(issues(2));
    for (select, words) in [("numbre", "number"), ("wrong(", "the first of which has `number`, `title`")] {
        let error = run(&gateway, wanted(None, Some(select)), Dialect::Result, None).await.expect_err(select);
        assert_eq!(error.kind, ErrorKind::Validation);
        let hint = error.hint.expect("a hint");
        assert!(hint.contains(words) && hint.contains("The tool has run"), "{hint}");
        let uri = hint.split('"').find(|part| part.starts_with("result://")).expect("an address");
        let read = Command::Read { params: Object::default().with("uri", uri) };
        let read = gateway.dispatch(read, context("owner")).await.expect("it is kept").value();
        assert!(read["contents"][0]["text"].as_str().is_some_and(|text| text.contains("題名 1")), "{read}");
    }
}

#[tokio::test]
async fn without_a_jq_runner_there_is_no_jq() {
    let gateway = gateway(issues(2));
    let error = run(&gateway, wanted(None, Some("length > 1")), Dialect::Result, None).await.expect_err("none");
    assert_eq!(&*error.message, "jq is not available here.");
}

#[tokio::test]
async fn what_does_not_fit_is_kept_and_the_last_line_says_how_to_read_on() {
    let limits = || Limits { compact_bytes: 4000, ..Limits::default() };
    let gateway = gateway_with(issues(500), limits(), None);
    for dialect in [Dialect::Result, Dialect::Value] {
        let result = run(&gateway, wanted(COMPACT, None), dialect, None).await.expect("a result").value();
        let text = result["content"][0]["text"].as_str().expect("text");
        assert!(text.len() <= 4000, "{}", text.len());
        let handle = result["_meta"]["hikite/answer"]["handle"].as_str().expect("a handle");
        let line = text.lines().last().expect("a line");
        assert!(line.starts_with("[left out: ") && line.ends_with("(or \"jq\", \"search\")]"), "{line}");
        let way = match dialect {
            Dialect::Result => format!(r#"continue with call {{"uri":"{handle}","page":"#),
            Dialect::Value => {
                format!(r#"continue with tool_execute {{"toolKey":"{handle}","arguments":{{"page":"#)
            }
        };
        assert!(line.contains(&way), "{line}");
        // Text and pages from the named one on contain every row.
        let page: u64 = line.split("\"page\":").nth(1).and_then(|rest| rest[..1].parse().ok()).expect("a page");
        let mut seen = text.to_owned();
        let pages = read(&gateway, handle).await["_meta"]["hikite/answer"]["pages"].as_u64().expect("pages");
        for page in page..=pages {
            let read = read(&gateway, &format!("{handle}?page={page}")).await;
            seen.push_str(read["contents"][0]["text"].as_str().expect("text"));
        }
        for n in 0..500 {
            assert!(seen.contains(&format!("題名 {n}")), "{n} of {pages} pages from {page}");
        }
    }
    let nothing = gateway_with(issues(500), Limits { results: 0, ..limits() }, None);
    let result = run(&nothing, wanted(COMPACT, None), Dialect::Result, None).await.expect("a result").value();
    let text = result["content"][0]["text"].as_str().expect("text");
    assert!(
        text.ends_with("the full result is not stored; ask the tool for less, or select a part with `select`]"),
        "{text}"
    );
}

async fn read(gateway: &Gateway, uri: &str) -> serde_json::Value {
    let read = Command::Read { params: Object::default().with("uri", uri) };
    gateway.dispatch(read, context("owner")).await.expect("a resource").value()
}

#[tokio::test]
async fn what_it_saves_is_counted_for_the_module() {
    let gateway = gateway(issues(50));
    run(&gateway, OutputOptions::default(), Dialect::Result, None).await.expect("a result");
    let bytes = || {
        let metric = gateway.admin().status.metrics().into_iter().find(|metric| metric.name == "hikite.answer");
        let crate::meter::MetricData::Counter(points) = metric.expect("a metric").data else { panic!("no counter") };
        points.into_iter().map(|point| point.value).collect::<Vec<_>>()
    };
    assert_eq!(bytes(), [0.0, 0.0], "what is relayed is not weighed");
    let out = run(&gateway, wanted(None, Some("number")), Dialect::Result, None).await.expect("a result");
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let expected = [issues(50).bytes().len() as f64, out.bytes().len() as f64];
    assert_eq!(bytes(), expected);
    assert!(expected[1] < expected[0] / 2.0, "{expected:?}");
}

#[tokio::test]
async fn json_that_is_too_deep_is_still_given() {
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    let gateway = gateway(wrap_value(&raw(&deep)));
    let result = run(&gateway, wanted(COMPACT, None), Dialect::Result, None).await.expect("a result").value();
    assert_eq!(result["content"][0]["text"], deep.as_str());
}
