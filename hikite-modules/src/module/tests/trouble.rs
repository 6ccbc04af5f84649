//! Tests of failing services.

use std::time::Duration;

use hikite_core::error::ErrorKind;
use hikite_testkit::api::{MockApi, MockResponse};

use super::*;

fn thing() -> Value {
    json!({ "id": "1", "path": "a" })
}

const PATH: &str = "/api/things/1/a";

fn well() -> MockResponse {
    MockResponse::json(&json!({ "id": 1, "name": "n" }))
}

#[tokio::test]
async fn a_service_that_wants_a_pause_gets_it() {
    let api = MockApi::start().await;
    api.script(PATH, [MockResponse::status(429).header("retry-after", "0"), well()]);
    assert_eq!(call(&toy(&api), "get", thing()).await.expect("an answer")["id"], 1);
    assert_eq!(api.count(), 2);
}

#[tokio::test]
async fn nobody_waits_for_minutes() {
    let api = MockApi::start().await;
    api.answer(
        PATH,
        MockResponse::json(&json!({ "error": { "message": "slow down" } }))
            .with_status(429)
            .header("retry-after", "120"),
    );
    let service = toy(&api);
    let error = call(&service, "get", thing()).await.expect_err("a refusal");
    assert_eq!((error.kind, error.retry_after), (ErrorKind::RateLimit, Some(Duration::from_secs(120))));
    assert_eq!(&*error.message, "Toy returned 429: slow down");
    // Nothing more is sent until then.
    let error = call(&service, "get", thing()).await.expect_err("a refusal");
    assert_eq!((error.kind, api.count()), (ErrorKind::RateLimit, 1));
    assert!(error.retry_after.is_some_and(|wait| wait > Duration::from_secs(60)));
}

#[tokio::test]
async fn a_limit_of_one_account_is_not_one_of_another() {
    let api = MockApi::start().await;
    let service = toy(&api);
    let [work, home] = ["work", "home"].map(std::sync::Arc::<str>::from);
    service.rate_limiters.of(&work).close(Duration::from_secs(60));
    let refused = service.rate_limiters.of(&work).acquire(false).await.map(drop).expect_err("closed");
    assert_eq!((refused.kind, refused.retry_after.is_some()), (ErrorKind::RateLimit, true));
    assert!(service.rate_limiters.of(&home).acquire(true).await.is_ok());
}

#[tokio::test]
async fn what_is_used_up_is_not_asked_for() {
    let api = MockApi::start().await;
    api.answer(PATH, well().header("x-left", "0").header("x-reset", "90"));
    let service = toy(&api);
    call(&service, "get", thing()).await.expect("the last answer");
    let error = call(&service, "get", thing()).await.expect_err("a refusal");
    assert_eq!((error.kind, api.count()), (ErrorKind::RateLimit, 1));
}

#[tokio::test]
async fn a_service_that_fails_is_asked_again_for_what_changes_nothing() {
    let api = MockApi::start().await;
    api.script(
        PATH,
        [
            MockResponse::status(503).header("retry-after", "0"),
            MockResponse::status(500).header("retry-after", "0"),
            well(),
        ],
    );
    assert_eq!(call(&toy(&api), "get", thing()).await.expect("an answer")["id"], 1);
    api.answer("/api/things", MockResponse::status(503).header("retry-after", "0"));
    let error = call(&toy(&api), "make", json!({ "name": "n" })).await.expect_err("a failure");
    assert_eq!((error.kind, api.count_of("/api/things")), (ErrorKind::UpstreamUnavailable, 1), "it may have happened");
    api.script(
        "/api/things",
        [MockResponse::status(429).header("retry-after", "0"), MockResponse::json(&json!({ "id": 2 }))],
    );
    assert_eq!(call(&toy(&api), "make", json!({ "name": "n" })).await.expect("an answer")["id"], 2);
}

#[tokio::test]
async fn a_refusal_that_only_the_service_knows_is_known() {
    let api = MockApi::start().await;
    api.script(PATH, [MockResponse::status(403).header("x-left", "0").header("retry-after", "0"), well()]);
    assert_eq!(call(&toy(&api), "get", thing()).await.expect("an answer")["id"], 1);
    api.answer(PATH, MockResponse::status(403).header("x-left", "1"));
    let error = call(&toy(&api), "get", thing()).await.expect_err("a refusal");
    assert_eq!((error.kind, api.count()), (ErrorKind::Authorization, 3));
}

#[tokio::test]
async fn a_stale_token_is_renewed_once() {
    let api = MockApi::start().await;
    let both = || vec![bearer("old-token", Some(api.url(""))), bearer("new-token", Some(api.url("")))];
    api.script(PATH, [MockResponse::status(401), well()]);
    assert_eq!(call(&toy_with(both()), "get", thing()).await.expect("an answer")["id"], 1);
    let sent: Vec<Option<String>> =
        api.seen().iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect();
    assert_eq!(sent, [Some("Bearer old-token".into()), Some("Bearer new-token".into())]);
    api.answer(PATH, MockResponse::status(401));
    let error = call(&toy_with(both()), "get", thing()).await.expect_err("a refusal");
    assert_eq!((error.kind, api.count()), (ErrorKind::AccountRequired, 4), "once, and not for ever");
    assert!(error.hint.as_deref().unwrap_or_default().starts_with("Connect it again"), "{error:?}");
}

#[tokio::test]
async fn refusals_have_their_kind_and_the_services_own_words() {
    let api = MockApi::start().await;
    for (status, kind) in [
        (400, ErrorKind::Validation),
        (403, ErrorKind::Authorization),
        (404, ErrorKind::NotFound),
        (409, ErrorKind::Conflict),
        (413, ErrorKind::PayloadTooLarge),
        (422, ErrorKind::Validation),
        (501, ErrorKind::ToolExecution),
    ] {
        let body = json!({ "error": { "message": "no first-token here", "code": "bad_thing" } });
        api.answer(PATH, MockResponse::json(&body).with_status(status));
        let error = call(&toy(&api), "get", thing()).await.expect_err("a refusal");
        assert_eq!((error.kind, &*error.message), (kind, &*format!("Toy returned {status} (bad_thing): no *** here")));
    }
}

#[tokio::test]
async fn a_page_for_people_is_no_answer() {
    let api = MockApi::start().await;
    api.answer(PATH, MockResponse::bytes("text/html", "<html>Sorry</html>"));
    let error = call(&toy(&api), "get", thing()).await.expect_err("a failure");
    assert_eq!(error.kind, ErrorKind::ToolExecution);
    assert!(error.message.contains("text/html"), "{}", error.message);
    api.answer(PATH, MockResponse::bytes("text/html", "<h1>Bad gateway</h1>").with_status(501));
    let error = call(&toy(&api), "get", thing()).await.expect_err("a failure");
    assert_eq!(&*error.message, "Toy returned 501");
}

#[tokio::test]
async fn a_picture_is_no_text() {
    let api = MockApi::start().await;
    api.answer("/api/file", MockResponse::bytes("image/png", &b"\x89PNG\r\n\x1a\n\0\xff"[..]));
    let error = call(&toy(&api), "text", json!({})).await.expect_err("a failure");
    assert_eq!(&*error.message, "Toy returned a response that is not text (`image/png`).");
}

#[tokio::test]
async fn half_an_answer_is_none() {
    let api = MockApi::start().await;
    api.answer(PATH, MockResponse::bytes("application/json", "{\"id\": 1, \"na"));
    let error = call(&toy(&api), "get", thing()).await.expect_err("a failure");
    assert_eq!((error.kind, api.count()), (ErrorKind::ToolExecution, 1));
    // A broken response to a read is requested again.
    api.script(PATH, [well().cut_after(4), well()]);
    assert_eq!(call(&toy(&api), "get", thing()).await.expect("an answer")["id"], 1);
}

#[tokio::test]
async fn an_answer_without_end_is_refused() {
    let api = MockApi::start().await;
    api.answer(PATH, MockResponse::json(&json!("x".repeat(20 << 20))));
    let error = call(&toy(&api), "get", thing()).await.expect_err("a failure");
    assert_eq!(error.kind, ErrorKind::PayloadTooLarge);
    assert!(error.hint.is_some());
}

#[tokio::test]
async fn what_may_be_absent_is_null() {
    let api = MockApi::start().await;
    api.answer("/api/perhaps", MockResponse::status(404));
    assert_eq!(call(&toy(&api), "quiet", json!({})).await.expect("an answer"), Value::Null);
}

#[tokio::test]
async fn a_service_that_drips_is_left_when_its_caller_leaves() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let drips = async move {
        let (mut stream, _) = listener.accept().await.expect("a caller");
        let mut request = [0; 1024];
        assert!(stream.read(&mut request).await.expect("a request") > 0);
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n";
        stream.write_all(head).await.expect("the head");
        // Writes until the client disconnects.
        while stream.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let service = toy_with(vec![bearer("t", Some(format!("http://{address}")))]);
    let left = async {
        let waited = tokio::time::timeout(Duration::from_millis(200), call(&service, "get", thing())).await;
        assert!(waited.is_err(), "it never ends");
    };
    tokio::join!(left, drips);
}
