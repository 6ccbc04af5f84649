//! An MCP client over one keep-alive connection that checks every response.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use memchr::memmem;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const SESSION: &str = "mcp-session-id";
const REVISION: &str = "2025-11-25";

/// Address and path of an MCP server.
#[derive(Clone)]
pub(crate) struct McpEndpoint {
    pub(crate) address: SocketAddr,
    pub(crate) path: &'static str,
}

pub(crate) struct RigClient {
    target: McpEndpoint,
    sender: SendRequest<Full<Bytes>>,
    session: Option<HeaderValue>,
    /// Negotiated revision; it may be older than ours.
    revision: HeaderValue,
    authorization: Option<HeaderValue>,
    last_id: u64,
    /// Connection task; ends with the client.
    driver: JoinSet<()>,
}

impl RigClient {
    /// Connects as soon as the server listens, and initializes a session.
    pub(crate) async fn open(target: &McpEndpoint, timeout: Duration) -> Result<Self> {
        Self::open_as(target, None, timeout).await
    }

    /// Connects with an optional bearer token.
    pub(crate) async fn open_as(target: &McpEndpoint, token: Option<&str>, timeout: Duration) -> Result<Self> {
        let (sender, driver) = connect(target.address, timeout).await?;
        let authorization = token.map(|token| HeaderValue::try_from(format!("Bearer {token}"))).transpose()?;
        let mut client = Self {
            target: target.clone(),
            sender,
            session: None,
            revision: HeaderValue::from_static(REVISION),
            authorization,
            last_id: 0,
            driver,
        };
        client.initialize().await?;
        Ok(client)
    }

    async fn initialize(&mut self) -> Result<()> {
        let client = json!({ "name": "bench", "version": "1" });
        let params = json!({ "protocolVersion": REVISION, "capabilities": {}, "clientInfo": client });
        let answer: Value = serde_json::from_slice(&self.request("initialize", &params.to_string()).await?)?;
        if let Some(revision) = answer["result"]["protocolVersion"].as_str() {
            self.revision = HeaderValue::try_from(revision)?;
        }
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()).await?;
        Ok(())
    }

    /// Returns the names of all tools.
    pub(crate) async fn tools(&mut self) -> Result<Vec<String>> {
        let answer: Value = serde_json::from_slice(&self.request("tools/list", "{}").await?)?;
        let tools = answer["result"]["tools"].as_array().context("no tools in the answer")?;
        Ok(tools.iter().filter_map(|tool| tool["name"].as_str()).map(Into::into).collect())
    }

    /// Calls a tool that returns its text.
    pub(crate) async fn echo(&mut self, tool: &str) -> Result<()> {
        let text = format!("marker-{}-{}", self.target.address.port(), self.last_id);
        let params = format!(r#"{{"name":"{tool}","arguments":{{"text":"{text}"}}}}"#);
        let answer = self.request("tools/call", &params).await?;
        ensure!(is_success(&answer, &text), "a wrong answer: {}", String::from_utf8_lossy(&answer));
        Ok(())
    }

    /// Calls a tool and returns any response.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let params = json!({ "name": tool, "arguments": arguments });
        self.last_id += 1;
        let body = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": "tools/call", "params": params });
        Ok(serde_json::from_slice(&self.send(body.to_string()).await?)?)
    }

    /// Sends a request; the response must have its id and a result.
    pub(crate) async fn request(&mut self, method: &str, params: &str) -> Result<Bytes> {
        self.last_id += 1;
        let id = self.last_id;
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let answer = self.send(body).await?;
        ensure!(is_result(&answer, id), "{method}: {}", String::from_utf8_lossy(&answer));
        Ok(answer)
    }

    async fn send(&mut self, body: String) -> Result<Bytes> {
        if self.sender.ready().await.is_err() {
            // Some servers close connections that were idle for a few seconds; the session continues.
            (self.sender, self.driver) = connect(self.target.address, Duration::ZERO).await?;
            self.sender.ready().await?;
        }
        let mut request = Request::post(self.target.path)
            .header(HOST, self.target.address.to_string())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", &self.revision);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(session) = &self.session {
            request = request.header(SESSION, session);
        }
        let response = self.sender.send_request(request.body(Full::from(body))?).await?;
        let status = response.status();
        if let Some(session) = response.headers().get(SESSION) {
            self.session = Some(session.clone());
        }
        let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(is_stream);
        let body = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            bail!("{status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(if is_stream { last_data(&body) } else { body })
    }
}

/// Connects as soon as something listens; returns the sender and the connection task.
pub(crate) async fn connect(address: SocketAddr, timeout: Duration) -> Result<(SendRequest<Full<Bytes>>, JoinSet<()>)> {
    let started = Instant::now();
    let stream = loop {
        match TcpStream::connect(address).await {
            Ok(stream) => break stream,
            Err(error) if started.elapsed() > timeout => {
                return Err(error).with_context(|| format!("nothing listens on {address}"));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    let mut driver = JoinSet::new();
    driver.spawn(async {
        // The pending request reports the failure.
        let _ = connection.await;
    });
    Ok((sender, driver))
}

fn is_stream(kind: &HeaderValue) -> bool {
    kind.as_bytes().starts_with(b"text/event-stream")
}

/// Returns `true` if it is the result of the request with this id. A large response is searched, not parsed: parsing
/// costs more than some of the measured gateways.
pub(crate) fn is_result(answer: &[u8], id: u64) -> bool {
    let number = format!("\"id\":{id}");
    let bears = memmem::find_iter(answer, number.as_bytes())
        .any(|at| !answer.get(at + number.len()).is_some_and(u8::is_ascii_digit));
    bears && memmem::find(answer, b"\"result\"").is_some()
}

/// Returns `true` if a tool returned the text without an error flag.
pub(crate) fn is_success(answer: &[u8], text: &str) -> bool {
    memmem::find(answer, text.as_bytes()).is_some() && memmem::find(answer, b"\"isError\":true").is_none()
}

/// Returns the data of a stream's last event, the response.
fn last_data(stream: &Bytes) -> Bytes {
    let mut lines = stream.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
    lines.next_back().map(|data| stream.slice_ref(data)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_another_request_is_none() {
        assert!(is_result(br#"{"jsonrpc":"2.0","id":12,"result":{}}"#, 12));
        assert!(is_result(br#"{"result":{},"id":12}"#, 12));
        assert!(!is_result(br#"{"jsonrpc":"2.0","id":123,"result":{}}"#, 12));
        assert!(!is_result(br#"{"jsonrpc":"2.0","id":12,"error":{}}"#, 12));
    }

    #[test]
    fn an_answer_without_the_text_or_with_an_error_is_no_success() {
        assert!(is_success(br#"{"content":[{"text":"marker-1"}],"isError":false}"#, "marker-1"));
        assert!(!is_success(br#"{"content":[{"text":"marker-2"}]}"#, "marker-1"));
        assert!(!is_success(br#"{"content":[{"text":"marker-1"}],"isError":true}"#, "marker-1"));
    }

    #[test]
    fn the_last_event_is_the_answer() {
        let stream = Bytes::from_static(b"id: 1\ndata: \n\nevent: message\r\ndata: {\"id\":1}\r\n\r\n");
        assert_eq!(last_data(&stream).trim_ascii(), b"{\"id\":1}");
    }
}
