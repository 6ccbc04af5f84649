//! Tests of all routes, taken from the source of both route tables: only those listed here are public, and none accepts
//! a foreign Host or Origin.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hikite_core::secret::Secret;
use hikite_egress::{AllowList, EgressClient};
use hikite_gateway::{Nodes, Surface, Surfaces};
use hikite_identity::TokenTerms;
use hikite_store::{Store, StoreUrl};
use tower::ServiceExt;

use super::router;
use crate::node::PREFIX;
use crate::test_app::app_with;
use crate::{App, Auth, ClientMetadataMode, OauthSettings, Origins, ServerSettings, TrustedProxies};

const TOKEN: &str = "the-local-token-of-this-test";
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// The public routes and their descriptions; `SECURITY.md` has the same list.
const PUBLIC: [(&str, &str); 35] = [
    ("/", "name and version"),
    ("/health", "whether it is up"),
    ("/readyz", "whether it takes requests"),
    ("/v1/openapi.json", "the description of the REST API"),
    ("/oauth/client.json", "the description of hikite as a client of upstream servers"),
    ("/docs", "the page of the REST API"),
    ("/docs/page.css", "its style"),
    ("/docs/page.js", "its script"),
    ("/docs/words.js", "its words"),
    ("/connect/callback", "the way back from a provider; needs the cookie and the state of the browser that left"),
    (
        "/connect/{provider}",
        "the page that connects an account or logs in to a server; needs a link and a proof of being the person it names, or an administrator",
    ),
    ("/.well-known/oauth-authorization-server", "metadata of the authorization server (RFC 8414)"),
    ("/.well-known/openid-configuration", "the same for clients of OpenID"),
    ("/.well-known/oauth-protected-resource", "metadata of the resource (RFC 9728)"),
    ("/.well-known/oauth-protected-resource/mcp", "the same for `/mcp`"),
    (
        "/.well-known/oauth-protected-resource/mcp/{project}",
        "the same for a project; says nothing of whether there is one",
    ),
    ("/oauth/jwks", "the public halves of the signing keys"),
    ("/oauth/register", "registration of clients (RFC 7591); limited by address"),
    ("/oauth/authorize", "where a login begins; asks who sits there, and for consent"),
    ("/oauth/token", "tokens for a code, a refresh token or the secret of a client"),
    ("/oauth/revoke", "takes a token back"),
    ("/oauth/login", "the login page; wrong passwords are counted"),
    ("/oauth/logout", "the logout page"),
    ("/oauth/consent", "the answer of a logged-in person to a client"),
    ("/oauth/federated/{name}", "the way to another issuer"),
    ("/oauth/federated/{name}/callback", "the way back; needs the cookie and the state of the browser that left"),
    ("/oauth/passkey", "passkeys of a logged-in person"),
    ("/oauth/passkey.js", "its script"),
    ("/oauth/passkey/login", "a login with a passkey"),
    ("/oauth/passkey/login/options", "the question for it"),
    ("/oauth/passkey/register", "registers a passkey of a logged-in person"),
    ("/oauth/passkey/register/options", "the question for it"),
    ("/oauth/passkey/remove", "removes a passkey of a logged-in person"),
    ("/oauth/page.css", "the style of these pages"),
    ("/setup", "makes the owner, once, with the set-up link"),
];

/// The routes for other nodes, with a peer token instead of a bearer token.
const NODES: [&str; 3] = ["/node/mcp", "/node/mcp/{project}", "/node/messages"];

/// Returns the paths of all routes, as written in the source.
fn routes() -> BTreeSet<&'static str> {
    let tables = [include_str!("../router.rs"), include_str!("../oauth.rs")];
    let before_tests = tables.iter().filter_map(|table| table.split("#[cfg(test)]").next());
    let parts = before_tests.flat_map(|table| table.split(".route(").skip(1));
    let paths = parts.filter_map(|part| part.trim_start().strip_prefix('"')?.split('"').next());
    let paths: BTreeSet<&str> = paths.collect();
    assert!(paths.len() > 60 && paths.contains("/mcp") && paths.contains("/metrics"), "{paths:?}");
    paths
}

fn is_public(path: &str) -> bool {
    PUBLIC.iter().any(|(listed, _)| *listed == path)
}

/// Returns the routes of the static assets of the UI.
fn asset_routes() -> Vec<&'static str> {
    let table = include_str!("../../../hikite-ui/src/asset.rs").split("#[cfg(test)]").next().unwrap_or_default();
    let parts = table.split(".route(").skip(1);
    parts.filter_map(|part| part.trim_start().strip_prefix('"')?.split('"').next()).collect()
}

/// Builds an app with OAuth and a local token.
fn app() -> Arc<App> {
    let app = app_with(Auth::None);
    let oauth = OauthSettings {
        terms: TokenTerms {
            issuer: "http://localhost".into(),
            audience: "http://localhost/mcp".into(),
            access: Duration::from_secs(3600),
            refresh: Duration::from_secs(86_400),
        },
        is_local: true,
        cimd: ClientMetadataMode::Auto,
        registration: true,
        client: EgressClient::guarded(AllowList::default()),
    };
    app.configure(ServerSettings {
        auth: Auth::Token(Secret::hidden(TOKEN)),
        oauth: Some(Arc::new(oauth)),
        origins: Origins::default(),
        proxies: TrustedProxies::default(),
        tls: None,
        surfaces: Surfaces::of([Surface::Direct]),
        short_names: Vec::new(),
        rate: None,
        metrics_token: None,
        document: None,
    });
    app
}

async fn send(router: &Router, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let path = path.replace("{key}", "m:t").replace(['{', '}'], "");
    let mut request = Request::builder().method(method).uri(&path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).expect("a request");
    router.clone().oneshot(request).await.expect("an answer")
}

#[tokio::test]
async fn every_route_but_the_listed_ones_refuses_who_has_no_token() {
    let (router, paths) = (router(app()), routes());
    for (listed, _) in PUBLIC {
        assert!(paths.contains(listed), "{listed} is listed and not there");
    }
    let elsewhere = ["/nowhere", "/v1", "/mcp/a/b", "/oauth", "/oauth/keys", "/.well-known/other"];
    let host = ("host", "localhost");
    for path in paths.into_iter().chain(elsewhere) {
        for method in METHODS {
            let bare = send(&router, method, path, &[host]).await;
            let in_query = send(&router, method, &format!("{path}?access_token={TOKEN}"), &[host]).await;
            let in_cookie = send(&router, method, path, &[host, ("cookie", &format!("token={TOKEN}"))]).await;
            for answer in [bare, in_query, in_cookie] {
                // OAuth endpoints that return 401 send no bearer challenge.
                let is_refused = answer.status() == 401 && answer.headers().contains_key("www-authenticate");
                assert_eq!(is_refused, !is_public(path), "{method} {path}: {}", answer.status());
            }
        }
    }
}

#[tokio::test]
async fn what_is_for_other_nodes_opens_to_nobody_else() {
    let app = app();
    let found: Vec<&str> = routes().into_iter().filter(|path| path.starts_with(PREFIX)).collect();
    let mut listed = NODES.to_vec();
    listed.sort_unstable();
    assert_eq!(found, listed);
    let store = Store::open(&StoreUrl::memory()).await.expect("a store in memory");
    let nodes = Nodes::join(store, "http://localhost", "one", 10).await.expect("joined");
    app.join(nodes, [7; 32], EgressClient::new());
    let router = router(app);
    let token = format!("Bearer {TOKEN}");
    for path in NODES {
        for method in METHODS {
            for shown in [("authorization", token.as_str()), ("hikite-pass", TOKEN), ("x", "y")] {
                let answer = send(&router, method, path, &[("host", "localhost"), shown]).await;
                assert_eq!(answer.status(), 403, "{method} {path} {shown:?}");
            }
        }
    }
}

#[tokio::test]
async fn no_route_answers_a_foreign_name_or_a_foreign_page() {
    let router = router(app());
    let (host, token) = (("host", "localhost"), format!("Bearer {TOKEN}"));
    let foreign: [&[(&str, &str)]; 12] = [
        &[("host", "evil.example")],
        &[("host", "localhost.evil.example")],
        &[("host", "127.0.0.1.nip.io")],
        &[("host", "localhost@evil.example")],
        &[("host", "")],
        &[],
        &[host, ("host", "evil.example")],
        &[("host", "evil.example"), host],
        &[host, ("origin", "http://evil.example")],
        &[host, ("origin", "null")],
        &[host, ("origin", "http://localhost"), ("origin", "http://evil.example")],
        &[host, ("origin", "http://localhost.evil.example")],
    ];
    for path in routes() {
        for method in METHODS.into_iter().chain(["OPTIONS"]) {
            for headers in foreign {
                let known = [headers, &[("authorization", token.as_str())]].concat();
                for headers in [headers.to_vec(), known] {
                    let answer = send(&router, method, path, &headers).await;
                    assert_eq!(answer.status(), 403, "{method} {path} {headers:?}");
                    assert!(!answer.headers().contains_key("access-control-allow-origin"), "{method} {path}");
                }
            }
        }
    }
}

#[tokio::test]
async fn what_a_stranger_writes_into_headers_of_proxies_does_nothing() {
    let router = router(app());
    for path in routes().into_iter().filter(|path| !is_public(path)) {
        for (name, value) in [
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-host", "localhost"),
            ("x-forwarded-proto", "https"),
            ("forwarded", "for=127.0.0.1;host=localhost"),
            ("x-original-url", "/health"),
            ("x-rewrite-url", "/health"),
            ("x-http-method-override", "OPTIONS"),
            ("hikite-subject", "owner"),
            ("hikite-project", "work"),
            ("mcp-session-id", "1"),
        ] {
            let answer = send(&router, "GET", path, &[("host", "localhost"), (name, value)]).await;
            assert_eq!(answer.status(), 401, "{path} {name}: {value}");
            let answer = send(&router, "GET", path, &[("host", "evil.example"), (name, value)]).await;
            assert_eq!(answer.status(), 403, "{path} {name}: {value}");
        }
    }
}

const BEGIN: &str =
    "<!-- routes: made by `HIKITE_UPDATE=1 cargo test -p hikite-server --lib public_routes`; do not edit -->\n";
const END: &str = "<!-- end of routes -->";

/// Renders the list of `SECURITY.md` from the same tables.
fn page() -> String {
    let mut page = String::from("| route | what it is |\n|---|---|\n");
    for (path, what) in PUBLIC {
        let _ = writeln!(page, "| `{path}` | {what} |");
    }
    for path in asset_routes() {
        let _ = writeln!(page, "| `{path}` | style, script or picture of the pages |");
    }
    page
}

#[test]
fn security_md_lists_the_public_routes() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../SECURITY.md");
    let text = std::fs::read_to_string(&file).expect("a page");
    let (before, rest) = text.split_once(BEGIN).expect("the beginning of the list");
    let (list, after) = rest.split_once(END).expect("the end of the list");
    if std::env::var_os("HIKITE_UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(&file, format!("{before}{BEGIN}{}{END}{after}", page())).expect("written");
        return;
    }
    assert_eq!(list, page(), "run the tests with HIKITE_UPDATE=1");
}

#[tokio::test]
async fn the_looks_of_the_pages_are_open_and_nothing_else_of_them() {
    let router = router(app());
    assert!(asset_routes().len() > 1, "{:?}", asset_routes());
    for path in asset_routes() {
        let answer = send(&router, "GET", path, &[("host", "localhost")]).await;
        assert_eq!(answer.status(), 200, "{path}");
    }
    for path in ["/ui", "/ui/tools", "/ui/access", "/ui/nowhere"] {
        let answer = send(&router, "GET", path, &[("host", "localhost")]).await;
        assert_ne!(answer.status(), 200, "{path}");
    }
}
