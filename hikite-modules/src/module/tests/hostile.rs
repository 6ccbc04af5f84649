//! Tests with values that try to redirect a request.

use hikite_testkit::api::{MockApi, MockResponse};
use proptest::prelude::*;

use super::*;
use crate::expression::ExpressionNames;
use crate::file::ServiceRequestFile;
use crate::module::request::RequestTemplate;
use crate::scope::VariableScope;

/// Known injection attempts.
const TRICKS: &[&str] = &[
    "..",
    ".",
    "../..",
    "%2e%2e",
    "..%2f",
    "/",
    "//",
    "//evil.example/",
    "a/../b",
    "?x=1",
    "#f",
    "a?b=c&d",
    "\\..\\",
    "@evil.example",
    "http://evil.example",
    "a\r\nHost: evil.example",
    "a\nX: y",
    "\0",
    " ",
    "%00",
    "%0d%0a",
    "{owner}",
    "${x}",
    "=1",
    "$name",
    "\u{202e}abc",
    "a;b",
    "a:b",
    "é",
    "東京",
    "%",
    "%%",
    "%zz",
    "~",
    "*",
    "'",
    "\"",
    "<>",
    "|",
    "^",
    "`",
    "+",
    "a b",
    "\t",
    "\u{feff}",
    "．．",
    "／",
];

fn request(path: &str) -> RequestTemplate {
    let names = ExpressionNames {
        variables: std::sync::Arc::new(["id", "path"].map(str::to_owned).into()),
        ..ExpressionNames::default()
    };
    let file = ServiceRequestFile { get: Some(path.into()), ..ServiceRequestFile::default() };
    RequestTemplate::new(&file, &names).expect("a request")
}

/// Checks that the decoded path has exactly the segments of the template.
fn holds(value: &str) {
    let scope = VariableScope::default().with("id", Value::from(value)).with("path", Value::from(value));
    if let Ok(filled) = request("/things/{id}/end").fill(&scope) {
        let target: http::Uri = format!("https://toy.example{}", filled.target()).parse().expect("an address");
        assert_eq!(target.host(), Some("toy.example"), "{value:?}");
        let segments: Vec<&str> = target.path().split('/').collect();
        assert_eq!((segments.len(), segments[1], segments[3]), (4, "things", "end"), "{value:?}");
        assert_eq!(target.query(), None, "{value:?}");
        assert!(!matches!(segments[2], "" | "." | ".."), "{value:?}");
        assert_eq!(crate::escape::decoded(&segments[2].replace('+', "%2B")), value);
    }
    if let Ok(filled) = request("/files/{+path}").fill(&scope) {
        let target: http::Uri = format!("https://toy.example{}", filled.target()).parse().expect("an address");
        let segments: Vec<&str> = target.path().split('/').skip(1).collect();
        assert_eq!((target.host(), target.query(), segments[0]), (Some("toy.example"), None, "files"), "{value:?}");
        assert_eq!(segments.len() - 1, value.split('/').count(), "{value:?}");
        assert!(segments.iter().all(|segment| !matches!(*segment, "" | "." | "..")), "{value:?}");
    }
}

#[test]
fn tricks_lead_nowhere() {
    for trick in TRICKS {
        holds(trick);
        holds(&format!("a{trick}b"));
        holds(&format!("{trick}/{trick}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn no_value_changes_the_shape_of_an_address(value in "\\PC{0,40}|[./%\\\\?#@:\r\n\0a-f0-9]{0,24}") {
        holds(&value);
    }
}

/// Returns ten thousand values, equal in every run: known attempts, combinations of them, and random characters.
fn values() -> Vec<String> {
    let mut state = 0x2026_1115_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap_or_default()
    };
    let mut values: Vec<String> = TRICKS.iter().map(|&trick| trick.to_owned()).collect();
    while values.len() < 10_000 {
        let pieces = 1 + random(4);
        let value: String = (0..pieces)
            .map(|_| match random(3) {
                0 => TRICKS[random(TRICKS.len())].to_owned(),
                1 => char::from_u32(u32::try_from(random(0x3_0000)).unwrap_or_default()).unwrap_or('/').to_string(),
                _ => char::from(u8::try_from(random(128)).unwrap_or_default()).to_string(),
            })
            .collect();
        values.push(value);
    }
    values
}

/// Checks that the path is unchanged apart from the value.
#[track_caller]
fn stays(usual: &str, path: &str, value: &str, name: &str) {
    let target: http::Uri = format!("https://host.example{path}").parse().unwrap_or_else(|_| panic!("{name} {path}"));
    assert_eq!((target.host(), target.query()), (Some("host.example"), None), "{name} {value:?}");
    let (was, is): (Vec<&str>, Vec<&str>) = (usual.split('/').collect(), target.path().split('/').collect());
    assert!(is.iter().skip(1).all(|segment| !matches!(*segment, "" | "." | "..")), "{name} {value:?}");
    let more = is.len() - was.len();
    assert!(more == 0 || more == value.matches('/').count(), "{name} {value:?} {path}");
    let fixed = was.iter().filter(|segment| **segment != "x");
    let mut rest = is.iter();
    for segment in fixed {
        assert!(rest.any(|other| other == segment), "{name} {value:?} {path}");
    }
}

/// Tests every path placeholder of the built-in modules with all values: method, host and all other segments stay, or
/// the call is refused.
#[test]
fn no_argument_leads_a_request_of_ours_elsewhere() {
    let values = values();
    let mut places = 0;
    for (name, file) in crate::BUILTIN {
        let service = Service::read(file, &settings()).expect("a service");
        for request in service.requests() {
            for place in request.places() {
                places += 1;
                let path = |value: &str| {
                    let mut scope = VariableScope::default();
                    for other in request.places() {
                        scope.set(other, json!("x"));
                    }
                    request.path(&scope.with(place, Value::from(value)))
                };
                let usual = path("x").expect("an address");
                for value in &values {
                    let Ok(path) = path(value) else { continue };
                    stays(&usual, &path, value, name);
                }
            }
        }
    }
    assert!(places > 80, "only {places} places");
}

#[tokio::test]
async fn a_header_holds_only_what_a_header_can() {
    let api = MockApi::start().await;
    api.answer("/api/things", MockResponse::json(&json!({ "id": 1 })));
    for name in ["a\r\nX-Evil: 1", "a\nb", "ü", "\0", "a\tb"] {
        let error = call(&toy(&api), "make", json!({ "name": name })).await.expect_err("a refusal");
        assert!(error.message.starts_with("Invalid value for parameter name"), "{}", error.message);
    }
    assert_eq!(api.count(), 0);
}

#[test]
fn a_file_cannot_set_what_only_the_config_may_set() {
    for (from, to) in [
        ("X-Version: \"1\"", "Authorization: x"),
        ("X-Version: \"1\"", "Host: evil.example"),
        ("GET: /file", "GET: file"),
        ("GET: /file", "GET: /../file"),
        ("GET: /file", "GET: \"/file?x=1\""),
        ("https://toy.example/api", "ftp://toy.example"),
        ("{town}", "{nobody}"),
    ] {
        assert!(TOY.contains(from), "{from}");
        let faults = Service::read(&TOY.replacen(from, to, 1), &settings()).expect_err("a fault");
        assert!(!faults.is_empty(), "{to}");
    }
}
