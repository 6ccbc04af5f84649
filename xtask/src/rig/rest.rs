//! REST API client over one keep-alive connection. A response without a success status is an error.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response};
use tokio::task::JoinSet;

use super::client::connect;

const TIMEOUT: Duration = Duration::from_secs(5);

/// A REST API client over one keep-alive connection.
pub(crate) struct RestClient {
    address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
    authorization: Option<HeaderValue>,
    /// Connection task; ends with the client.
    _driver: JoinSet<()>,
}

impl RestClient {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let (sender, driver) = connect(address, TIMEOUT).await?;
        Ok(Self { address, sender, authorization: None, _driver: driver })
    }

    /// Adds a bearer token.
    pub(crate) fn with_token(mut self, token: &str) -> Result<Self> {
        self.authorization = Some(HeaderValue::try_from(format!("Bearer {token}"))?);
        Ok(self)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Bytes> {
        let request = Request::get(path).header(HOST, self.address.to_string());
        self.send(request.body(Full::default())?).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: String) -> Result<Bytes> {
        let request = self.posting(path, body)?;
        self.send(request).await
    }

    pub(crate) fn posting(&self, path: &str, body: String) -> Result<Request<Full<Bytes>>> {
        let request =
            Request::post(path).header(HOST, self.address.to_string()).header(CONTENT_TYPE, "application/json");
        Ok(request.body(Full::from(body))?)
    }

    /// Sends a request and returns any response, success or not.
    pub(crate) async fn ask(&mut self, mut request: Request<Full<Bytes>>) -> Result<Response<Bytes>> {
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Bytes> {
        let response = self.ask(request).await?;
        let status = response.status();
        let body = response.into_body();
        if !status.is_success() {
            bail!("{status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }
}
