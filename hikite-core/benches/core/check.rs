//! The check of arguments against schemas of real tools of several sizes: arguments that pass, arguments that are
//! set right, arguments that are refused, and what it costs to compile. `no check` is a tool without a schema.

use hikite_core::check::{ArgumentChecker, CheckOutcome};
use hikite_core::json::Raw;
use serde_json::{Map, Value, json};

use crate::timer::Timer;

/// Server, tool, arguments that pass as they are, the same with a number as text or a member too few.
const CASES: &[(&str, &str, &str)] = &[
    ("time", "convert_time", r#"{"source_timezone":"Asia/Tokyo","time":"16:30","target_timezone":"Europe/Berlin"}"#),
    (
        "github",
        "list_issues",
        r#"{"owner":"octocat","repo":"hello-world","state":"open","sort":"updated","labels":["bug","help wanted"],"per_page":50}"#,
    ),
    (
        "firecrawl",
        "firecrawl_search",
        r#"{"query":"gateway for the model context protocol","limit":10,"sources":["web",{"type":"news"}],"includeDomains":["example.org"],"scrapeOptions":{"formats":["markdown"],"onlyMainContent":true,"waitFor":500}}"#,
    ),
    (
        "google-calendar",
        "create-event",
        r#"{"calendarId":"primary","summary":"Review","start":"2026-11-20T10:00:00","end":"2026-11-20T11:00:00","timeZone":"Europe/Berlin","attendees":[{"email":"alice@example.org"},{"email":"bob@example.org","optional":true}],"transparency":"opaque","sendUpdates":"all"}"#,
    ),
];

pub(crate) fn rows(timer: Timer) -> Vec<Value> {
    let servers: Map<String, Value> =
        serde_json::from_str(include_str!("../../tests/fixtures/tools.json")).expect("valid JSON");
    CASES.iter().map(|(server, tool, arguments)| row(timer, &servers[*server][*tool], tool, arguments)).collect()
}

fn row(timer: Timer, schema: &Value, tool: &str, arguments: &str) -> Value {
    let schema = Raw::of(schema);
    let sent = Raw::parse(arguments.to_owned()).expect("valid JSON");
    let (unchecked, checker) = (ArgumentChecker::new(None), ArgumentChecker::new(Some(schema.clone())));
    assert_eq!(checker.check(Some(&sent)), Ok(CheckOutcome::AsSent), "{tool}");
    let text = Raw::of(arguments);
    assert!(matches!(checker.check(Some(&text)), Ok(CheckOutcome::Changed(_))), "{tool}");
    let empty = Raw::empty_object();
    assert!(checker.check(Some(&empty)).is_err(), "{tool}");
    json!([
        tool,
        schema.bytes().len(),
        sent.bytes().len(),
        timer.nanoseconds(|| unchecked.check(Some(&sent))),
        timer.nanoseconds(|| checker.check(Some(&sent))),
        timer.nanoseconds(|| checker.check(Some(&text))),
        timer.nanoseconds(|| checker.check(Some(&empty))),
        timer.nanoseconds(|| ArgumentChecker::new(Some(schema.clone())).find_problem().is_none()),
    ])
}
