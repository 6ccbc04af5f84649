//! An MCP client over one kept HTTP connection that checks every answer.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const SESSION: &str = "mcp-session-id";
const REVISION: &str = "2025-11-25";

/// Where an MCP server listens.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) path: &'static str,
}

pub(crate) struct Client {
    target: Target,
    sender: SendRequest<Full<Bytes>>,
    session: Option<HeaderValue>,
    /// Shown with every request.
    bearer: Option<HeaderValue>,
    last_id: u64,
    /// Moves the bytes; ends with the client.
    _driver: JoinSet<()>,
}

impl Client {
    /// Connects as soon as something listens, and says hello.
    pub(crate) async fn open(target: &Target, patience: Duration) -> Result<Self> {
        Self::open_as(target, patience, None).await
    }

    /// The same as whoever holds a token.
    pub(crate) async fn open_as(target: &Target, patience: Duration, token: Option<&str>) -> Result<Self> {
        let (sender, driver) = connect(target.address, patience).await?;
        let bearer = token.map(|token| HeaderValue::from_str(&format!("Bearer {token}"))).transpose()?;
        let target = target.clone();
        let mut client = Self { target, sender, session: None, bearer, last_id: 0, _driver: driver };
        client.hello().await?;
        Ok(client)
    }

    async fn hello(&mut self) -> Result<()> {
        let client = json!({ "name": "bench", "version": "1" });
        let params = json!({ "protocolVersion": REVISION, "capabilities": {}, "clientInfo": client });
        self.request("initialize", &params.to_string()).await?;
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()).await?;
        Ok(())
    }

    /// The names of all tools.
    pub(crate) async fn tools(&mut self) -> Result<Vec<String>> {
        let answer: Value = serde_json::from_slice(&self.request("tools/list", "{}").await?)?;
        let tools = answer["result"]["tools"].as_array().context("no tools in the answer")?;
        Ok(tools.iter().filter_map(|tool| tool["name"].as_str()).map(Into::into).collect())
    }

    /// Calls a tool that gives its text back.
    pub(crate) async fn echo(&mut self, tool: &str) -> Result<()> {
        let text = format!("marker-{}-{}", self.target.address.port(), self.last_id);
        let params = format!(r#"{{"name":"{tool}","arguments":{{"text":"{text}"}}}}"#);
        let answer = self.request("tools/call", &params).await?;
        let answer = std::str::from_utf8(&answer)?;
        ensure!(answer.contains(&text) && !answer.contains("\"isError\":true"), "a wrong answer: {answer}");
        Ok(())
    }

    /// Calls a tool, and gives whatever is answered.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let params = json!({ "name": tool, "arguments": arguments });
        self.last_id += 1;
        let body = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": "tools/call", "params": params });
        Ok(serde_json::from_slice(&self.send(body.to_string()).await?)?)
    }

    async fn request(&mut self, method: &str, params: &str) -> Result<Bytes> {
        self.last_id += 1;
        let id = self.last_id;
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let answer = self.send(body).await?;
        let text = std::str::from_utf8(&answer)?;
        ensure!(text.contains(&format!("\"id\":{id}")) && text.contains("\"result\""), "{method}: {text}");
        Ok(answer)
    }

    async fn send(&mut self, body: String) -> Result<Bytes> {
        self.sender.ready().await?;
        let mut request = Request::post(self.target.path)
            .header(HOST, self.target.address.to_string())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", REVISION);
        if let Some(session) = &self.session {
            request = request.header(SESSION, session);
        }
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        let response = self.sender.send_request(request.body(Full::from(body))?).await?;
        let status = response.status();
        if let Some(session) = response.headers().get(SESSION) {
            self.session = Some(session.clone());
        }
        let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        let body = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            bail!("{status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(if is_stream { last_data(&body) } else { body })
    }
}

/// A connection as soon as something listens, and what moves its bytes.
pub(crate) async fn connect(
    address: SocketAddr,
    patience: Duration,
) -> Result<(SendRequest<Full<Bytes>>, JoinSet<()>)> {
    let started = Instant::now();
    let stream = loop {
        match TcpStream::connect(address).await {
            Ok(stream) => break stream,
            Err(error) if started.elapsed() > patience => {
                return Err(error).with_context(|| format!("nothing listens on {address}"));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    let mut driver = JoinSet::new();
    driver.spawn(async {
        // The request that was under way tells of the failure.
        let _ = connection.await;
    });
    Ok((sender, driver))
}

/// The data of a stream's last event: the answer.
fn last_data(stream: &Bytes) -> Bytes {
    let mut lines = stream.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
    lines.next_back().map(|data| stream.slice_ref(data)).unwrap_or_default()
}
