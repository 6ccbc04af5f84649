//! Responses of the mock service, including broken ones.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

#[derive(Debug, Clone)]
pub struct MockResponse {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    pub(super) delay: Duration,
    pub(super) cut: Option<ResponseCut>,
}

/// Point at which the connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseCut {
    BeforeHeaders,
    AfterBytes(usize),
}

impl MockResponse {
    /// Creates a response without a body.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new(), delay: Duration::ZERO, cut: None }
    }

    pub fn json(value: &Value) -> Self {
        Self::bytes("application/json", value.to_string())
    }

    pub fn text(text: &str) -> Self {
        Self::bytes("text/plain; charset=utf-8", text.to_owned())
    }

    pub fn bytes(content_type: &str, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..Self::status(200) }.header("content-type", content_type)
    }

    /// Closes the connection without a response.
    pub fn cut() -> Self {
        Self { cut: Some(ResponseCut::BeforeHeaders), ..Self::status(200) }
    }

    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Waits before sending the first byte.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Closes the connection after this many bytes of a longer announced body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut = Some(ResponseCut::AfterBytes(bytes));
        self
    }
}
