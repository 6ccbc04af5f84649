//! Tests of hikite's upstream client against a strict authorization server and against ones with single faults.

use std::sync::Arc;

use hikite_core::caller::{Caller, ClientCapabilities, Session, SessionId};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::{ListCache, Listing};
use hikite_core::owner_secrets::OwnerSecrets;
use hikite_core::source::{CallContext, CallOrigin, Invocation, NoClient, Source, SourceMethod, SourceState};
use hikite_egress::{AllowList, EgressClient};
use hikite_testkit::api::MockApi;
use hikite_testkit::authorization_server::{AuthorizationFaults, MockAuthorizationServer};
use hikite_testkit::credential_store::MemoryCredentialStore;
use hikite_upstream::{
    ConnectionSharing, Environment, GrantType, OAuthSettings, ProcessLimits, Spawner, Upstream, UpstreamDefinition,
    UpstreamTransport,
};
use serde_json::json;

const REDIRECT: &str = "http://127.0.0.1:9/connect/callback";

struct NoListCache;

impl ListCache for NoListCache {
    fn load(&self, _: &str) -> Option<Listing> {
        None
    }

    fn store(&self, _: &str, _: &Listing) {}
}

fn upstream(url: &str, keep: &Arc<MemoryCredentialStore>) -> Upstream {
    let definition = UpstreamDefinition {
        name: "guarded".into(),
        transport: UpstreamTransport::Http { url: url.parse().expect("a URL"), headers: http::HeaderMap::new() },
        share: ConnectionSharing::Auto,
        access: Some(OAuthSettings {
            grant: GrantType::AuthorizationCode,
            client: None,
            scopes: Vec::new(),
            issuer: None,
            document: None,
            login_hint: "log in".into(),
            egress: AllowList::default(),
            keep: Arc::clone(keep) as Arc<dyn OwnerSecrets>,
        }),
        place: hikite_core::json::Object::default(),
        hash: url.to_owned(),
    };
    let environment = Environment {
        spawner: Spawner::start("none".into(), ProcessLimits { running: 1, starting: 1 }).expect("a thread"),
        client: EgressClient::new(),
        cache: Arc::new(NoListCache),
        limits: Arc::new(Limits::default()),
    };
    Upstream::start(definition, environment, Arc::new(|_| {}))
}

/// Follows the authorization URL and returns the redirect.
async fn browse(url: &str) -> String {
    let mut request = http::Request::new(http_body_util::Full::default());
    *request.uri_mut() = url.parse().expect("a URL");
    let answer = EgressClient::new().send(request).await.expect("an answer");
    assert_eq!(answer.status(), 302, "{url}");
    let back = answer.headers()["location"].to_str().expect("text").to_owned();
    back.strip_prefix(REDIRECT).expect("it is sent back").trim_start_matches('?').to_owned()
}

async fn log_in(upstream: &Upstream) -> Result<(), Error> {
    let begun = upstream.begin_login(REDIRECT).await?;
    upstream.finish_login(&browse(&begun.url).await).await
}

async fn call(upstream: &Upstream) -> Result<Raw, Error> {
    let session =
        Session { id: SessionId(1), caller: Caller::owner(), client_capabilities: ClientCapabilities::default() };
    let context = CallContext {
        session: Arc::new(session),
        back: Arc::new(NoClient),
        origin: CallOrigin::default(),
        accepts_input_required: false,
        account: None,
    };
    let params = Object::default().with("name", "secret_word").with("arguments", Raw::of(&json!({})));
    upstream.call(Invocation { method: SourceMethod::CallTool, params }, context).await
}

/// Starts a server that requires a login, with nobody logged in.
async fn refused(wrong: AuthorizationFaults) -> (MockAuthorizationServer, Upstream, Arc<MemoryCredentialStore>) {
    let authority = MockAuthorizationServer::start(wrong).await;
    let keep = Arc::new(MemoryCredentialStore::default());
    let upstream = upstream(&authority.url(), &keep);
    upstream.first_listing().await;
    assert_eq!(upstream.state(), SourceState::NeedsLogin { provider: "guarded".into() });
    assert_eq!(call(&upstream).await.expect_err("nobody is logged in").kind, ErrorKind::AccountRequired);
    (authority, upstream, keep)
}

/// Asserts that a login fails, before any code is spent, for this reason.
#[track_caller]
fn check(wrong: AuthorizationFaults, reason: &'static str) -> impl Future<Output = MockAuthorizationServer> {
    let place = std::panic::Location::caller();
    async move {
        let (authority, upstream, keep) = refused(wrong).await;
        let error = log_in(&upstream).await.expect_err(reason);
        assert!(error.message.contains(reason), "{place}: {error}");
        assert_eq!(authority.count("/token", ""), 0, "{place}: no code is shown to anybody");
        assert_eq!(keep.load("tokens").await.expect("loaded"), None, "{place}");
        call(&upstream).await.expect_err("nobody is logged in");
        authority
    }
}

#[tokio::test]
async fn a_login_opens_a_server_and_lasts() {
    let (authority, upstream, keep) = refused(AuthorizationFaults::default()).await;
    log_in(&upstream).await.expect("logged in");
    upstream.refresh_lists().await.expect("lists");
    assert!(call(&upstream).await.expect("let in").as_str().contains("open sesame"));
    assert_ne!(upstream.state(), SourceState::NeedsLogin { provider: "guarded".into() });
    let again = self::upstream(&authority.url(), &keep);
    call(&again).await.expect("let in after a restart");
    assert_eq!(authority.count("/token", ""), 1, "one code, no renewal");
    upstream.log_out().await.expect("left");
    let later = self::upstream(&authority.url(), &keep);
    assert_eq!(call(&later).await.expect_err("it was left").kind, ErrorKind::AccountRequired);
}

#[tokio::test]
async fn a_token_that_ends_is_renewed_once_for_all_who_wait() {
    let (authority, upstream, keep) = refused(AuthorizationFaults::default()).await;
    log_in(&upstream).await.expect("logged in");
    call(&upstream).await.expect("let in");
    for round in 1..=3 {
        authority.expire();
        let calls = futures_util::future::join_all((0..50).map(|_| call(&upstream))).await;
        assert!(calls.iter().all(Result::is_ok), "{round}: {calls:?}");
        assert_eq!(authority.count("/token", "grant_type=refresh_token"), round);
    }
    assert!(!authority.was_replayed());
    // The stored token is the newest, so another process can continue with it.
    authority.expire();
    call(&self::upstream(&authority.url(), &keep)).await.expect("let in");
    call(&upstream).await.expect("let in with what the other got");
    assert!(!authority.was_replayed());
    assert_eq!(authority.count("/token", "grant_type=refresh_token"), 4);
}

#[tokio::test]
async fn a_login_that_is_taken_back_is_asked_for_again() {
    let (authority, upstream, _) = refused(AuthorizationFaults::default()).await;
    log_in(&upstream).await.expect("logged in");
    call(&upstream).await.expect("let in");
    authority.revoke();
    let error = call(&upstream).await.expect_err("nothing is good any more");
    assert_eq!((error.kind, error.hint.as_deref()), (ErrorKind::AccountRequired, Some("log in")));
    assert_eq!(upstream.state(), SourceState::NeedsLogin { provider: "guarded".into() });
    log_in(&upstream).await.expect("logged in again");
    call(&upstream).await.expect("let in");
}

#[tokio::test]
async fn a_state_is_good_once_and_only_for_its_own_login() {
    let (authority, upstream, _) = refused(AuthorizationFaults::default()).await;
    let begun = upstream.begin_login(REDIRECT).await.expect("begun");
    let query = browse(&begun.url).await;
    assert!(upstream.has_pending_login(&begun.state));
    let other = query.replace(&begun.state, &"x".repeat(43));
    upstream.finish_login(&other).await.expect_err("nobody began it");
    upstream.finish_login("code=x").await.expect_err("no state at all");
    upstream.finish_login(&format!("{query}&state=y")).await.expect_err("two states");
    upstream.finish_login(&query).await.expect("logged in");
    assert!(!upstream.has_pending_login(&begun.state));
    upstream.finish_login(&query).await.expect_err("it is over");
    assert_eq!(authority.count("/token", ""), 1);
}

#[tokio::test]
async fn a_person_may_say_no() {
    let (authority, upstream, _) = refused(AuthorizationFaults::default()).await;
    let begun = upstream.begin_login(REDIRECT).await.expect("begun");
    let issuer = authority.issuer().replace(':', "%3A").replace('/', "%2F");
    let no = format!("error=access_denied&error_description=x&state={}&iss={issuer}", begun.state);
    let error = upstream.finish_login(&no).await.expect_err("no");
    assert!(error.message.contains("access_denied"), "{error}");
    assert_eq!(authority.count("/token", ""), 0);
}

#[tokio::test]
async fn whoever_says_to_be_another_is_not_asked() {
    let wrong = AuthorizationFaults { issuer: Some("https://other.example".into()), ..AuthorizationFaults::default() };
    let authority = check(wrong, "names another issuer").await;
    assert_eq!(authority.count("/register", "") + authority.count("/authorize", ""), 0);
    let wrong =
        AuthorizationFaults { resource: Some("https://other.example/mcp".into()), ..AuthorizationFaults::default() };
    let authority = check(wrong, "describes another server").await;
    assert_eq!(authority.count("/metadata", ""), 0, "who describes another is not followed");
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_no_answer() {
    for answered in ["https://evil.example", ""] {
        let wrong = AuthorizationFaults { answered_issuer: Some(answered.into()), ..AuthorizationFaults::default() };
        check(wrong, "from another authorization server").await;
    }
    let slash = MockAuthorizationServer::start(AuthorizationFaults::default()).await;
    let wrong =
        AuthorizationFaults { answered_issuer: Some(format!("{}/", slash.issuer())), ..AuthorizationFaults::default() };
    check(wrong, "from another authorization server").await;
}

#[tokio::test]
async fn who_does_not_protect_codes_gets_nobody() {
    let authority = check(AuthorizationFaults { no_pkce: true, ..AuthorizationFaults::default() }, "PKCE").await;
    assert_eq!(authority.count("/register", "") + authority.count("/authorize", ""), 0);
}

#[tokio::test]
async fn who_registers_nobody_needs_a_client_of_the_owner() {
    check(AuthorizationFaults { no_registration: true, ..AuthorizationFaults::default() }, "does not register clients")
        .await;
}

#[tokio::test]
async fn documents_inside_a_network_are_not_fetched_for_a_server() {
    let inside = "not an allowed address";
    for address in ["http://10.0.0.1/x", "http://169.254.169.254/x", "file:///etc/passwd", "gopher://x/"] {
        check(AuthorizationFaults { metadata_url: Some(address.into()), ..AuthorizationFaults::default() }, inside)
            .await;
        check(AuthorizationFaults { servers: Some(vec![address.into()]), ..AuthorizationFaults::default() }, inside)
            .await;
    }
    for address in ["https://10.0.0.1/x", "https://169.254.169.254/x", "https://[fd00:ec2::254]/x"] {
        let wrong = AuthorizationFaults { metadata_url: Some(address.into()), ..AuthorizationFaults::default() };
        check(wrong, "cannot be reached").await;
    }
}

#[tokio::test]
async fn nobody_is_followed_to_another_host() {
    let elsewhere = MockApi::start().await;
    let wrong =
        AuthorizationFaults { metadata_redirect: Some(elsewhere.url("/metadata")), ..AuthorizationFaults::default() };
    check(wrong, "on another host").await;
    assert_eq!(elsewhere.count(), 0);

    let (authority, upstream, keep) = refused(AuthorizationFaults::default()).await;
    authority.set_faults(AuthorizationFaults {
        token_redirect: Some(elsewhere.url("/token")),
        ..AuthorizationFaults::default()
    });
    log_in(&upstream).await.expect_err("a code goes to nobody else");
    assert_eq!((authority.count("/token", ""), elsewhere.count()), (1, 0));
    assert_eq!(keep.load("tokens").await.expect("loaded"), None);
}

#[tokio::test]
async fn a_token_is_shown_to_its_own_server_alone() {
    let (first, upstream, keep) = refused(AuthorizationFaults::default()).await;
    log_in(&upstream).await.expect("logged in");
    call(&upstream).await.expect("let in");
    // Same config entry with another URL: the stored tokens do not apply to it.
    let second = MockAuthorizationServer::start(AuthorizationFaults::default()).await;
    let moved = self::upstream(&second.url(), &keep);
    assert_eq!(call(&moved).await.expect_err("nobody is logged in").kind, ErrorKind::AccountRequired);
    let secrets = first.secrets();
    assert!(!secrets.is_empty());
    for request in second.seen() {
        let text = format!("{request:?}");
        assert!(!secrets.iter().any(|secret| text.contains(secret)), "{text}");
    }
    // An authorization server never sees the resource server's tokens in a header, and the resource server never sees
    // codes.
    for request in first.seen().iter().filter(|request| request.path != "/mcp") {
        assert_eq!(request.authorization, None, "{request:?}");
    }
    assert!(first.seen().iter().filter(|r| r.path == "/mcp").all(|r| !format!("{r:?}").contains("code")));
}

#[tokio::test]
async fn a_server_that_changes_its_issuer_gets_nothing_of_the_old_one() {
    let (first, upstream, _) = refused(AuthorizationFaults::default()).await;
    log_in(&upstream).await.expect("logged in");
    call(&upstream).await.expect("let in");
    let evil = MockAuthorizationServer::start(AuthorizationFaults::default()).await;
    first.expire();
    first.set_faults(AuthorizationFaults { servers: Some(vec![evil.issuer()]), ..AuthorizationFaults::default() });
    assert_eq!(call(&upstream).await.expect_err("a new login").kind, ErrorKind::AccountRequired);
    assert_eq!(evil.count("/token", "") + first.count("/token", "grant_type=refresh_token"), 0);
    let begun = upstream.begin_login(REDIRECT).await.expect("begun");
    assert!(begun.url.starts_with(&evil.issuer()));
    assert_eq!(evil.count("/register", "redirect_uris"), 1, "a client of its own");
    let secrets = first.secrets();
    assert!(evil.seen().iter().all(|seen| !secrets.iter().any(|secret| format!("{seen:?}").contains(secret))));
}

#[tokio::test]
async fn a_token_without_a_successor_ends_with_a_login() {
    let (authority, upstream, keep) =
        refused(AuthorizationFaults { no_refresh: true, ..AuthorizationFaults::default() }).await;
    log_in(&upstream).await.expect("logged in");
    call(&upstream).await.expect("let in");
    authority.expire();
    assert_eq!(call(&upstream).await.expect_err("it is over").kind, ErrorKind::AccountRequired);
    assert_eq!(keep.load("tokens").await.expect("loaded"), None);
}
