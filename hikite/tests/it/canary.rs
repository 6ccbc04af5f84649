//! Every secret that passes through one gateway is searched for afterwards in everything it leaves behind: store files,
//! debug logs, traces and metrics, command output, and error responses.

use std::path::Path;

use hikite_testkit::collector::{CollectorBehavior, OtlpCollector};
use hikite_testkit::gateway::{HttpRequest, TestGateway, eventually};
use hikite_testkit::provider::{CLIENT_SECRET, MockProvider};
use hikite_vault::MasterKey;
use serde_json::{Value, json};

use crate::PROGRAMS;
use crate::oauth::{self, TestBrowser};

const API_KEY: &str = "canary-api-key-6c1d0e";
const WRONG: &str = "canary-wrong-password-77aa";

fn config(provider: &MockProvider, collector: &OtlpCollector) -> Value {
    let otlp = json!({ "endpoint": collector.url(), "interval": "200ms", "timeout": "1s" });
    json!({
        "modules": { "builtin": ["notion", "github"] },
        "limits": { "failed_logins": 0 },
        "telemetry": { "log": { "level": "trace", "format": "json" }, "otlp": otlp },
        "providers": {
            "github": { "token": API_KEY, "api": provider.url("") },
            "notion": { "api": provider.url(""), "oauth": {
                "client_id": hikite_testkit::provider::CLIENT_ID, "client_secret": CLIENT_SECRET,
                "authorize_url": provider.url("/authorize"), "token_url": provider.url("/token"), "pkce": true,
            } },
        },
    })
}

/// Every secret that the gateway has seen, with its kind.
#[derive(Default)]
struct KnownSecrets(Vec<(&'static str, String)>);

impl KnownSecrets {
    fn keep(&mut self, what: &'static str, secret: impl Into<String>) -> String {
        let secret = secret.into();
        assert!(secret.len() >= 8, "{what} is too short to be looked for");
        self.0.push((what, secret.clone()));
        secret
    }

    #[track_caller]
    fn are_not_in(&self, place: &str, bytes: &[u8]) {
        for (what, secret) in &self.0 {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{what} is in {place}");
        }
    }
}

/// Returns every file below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Creates a login, a confidential client with tokens, and a personal token.
async fn people(gateway: &TestGateway, secrets: &mut KnownSecrets) -> String {
    let mut seen = String::new();
    let mut browser = TestBrowser::default();
    let path = oauth::setup_path(gateway).await;
    let page = browser.get(gateway, &path).await;
    let password = secrets.keep("the password", oauth::PASSWORD);
    browser.post(gateway, "/setup", &page, &[("name", "kana"), ("password", &password)]).await;
    let mut other = TestBrowser::default();
    let page = other.get(gateway, "/oauth/login").await;
    let wrong = secrets.keep("a wrong password", WRONG);
    for name in ["kana", WRONG] {
        seen += &other.post(gateway, "/oauth/login", &page, &[("name", name), ("password", &wrong)]).await.text;
    }
    let made = oauth::register(gateway, &json!({ "redirect_uris": [oauth::REDIRECT] })).await;
    let text = |value: &Value, name: &str| value[name].as_str().expect(name).to_owned();
    let client = text(&made, "client_id");
    let secret = secrets.keep("the secret of a client", text(&made, "client_secret"));
    let code = secrets.keep("a code", oauth::code(gateway, &mut browser, &client, &[]).await);
    let mut fields = oauth::exchange(&client, &code);
    fields.push(("client_secret", &secret));
    let given = oauth::ask_token(gateway, &fields).await.value();
    secrets.keep("an access token", text(&given, "access_token"));
    let refresh = secrets.keep("a refresh token", text(&given, "refresh_token"));
    // Error responses: the code used again, and the token used by another client.
    seen += oauth::ask_token(gateway, &fields).await.text();
    let stolen = [("grant_type", "refresh_token"), ("client_id", "hkc_none"), ("refresh_token", &*refresh)];
    seen += oauth::ask_token(gateway, &stolen).await.text();
    for cookie in browser.cookies().chain(other.cookies()) {
        secrets.keep("a cookie", cookie);
    }
    let token = gateway.run(&["token", "create", "--subject", "bob"]).await.stdout;
    secrets.keep("a personal token", token.lines().next().expect("a line").trim());
    seen
}

/// Connects, uses, refreshes and loses an account.
async fn account(gateway: &TestGateway, provider: &MockProvider, secrets: &mut KnownSecrets) -> String {
    crate::accounts::connect(gateway, provider, "default").await;
    for token in provider.good() {
        secrets.keep("a refresh token of a provider", token);
    }
    let mut seen = String::new();
    let ask = async |name: &str| {
        let call = json!({ "name": name, "parameters": { "query": "x" } });
        let request = gateway.request("POST", "/v1/tools/call").json(call.to_string());
        gateway.send(request).await.text().to_owned()
    };
    seen += &ask("notion:search").await;
    seen += &ask("github:search_issues").await;
    provider.revoke_access();
    seen += &ask("notion:search").await;
    for token in provider.good() {
        secrets.keep("its successor", token);
    }
    provider.revoke_grants();
    provider.revoke_access();
    seen + &ask("notion:search").await
}

#[tokio::test]
async fn no_secret_is_left_behind_anywhere() {
    let (provider, collector) = (MockProvider::start().await, OtlpCollector::start(CollectorBehavior::Accept).await);
    let mut secrets = KnownSecrets::default();
    let key = secrets.keep("the master key", MasterKey::random().expect("random").text().expose());
    secrets.keep("an API key of the config", API_KEY);
    secrets.keep("the secret of our app", CLIENT_SECRET);
    let variables = [("HIKITE_VAULT_KEY", key.as_str()), ("RUST_BACKTRACE", "full")];
    let mut gateway = TestGateway::start_with(&PROGRAMS, config(&provider, &collector), &variables).await;
    let mut seen = people(&gateway, &mut secrets).await;
    seen += &account(&gateway, &provider, &mut secrets).await;
    for arguments in [
        &["account", "list", "--json"][..],
        &["provider", "list", "--json"],
        &["client", "list", "--json"],
        &["user", "list", "--json"],
        &["token", "list", "--json"],
        &["config", "show"],
        &["audit", "export"],
        &["store", "check"],
        &["doctor", "--wait", "120"],
        &["--log", "trace", "tools", "list"],
    ] {
        // Also without the key that it needs: that output is searched, too.
        let run = gateway.run(arguments).await;
        seen += &(run.stdout + &run.stderr);
    }
    for path in ["/v1/accounts", "/v1/providers", "/v1/clients", "/v1/users", "/v1/tokens", "/v1/audit", "/metrics"] {
        seen += gateway.send(gateway.request("GET", path)).await.text();
    }
    for (_, secret) in &secrets.0 {
        let bearer = format!("Bearer {secret}x");
        seen += gateway.send(HttpRequest::new("GET", "/v1/me").header("authorization", &bearer)).await.text();
        seen += gateway.send(gateway.request("GET", "/v1/nothing").header("cookie", secret)).await.text();
    }
    assert!(eventually(|| !collector.spans().is_empty()).await);
    secrets.are_not_in("traces", format!("{:?}", collector.spans()).as_bytes());
    for (what, secret) in &secrets.0 {
        assert!(!collector.has_received(secret), "{what} was sent to the collector");
    }
    secrets.are_not_in("what commands print and requests answer", seen.as_bytes());
    assert!(seen.len() > 20_000, "there is something to look through: {}", seen.len());
    gateway.stop().await;
    secrets.are_not_in("the log", gateway.stderr().as_bytes());
    for line in ["the owner is set up", "listening"] {
        assert!(gateway.stderr().contains(line), "there is a log: {}", gateway.stderr());
    }
    let data = files(&gateway.folder().path().join("data"));
    assert!(data.iter().any(|path| path.ends_with("hikite.db")), "{data:?}");
    for path in data {
        secrets.are_not_in(&path.display().to_string(), &std::fs::read(&path).unwrap_or_default());
    }
}
