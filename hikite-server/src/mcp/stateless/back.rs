//! The backchannel of a stateless call: progress and logs go out on the request that currently runs it; questions are
//! returned in its result and answered by the next request.

use bytes::Bytes;
use hikite_core::json::{Object, Raw};
use hikite_core::level::Level;
use hikite_core::source::{Backchannel, BoxFuture, Question, QuestionKind};
use hikite_gateway::Asked;
use hikite_wire::encode;
use hikite_wire::stateless::Claim;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of questions in flight.
const QUESTIONS: usize = 16;
const CANNOT: i32 = -32603;
const UNSUPPORTED: i32 = -32602;

#[derive(Debug)]
pub(crate) struct Back {
    leg: Mutex<Leg>,
    asked: mpsc::Sender<Asked>,
    /// `true` if the client supports URL elicitation.
    opens_urls: bool,
    lacking: Mutex<Option<QuestionKind>>,
}

/// The request that currently runs the call.
#[derive(Debug)]
struct Leg {
    out: mpsc::Sender<Bytes>,
    token: Option<Raw>,
    level: Option<Level>,
}

impl Back {
    pub(crate) fn new(claim: &Claim, out: mpsc::Sender<Bytes>) -> (Self, mpsc::Receiver<Asked>) {
        let (asked, questions) = mpsc::channel(QUESTIONS);
        let modes = claim.abilities.elicitation.as_ref().and_then(Raw::object).unwrap_or_default();
        let leg = Mutex::new(Leg::new(claim, out));
        let back = Self { leg, asked, opens_urls: modes.get("url").is_some(), lacking: Mutex::default() };
        (back, questions)
    }

    /// Attaches the call to the next request.
    pub(crate) fn turn_to(&self, claim: &Claim, out: mpsc::Sender<Bytes>) {
        *self.leg.lock() = Leg::new(claim, out);
    }

    /// Returns the kind of question that was refused, if any.
    pub(crate) fn lacking(&self) -> Option<QuestionKind> {
        *self.lacking.lock()
    }
}

impl Leg {
    fn new(claim: &Claim, out: mpsc::Sender<Bytes>) -> Self {
        Self { out, token: claim.progress_token.clone(), level: claim.level }
    }

    fn send(&self, method: &str, params: &Raw) {
        let _ = self.out.try_send(encode::notification(method, Some(params)));
    }
}

impl Backchannel for Back {
    fn progress(&self, params: Object) {
        let leg = self.leg.lock();
        if let Some(token) = &leg.token {
            leg.send("notifications/progress", &params.with("progressToken", token.clone()).raw());
        }
    }

    fn log(&self, params: Raw) {
        let level = params.object().and_then(|params| Level::parse(&params.text("level")?));
        let leg = self.leg.lock();
        if leg.level.is_some_and(|wanted| level.is_none_or(|level| level >= wanted)) {
            leg.send("notifications/message", &params);
        }
    }

    fn lacks(&self, kind: QuestionKind) {
        self.lacking.lock().get_or_insert(kind);
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Raw, Raw>> {
        let mode = question.params.object().and_then(|params| params.text("mode"));
        if mode.as_deref() == Some("url") && !self.opens_urls {
            return refused(UNSUPPORTED, "the client does not open addresses (elicitation.url)");
        }
        let (answer, told) = oneshot::channel();
        if self.asked.try_send(Asked { question, answer }).is_err() {
            return refused(CANNOT, "the client cannot be asked any more");
        }
        Box::pin(async move {
            told.await.unwrap_or_else(|_| Err(encode::error_object(CANNOT, "the client did not answer")))
        })
    }
}

fn refused(code: i32, reason: &'static str) -> BoxFuture<'static, Result<Raw, Raw>> {
    Box::pin(async move { Err(encode::error_object(code, reason)) })
}
