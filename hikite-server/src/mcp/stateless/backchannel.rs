//! The backchannel of a stateless call: progress and logs go out on the request that currently runs it; questions are
//! returned in its result and answered by the next request.

use bytes::Bytes;
use hikite_core::json::{Object, Raw};
use hikite_core::log_level::LogLevel;
use hikite_core::source::{Backchannel, BoxFuture, InputRequest, InputRequestKind};
use hikite_gateway::PendingInput;
use hikite_wire::encode;
use hikite_wire::stateless::RequestClaim;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of questions in flight.
const QUESTIONS: usize = 16;
const INTERNAL_ERROR: i32 = -32603;
const INVALID_PARAMS: i32 = -32602;

#[derive(Debug)]
pub(crate) struct StatelessBackchannel {
    current: Mutex<CurrentRequest>,
    asked: mpsc::Sender<PendingInput>,
    /// `true` if the client supports URL elicitation.
    opens_urls: bool,
    missing_capability: Mutex<Option<InputRequestKind>>,
}

/// The request that currently runs the call.
#[derive(Debug)]
struct CurrentRequest {
    out: mpsc::Sender<Bytes>,
    token: Option<Raw>,
    level: Option<LogLevel>,
}

impl StatelessBackchannel {
    pub(crate) fn new(claim: &RequestClaim, out: mpsc::Sender<Bytes>) -> (Self, mpsc::Receiver<PendingInput>) {
        let (asked, questions) = mpsc::channel(QUESTIONS);
        let modes = claim.client_capabilities.elicitation.as_ref().and_then(Raw::object).unwrap_or_default();
        let current = Mutex::new(CurrentRequest::new(claim, out));
        let back =
            Self { current, asked, opens_urls: modes.get("url").is_some(), missing_capability: Mutex::default() };
        (back, questions)
    }

    /// Attaches the call to the next request.
    pub(crate) fn attach(&self, claim: &RequestClaim, out: mpsc::Sender<Bytes>) {
        *self.current.lock() = CurrentRequest::new(claim, out);
    }

    /// Returns the kind of question that was refused, if any.
    pub(crate) fn missing_capability(&self) -> Option<InputRequestKind> {
        *self.missing_capability.lock()
    }
}

impl CurrentRequest {
    fn new(claim: &RequestClaim, out: mpsc::Sender<Bytes>) -> Self {
        Self { out, token: claim.progress_token.clone(), level: claim.level }
    }

    fn send(&self, method: &str, params: &Raw) {
        let _ = self.out.try_send(encode::notification(method, Some(params)));
    }
}

impl Backchannel for StatelessBackchannel {
    fn progress(&self, params: Object) {
        let current = self.current.lock();
        if let Some(token) = &current.token {
            current.send("notifications/progress", &params.with("progressToken", token.clone()).raw());
        }
    }

    fn log(&self, params: Raw) {
        let level = params.object().and_then(|params| LogLevel::parse(&params.text("level")?));
        let current = self.current.lock();
        if current.level.is_some_and(|wanted| level.is_none_or(|level| level >= wanted)) {
            current.send("notifications/message", &params);
        }
    }

    fn capability_missing(&self, kind: InputRequestKind) {
        self.missing_capability.lock().get_or_insert(kind);
    }

    fn ask(&self, question: InputRequest) -> BoxFuture<'static, Result<Raw, Raw>> {
        let mode = question.params.object().and_then(|params| params.text("mode"));
        if mode.as_deref() == Some("url") && !self.opens_urls {
            return refused(INVALID_PARAMS, "The client does not open addresses (elicitation.url).");
        }
        let (answer, told) = oneshot::channel();
        if self.asked.try_send(PendingInput { question, answer }).is_err() {
            return refused(INTERNAL_ERROR, "The client can no longer be asked.");
        }
        Box::pin(async move {
            told.await.unwrap_or_else(|_| Err(encode::error_object(INTERNAL_ERROR, "The client did not answer.")))
        })
    }
}

fn refused(code: i32, reason: &'static str) -> BoxFuture<'static, Result<Raw, Raw>> {
    Box::pin(async move { Err(encode::error_object(code, reason)) })
}
