//! Clients whose id is the URL of their metadata document, served by an https server of the tests, and SSRF through
//! such URLs.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use hikite_testkit::api::MockResponse;

use super::issuer::ExternalIssuer;
use super::*;
use crate::PROGRAMS;

/// A server on Python's own TLS stack. It counts its requests.
const SERVE: &str = r#"
import http.server, json, ssl, sys
asked = {}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked[self.path] = asked.get(self.path, 0) + 1
        port, kind, status, more = self.server.server_address[1], "application/json", 200, {}
        base = f"https://localhost:{port}"
        client = {"client_id": base + self.path, "client_name": "a described client",
                  "redirect_uris": ["http://127.0.0.1:3999/callback"], "token_endpoint_auth_method": "none"}
        body = json.dumps(client)
        if self.path == "/asked": body = json.dumps(asked)
        if self.path == "/another.json": body = json.dumps({**client, "client_id": base + "/client.json"})
        if self.path == "/secret.json": body = json.dumps({**client, "client_secret": "x"})
        if self.path == "/text.json": kind = "text/html"
        if self.path == "/gone.json": status = 404
        if self.path == "/long.json": body = json.dumps({**client, "more": "x" * 100000})
        if self.path == "/moved.json": status, more = 302, {"Location": base + "/inner"}
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

struct PythonSite {
    child: Child,
    port: String,
}

impl Drop for PythonSite {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn file(name: &str) -> String {
    format!("{}/tests/it/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

impl PythonSite {
    fn start() -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", SERVE, &file("one.pem"), &file("one.key")]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a port");
        Self { child, port: line.trim().to_owned() }
    }

    /// Returns the request counts by path, this request included.
    async fn asked(&self) -> Value {
        let pem = std::fs::read(file("one.pem")).expect("a file");
        let client =
            hikite_egress::EgressClient::pinned(hikite_egress::PinnedCertificate::read(&pem).expect("a certificate"));
        let request = http::Request::get(self.id("/asked")).body(hikite_egress::RequestBody::default());
        let answer = client.send(request.expect("a request")).await.expect("an answer");
        let body = hikite_egress::read(answer.into_body(), 65_536).await.expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    fn id(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }
}

/// Starts a gateway that trusts the test CA and may reach the addresses in `allow`.
async fn owned_gateway_allowing(allow: &[&str]) -> (TestGateway, TestBrowser) {
    let config = json!({ "egress": { "allow": allow }, "limits": { "failed_logins": 0 } });
    let gateway = TestGateway::start_with(&PROGRAMS, config, &[("SSL_CERT_FILE", &file("ca.pem"))]).await;
    let mut browser = TestBrowser::default();
    let page = browser.get(&gateway, &setup_path(&gateway).await).await;
    let done = browser.post(&gateway, "/setup", &page, &[("name", "kana"), ("password", PASSWORD)]).await;
    done.leads_to("/ui/start");
    (gateway, browser)
}

#[tokio::test]
async fn a_client_is_what_its_description_says() {
    let site = PythonSite::start();
    let (gateway, mut browser) = owned_gateway_allowing(&["localhost"]).await;
    let id = site.id("/client.json");
    let page = browser.get(&gateway, &authorize(&gateway, &id, &[])).await;
    assert!(page.status == 200 && page.text.contains("a described client"), "{}", page.text);
    let given = tokens(&gateway, &mut browser, &id, "read").await;
    assert_eq!(me(&gateway, access(&given)).await.status, 200);
    let elsewhere = authorize(&gateway, &id, &[("redirect_uri", "http://127.0.0.1:3999/other")]);
    assert_eq!(browser.get(&gateway, &elsewhere).await.status, 400, "a place that it does not name");
    for wrong in ["/another.json", "/secret.json", "/text.json", "/gone.json", "/long.json", "/moved.json"] {
        let page = browser.get(&gateway, &authorize(&gateway, &site.id(wrong), &[])).await;
        assert_eq!((page.status, page.header("location")), (400, ""), "{wrong}: {}", page.text);
    }
    let clients = gateway.send(gateway.request("GET", "/v1/clients")).await.value();
    assert_eq!(clients["clients"].as_array().map(Vec::len), Some(1), "{clients}");
    assert_eq!((&clients["clients"][0]["id"], &clients["clients"][0]["origin"]), (&json!(id), &json!("document")));
    let asked = site.asked().await;
    assert_eq!(asked["/client.json"], 1, "it is kept for a while: {asked}");
    assert_eq!((&asked["/moved.json"], &asked["/inner"]), (&json!(1), &Value::Null), "nothing leads on: {asked}");
}

/// Every notation of an address of this machine, its network or its host.
const INNER: [&str; 60] = [
    "127.0.0.1",
    "127.0.0.2",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "0x0",
    "00000000000",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "127.0.0.1.",
    "10.0.0.1",
    "10.1",
    "167772161",
    "0xa000001",
    "012.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "2886729729",
    "192.168.0.1",
    "192.168.1",
    "3232235521",
    "0xc0.0xa8.0.1",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "203.0.113.1",
    "224.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:7f00:1::]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fc00::1]",
    "[2001:db8::1]",
];

#[tokio::test]
async fn no_form_of_an_inner_address_is_asked_for_a_description() {
    let site = PythonSite::start();
    let config = json!({ "egress": { "allow": [] }, "server": { "trusted_proxies": ["127.0.0.1"] } });
    let gateway = TestGateway::start_with(&PROGRAMS, config, &[("SSL_CERT_FILE", &file("ca.pem"))]).await;
    let mut browser = TestBrowser::default();
    for (number, host) in INNER.iter().enumerate() {
        // Lookups are rate-limited per peer and minute.
        let from = format!("192.0.2.{number}");
        let id = format!("https://{host}:{}/client.json", site.port);
        let request = HttpRequest::new("GET", &authorize(&gateway, &id, &[])).header("x-forwarded-for", &from);
        let reply = browser.send(&gateway, request).await;
        assert_eq!(reply.status, 400, "{host}: {}", reply.text());
        assert!(reply.headers.get("location").is_none(), "{host}");
    }
    assert_eq!(site.asked().await, json!({ "/asked": 1 }), "nobody came");
}

#[tokio::test]
async fn keys_of_an_issuer_that_lie_inside_are_not_fetched() {
    let (site, issuer) = (PythonSite::start(), ExternalIssuer::start().await);
    let document = json!({ "issuer": issuer.name(), "jwks_uri": site.id("/keys") });
    issuer.api.answer("/.well-known/openid-configuration", MockResponse::json(&document));
    let rule = json!({ "issuer": issuer.name(), "audience": "https://hikite.example/mcp" });
    let config = json!({ "auth": { "issuers": [rule] }, "egress": { "allow": [] } });
    let gateway = TestGateway::start_with(&PROGRAMS, config, &[("SSL_CERT_FILE", &file("ca.pem"))]).await;
    assert_eq!(me(&gateway, &issuer.token(&json!({}))).await.status, 401);
    assert_ne!(issuer.api.count(), 0, "the owner named the issuer itself");
    assert_eq!(site.asked().await, json!({ "/asked": 1 }), "and nobody the place of its keys");
}
