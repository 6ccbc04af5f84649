//! Login flows of browsers and clients: setup link, login, consent, code, tokens; and every case that must fail.

mod audit;
mod bound;
mod client;
mod compulsory;
mod deputy;
mod document;
mod flow;
pub(crate) mod issuer;
mod native;
mod page;
mod passkey;
mod processes;
mod refuse;
mod review;
mod route_access;
mod token;

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hikite_testkit::gateway::{HttpReply, HttpRequest, TestGateway};
use serde_json::{Value, json};

use crate::configured;

pub(crate) const PASSWORD: &str = "correct horse battery";
pub(crate) const REDIRECT: &str = "http://127.0.0.1:3999/callback";
// From RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A browser with cookies that follows no redirects.
#[derive(Debug, Default)]
pub(crate) struct TestBrowser {
    cookies: BTreeMap<String, String>,
}

/// A page with its form.
#[derive(Debug)]
pub(crate) struct TestPage {
    pub(crate) status: u16,
    pub(crate) text: String,
    headers: http::HeaderMap,
    /// Hidden fields of the form.
    fields: Vec<(String, String)>,
}

impl TestBrowser {
    /// Returns the cookie values.
    pub(crate) fn cookies(&self) -> impl Iterator<Item = String> {
        self.cookies.values().cloned()
    }

    pub(crate) fn cookie(&self, name: &str) -> Option<String> {
        self.cookies.get(name).cloned()
    }

    /// Sets a cookie of another browser.
    pub(crate) fn give(&mut self, name: &str, value: &str) {
        self.cookies.insert(name.to_owned(), value.to_owned());
    }

    async fn send(&mut self, gateway: &TestGateway, mut request: HttpRequest) -> HttpReply {
        if !self.cookies.is_empty() {
            let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            request = request.header("cookie", &cookies.join("; "));
        }
        let reply = gateway.send(request).await;
        for cookie in reply.headers.get_all("set-cookie") {
            let cookie = cookie.to_str().expect("text");
            assert!(cookie.contains("; HttpOnly; SameSite=Lax"), "{cookie}");
            let (name, value) = cookie.split(';').next().and_then(|pair| pair.split_once('=')).expect("a pair");
            if cookie.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        reply
    }

    pub(crate) async fn get(&mut self, gateway: &TestGateway, path: &str) -> TestPage {
        TestPage::of(self.send(gateway, HttpRequest::new("GET", path)).await)
    }

    /// Requests a page in another language.
    pub(crate) async fn get_in(&mut self, gateway: &TestGateway, path: &str, language: &str) -> TestPage {
        let request = HttpRequest::new("GET", path).header("accept-language", language);
        TestPage::of(self.send(gateway, request).await)
    }

    /// Submits the form of a page, with these fields beside the hidden ones.
    pub(crate) async fn post(
        &mut self,
        gateway: &TestGateway,
        path: &str,
        page: &TestPage,
        more: &[(&str, &str)],
    ) -> TestPage {
        let hidden = page.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let all: Vec<(&str, &str)> = hidden.chain(more.iter().copied()).collect();
        let origin = format!("http://{}", gateway.address());
        let request = HttpRequest::new("POST", path).form(form(&all)).header("origin", &origin);
        TestPage::of(self.send(gateway, request).await)
    }
}

impl TestPage {
    fn of(reply: HttpReply) -> Self {
        let text = reply.text().to_owned();
        let fields = text.split("<input type=\"hidden\" name=\"").skip(1).filter_map(|part| {
            let (name, rest) = part.split_once("\" value=\"")?;
            Some((name.to_owned(), plain(rest.split_once('"')?.0)))
        });
        Self { status: reply.status, fields: fields.collect(), headers: reply.headers, text }
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().expect("text")).unwrap_or_default()
    }

    /// Asserts the redirect target and returns its query.
    #[track_caller]
    pub(crate) fn leads_to(&self, start: &str) -> BTreeMap<String, String> {
        let location = self.header("location");
        assert!(self.status == 303 && location.starts_with(start), "{} {location} {}", self.status, self.text);
        let query = location.split_once('?').map(|(_, query)| query).unwrap_or_default();
        query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.into(), decode(value)))
            .collect()
    }
}

/// Decodes HTML entities.
fn plain(text: &str) -> String {
    text.replace("&quot;", "\"").replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

fn decode(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next().expect("a digit"), bytes.next().expect("a digit")];
            let digits = std::str::from_utf8(&digits).expect("digits");
            out.push(u8::from_str_radix(digits, 16).expect("digits"));
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).expect("UTF-8")
}

fn form(fields: &[(&str, &str)]) -> String {
    fields.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect::<Vec<_>>().join("&")
}

fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Returns the setup link that hikite printed.
pub(crate) async fn setup_path(gateway: &TestGateway) -> String {
    gateway.wait_for_stderr("/setup?token=").await;
    let said = gateway.stderr();
    let at = said.find("/setup?token=").expect("the link");
    said[at..].split_whitespace().next().expect("a word").to_owned()
}

/// Starts a gateway with an owner who is logged in.
pub(crate) async fn owned_gateway() -> (TestGateway, TestBrowser) {
    owned_gateway_with(json!({})).await
}

pub(crate) async fn owned_gateway_with(config: Value) -> (TestGateway, TestBrowser) {
    let gateway = configured(config).await;
    let browser = set_up(&gateway).await;
    (gateway, browser)
}

/// Sets the owner up and returns the owner's browser.
pub(crate) async fn set_up(gateway: &TestGateway) -> TestBrowser {
    let mut browser = TestBrowser::default();
    let path = setup_path(gateway).await;
    let page = browser.get(gateway, &path).await;
    assert_eq!(page.status, 200, "{}", page.text);
    let done = browser.post(gateway, "/setup", &page, &[("name", "kana"), ("password", PASSWORD)]).await;
    done.leads_to("/ui/start");
    browser
}

/// Registers and authorizes a client, and returns an access token.
pub(crate) async fn granted(gateway: &TestGateway, browser: &mut TestBrowser) -> String {
    let client = registered(gateway).await;
    let tokens = tokens(gateway, browser, &client, "read call").await;
    access(&tokens).to_owned()
}

pub(crate) async fn logged_in(gateway: &TestGateway, name: &str, password: &str) -> TestBrowser {
    let mut browser = TestBrowser::default();
    let page = browser.get(gateway, "/oauth/login").await;
    let done = browser.post(gateway, "/oauth/login", &page, &[("name", name), ("password", password)]).await;
    done.leads_to("/ui");
    browser
}

pub(crate) async fn register(gateway: &TestGateway, metadata: &Value) -> Value {
    let reply = gateway.send(HttpRequest::new("POST", "/oauth/register").json(metadata.to_string())).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.value()
}

/// Registers a client with a loopback redirect URI and returns its id.
pub(crate) async fn registered(gateway: &TestGateway) -> String {
    let metadata =
        json!({ "client_name": "a test", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none" });
    register(gateway, &metadata).await["client_id"].as_str().expect("an id").to_owned()
}

/// Registers a confidential client and returns its id; its consent is remembered.
async fn with_secret(gateway: &TestGateway) -> String {
    let metadata = json!({ "client_name": "a test", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "client_secret_post" });
    register(gateway, &metadata).await["client_id"].as_str().expect("an id").to_owned()
}

/// Returns an authorization request with some changed fields; an empty one is left out.
fn authorize(gateway: &TestGateway, client: &str, other: &[(&str, &str)]) -> String {
    let resource = format!("http://{}/mcp", gateway.address());
    let usual = [
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", REDIRECT),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("state", "s+1"),
        ("scope", "read call"),
        ("resource", &resource),
    ];
    let mut fields: Vec<(&str, &str)> =
        usual.into_iter().filter(|(name, _)| other.iter().all(|(own, _)| own != name)).collect();
    fields.extend(other.iter().filter(|(_, value)| !value.is_empty()));
    format!("/oauth/authorize?{}", form(&fields))
}

/// Obtains a code, with consent if necessary.
pub(crate) async fn code(
    gateway: &TestGateway,
    browser: &mut TestBrowser,
    client: &str,
    other: &[(&str, &str)],
) -> String {
    let mut page = browser.get(gateway, &authorize(gateway, client, other)).await;
    if page.status == 200 {
        page = browser.post(gateway, "/oauth/consent", &page, &[("decision", "allow")]).await;
    }
    let answer = page.leads_to(REDIRECT);
    assert_eq!((answer["state"].as_str(), answer["iss"].as_str()), ("s+1", &*issuer(gateway)));
    answer["code"].clone()
}

fn issuer(gateway: &TestGateway) -> String {
    format!("http://{}", gateway.address())
}

pub(crate) async fn ask_token(gateway: &TestGateway, fields: &[(&str, &str)]) -> HttpReply {
    gateway.send(HttpRequest::new("POST", "/oauth/token").form(form(fields))).await
}

/// Returns the fields of a code exchange.
pub(crate) fn exchange<'a>(client: &'a str, code: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
    ]
}

pub(crate) async fn tokens(gateway: &TestGateway, browser: &mut TestBrowser, client: &str, scope: &str) -> Value {
    let code = code(gateway, browser, client, &[("scope", scope)]).await;
    let reply = ask_token(gateway, &exchange(client, &code)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.value()
}

pub(crate) fn access(tokens: &Value) -> &str {
    tokens["access_token"].as_str().expect("a token")
}

pub(crate) async fn me(gateway: &TestGateway, token: &str) -> HttpReply {
    gateway.send(crate::identity::as_bearer(token, "GET", "/v1/me")).await
}

/// Returns the token with its other valid signature: `n - s` in place of `s`, where `n` is the order of P-256.
fn twin(token: &str) -> String {
    const ORDER: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    let (signed, signature) = token.rsplit_once('.').expect("parts");
    let mut bytes = URL_SAFE_NO_PAD.decode(signature).expect("base64");
    let mut borrow = 0;
    for at in (0..32).rev() {
        let order = i16::from(u8::from_str_radix(&ORDER[2 * at..2 * at + 2], 16).expect("digits"));
        let difference = order - i16::from(bytes[32 + at]) - borrow;
        borrow = i16::from(difference < 0);
        bytes[32 + at] = u8::try_from(difference.rem_euclid(256)).expect("a byte");
    }
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(bytes))
}

#[track_caller]
fn refused(reply: &HttpReply, status: u16, word: &str) {
    assert_eq!((reply.status, reply.value()["error"].as_str()), (status, Some(word)), "{}", reply.text());
}
