//! Tests of invalid definitions. Each violation has its pointer; all are reported at once.

use hikite_core::json::{Object, Raw};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::HttpDefinition;

fn faults(http: &Value) -> Vec<(String, String)> {
    let schema = json!({ "type": "object", "properties": { "id": {}, "user": { "properties": { "name": {} } } } });
    match HttpDefinition::read(&Raw::from(http.clone()), &Raw::from(schema)) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.into_iter().map(|fault| (fault.pointer, fault.message)).collect(),
    }
}

/// Checks for exactly one violation with this pointer and text.
#[track_caller]
fn check(http: &Value, pointer: &str, words: &str) {
    let found = faults(http);
    let fits = matches!(found.as_slice(), [(place, message)] if place == pointer && message.contains(words));
    assert!(fits, "{http}: {found:?}");
}

#[track_caller]
fn check_url(url: &str, words: &str) {
    check(&json!({ "url": url }), "/http/url", words);
}

#[test]
fn an_address_is_fixed_up_to_its_path() {
    for url in ["https://x", "http://x/", "https://x:8443/a/{id}?b={user.name}&c", "HTTPS://X/{{a}}", "http://[::1]/"] {
        assert_eq!(faults(&json!({ "url": url })), [], "{url}");
    }
    check_url("https://{id}/", "must not contain references");
    check_url("https://x{id}/", "must not contain references");
    check_url("https://x:{id}/", "must not contain references");
    check_url("https://{id}.example/", "must not contain references");
    check_url("https://{id}@x/", "must not contain references");
    check_url("{id}://x/", "without references before the path");
    check_url("{id}", "starts with `https://`");
    check_url("/a/b", "starts with `https://`");
    check_url("ftp://x/", "an address must be `https://…`");
    check_url("file:///etc/passwd", "an address must be `https://…`");
    check_url("https://a:b@x/", "must not contain credentials");
    check_url("https://a@x/", "must not contain credentials");
    check_url("https:///x", "host of the address is not valid");
    check_url("https://:80/", "host");
    check_url("https://x:99999/", "a port must be a number");
    check_url("https://x:/", "a port must be a number");
    check_url("https://exa mple/", "host of the address is not valid");
    check_url("https://x/a#b", "after `#`");
    check_url("https://x/a/../b", "`.` or `..`");
    check_url("https://x/%2e%2E/b", "`.` or `..`");
    check_url("https://x/a?{id}=1", "not in its names");
    check_url("https://x/a?b={idd}", "Did you mean `id`?");
    check_url("https://x/{id", "not closed");
    check_url("https://x/id}", "no `{` before it");
    check(&json!({ "url": 5 }), "/http/url", "`url` is required");
    check(&json!({}), "/http/url", "`url` is required");
    check(&json!("https://x/"), "/http", "an object with a `url`");
}

#[test]
fn headers_that_are_ours_stay_ours() {
    for name in [
        "Host",
        "content-length",
        "Connection",
        "Transfer-Encoding",
        "TE",
        "Trailer",
        "Upgrade",
        "Keep-Alive",
        "Expect",
        "Proxy-Authorization",
        "proxy-connection",
    ] {
        let pointer = format!("/http/headers/{name}");
        check(&json!({ "url": "https://x/", "headers": { name: "a" } }), &pointer, "set by hikite");
    }
    let with = |name: &str, value: Value| json!({ "url": "https://x/", "headers": { name: value } });
    check(&with("{id}", json!("a")), "/http/headers/{id}", "not a valid header name");
    check(&with("a b", json!("a")), "/http/headers/a b", "not a valid header name");
    check(&with("X", json!("a\r\nY: b")), "/http/headers/X", "control characters");
    check(&with("X", json!("{id}\n")), "/http/headers/X", "control characters");
    check(&with("X", json!({})), "/http/headers/X", "a string, a number or a boolean");
    check(&with("X", json!("{nope}")), "/http/headers/X", "no parameter `nope`");
    check(&with("Content-Type", json!("{id}")), "/http/headers/Content-Type", "cannot contain references");
    check(&json!({ "url": "https://x/", "headers": { "X": "a", "x": "b" } }), "/http/headers/x", "defined twice");
    check(&json!({ "url": "https://x/", "headers": [] }), "/http/headers", "an object");
}

#[test]
fn bodies_queries_and_results_are_looked_at() {
    let post = |body: Value| json!({ "method": "POST", "url": "https://x/", "body": body });
    check(&post(json!({ "a/b": [1, { "c": "{nope}" }] })), "/http/body/a~1b/1/c", "no parameter `nope`");
    check(&post(json!("query { x }")), "/http/body", "write a literal brace twice");
    check(&json!({ "url": "https://x/", "body": 1 }), "/http/body", "a GET request has no body");
    check(&json!({ "method": "HEAD", "url": "https://x/", "body": 1 }), "/http/body", "a HEAD request has no body");
    let deep = (0..100).fold(json!("{id}"), |inner, _| json!([inner]));
    let found = faults(&post(deep));
    assert!(found.len() == 1 && found[0].1.contains("levels deep"), "{found:?}");
    let query = |query: Value| json!({ "url": "https://x/", "query": query });
    check(&query(json!({ "a": "{nope}" })), "/http/query/a", "no parameter `nope`");
    check(&query(json!({ "a": {} })), "/http/query/a", "a list of them");
    check(&query(json!({ "a": [1, null] })), "/http/query/a", "a list of them");
    check(&query(json!("a=b")), "/http/query", "an object");
    check(&json!({ "url": "https://x/", "result": "a..b" }), "/http/result", "a result path");
    check(&json!({ "url": "https://x/", "result": 1 }), "/http/result", "a result path");
    check(&json!({ "url": "https://x/", "method": "TRACE" }), "/http/method", "one of GET, HEAD");
    check(&json!({ "url": "https://x/", "method": 1 }), "/http/method", "one of GET, HEAD");
    check(&json!({ "url": "https://x/", "header": {} }), "/http/header", "Did you mean `headers`?");
    let xml = json!({ "Content-Type": "text/xml" });
    let text = json!({ "method": "PUT", "url": "https://x/", "headers": xml, "body": { "a": 1 } });
    check(&text, "/http/body", "must be a string");
}

#[test]
fn all_faults_are_told_at_once() {
    let form = json!({ "method": "FETCH", "url": "ftp://x", "headers": { "Host": "a" }, "query": { "q": "{nope}" }, "result": "" });
    let places: Vec<String> = faults(&form).into_iter().map(|(place, _)| place).collect();
    assert_eq!(places, ["/http/method", "/http/query/q", "/http/url", "/http/headers/Host", "/http/result"]);
}

proptest! {
    #[test]
    fn no_form_makes_it_panic(url in ".*", name in ".*", value in ".*", body in ".*", result in ".*") {
        faults(&json!({ "method": "POST", "url": url, "headers": { name.as_str(): value.as_str() },
            "query": { name.as_str(): value.as_str() }, "body": { name.as_str(): body }, "result": result }));
        faults(&json!({ "url": format!("https://x/{url}") }));
    }

    /// Checks that no value changes the host or the path of the request.
    #[test]
    fn a_value_is_only_ever_a_value(id in "([./%\\\\?#&@:]|\\PC|[\r\n\0]){0,12}") {
        let http = json!({ "url": "https://host.example:8443/a/{id}/b?q={id}&r=x{id}", "headers": { "X-A": "{id}" } });
        let schema = json!({ "properties": { "id": {} } });
        let form = HttpDefinition::read(&Raw::from(http), &Raw::from(schema)).map_err(|_| TestCaseError::fail("a form"))?;
        let arguments = Object::default().with("id", id.as_str());
        if let Ok(uri) = form.address.fill(&arguments, None) {
            prop_assert_eq!(uri.authority().map(http::uri::Authority::as_str), Some("host.example:8443"));
            let segments: Vec<&str> = uri.path().split('/').collect();
            prop_assert!(matches!(segments.as_slice(), ["", "a", value, "b"] if !value.is_empty() && !matches!(*value, "." | "..")));
            prop_assert_eq!(uri.query().map_or(0, |query| query.split('&').count()), 2);
        }
        if let Ok(headers) = form.headers.fill(&arguments) {
            prop_assert!(headers.iter().all(|(_, value)| !value.as_bytes().iter().any(u8::is_ascii_control)));
        }
    }
}
