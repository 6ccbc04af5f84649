//! Suspended calls. A client without a session cannot be asked while its call runs; instead the call is suspended and
//! the client receives an `input_required` result with the questions and a continuation token. Its next request, with
//! answers and token, resumes the call once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::share::{Allowance, ShareHolder};
use hikite_core::signer::HmacSigner;
use hikite_core::source::{BoxFuture, InputRequest, InputRequestKind};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use crate::call_result::CallResult;
use crate::continuation::{ContinuationToken, ContinuationTokens, TokenBinding, refused};
use crate::share::{SharedSlot, SharedSlots, SlotKind, SlotUsage};
use hikite_store::clock::now_ms;

/// A running call with its outcome and its open questions. Dropping it cancels the call.
pub struct RunningCall<B> {
    /// The call's backchannel, redirected to each request that resumes the call.
    pub back: B,
    outcome: BoxFuture<'static, Result<CallResult, Error>>,
    questions: mpsc::Receiver<PendingInput>,
    open: Vec<KeyedInput>,
    /// Answers that arrived before their question was asked.
    prepared: HashMap<String, Raw>,
    asked: usize,
}

/// A question from the call to its client, with the channel for the answer.
#[derive(Debug)]
pub struct PendingInput {
    pub question: InputRequest,
    pub answer: oneshot::Sender<Result<Raw, Raw>>,
}

struct KeyedInput {
    key: String,
    asked: PendingInput,
}

impl<B> std::fmt::Debug for RunningCall<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningCall").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

/// Result of running a call until it ends or needs input.
#[derive(Debug)]
pub enum CallStep {
    Done(Result<CallResult, Error>),
    /// The call is suspended; holds the body of an `input_required` result.
    SuspendedCall(Object),
}

/// `_meta` members of a question that only make sense within the server's session: the progress token, the related
/// task, and our own key.
const SESSION_META: [&str; 3] = ["progressToken", "io.modelcontextprotocol/related-task", "hikite/key"];

/// Time to wait for further questions asked at the same moment.
const BATCH_DELAY: Duration = Duration::from_millis(20);

impl<B> RunningCall<B> {
    pub fn new(
        back: B,
        outcome: BoxFuture<'static, Result<CallResult, Error>>,
        questions: mpsc::Receiver<PendingInput>,
    ) -> Self {
        Self { back, outcome, questions, open: Vec::new(), prepared: HashMap::new(), asked: 0 }
    }

    /// Delivers the answers of a request to their questions; the rest is kept for later questions.
    pub fn answer(&mut self, responses: Option<&Raw>) {
        let responses = responses.and_then(Raw::object).unwrap_or_default();
        // An answer is an object; anything else leaves the question open.
        self.prepared = responses
            .iter()
            .filter(|(_, answer)| answer.is_object())
            .map(|(key, answer)| (key.to_owned(), answer.clone()))
            .collect();
        for open in std::mem::take(&mut self.open) {
            self.put(open);
        }
    }

    /// Runs the call until it ends or cannot continue without the client's answers. Returns the outcome, or `None`
    /// while questions are open.
    async fn advance(&mut self) -> Option<Result<CallResult, Error>> {
        loop {
            // The server may have cancelled a question.
            self.open.retain(|open| !open.asked.answer.is_closed());
            let wait_for_more = !self.open.is_empty();
            tokio::select! {
                biased;
                Some(asked) = self.questions.recv() => self.take(asked),
                outcome = &mut self.outcome => return Some(outcome),
                () = tokio::time::sleep(BATCH_DELAY), if wait_for_more => {
                    self.open.retain(|open| !open.asked.answer.is_closed());
                    if !self.open.is_empty() {
                        return None;
                    }
                }
            }
        }
    }

    fn take(&mut self, asked: PendingInput) {
        self.asked += 1;
        let mut key = key(&asked.question, self.asked);
        if self.open.iter().any(|open| open.key == key) {
            key = format!("{key}-{}", self.asked);
        }
        self.put(KeyedInput { key, asked });
    }

    fn put(&mut self, open: KeyedInput) {
        match self.prepared.remove(&open.key) {
            Some(answer) => drop(open.asked.answer.send(Ok(answer))),
            None => self.open.push(open),
        }
    }

    fn requests(&self) -> Object {
        self.open.iter().fold(Object::default(), |all, open| {
            let question = &open.asked.question;
            let params = without_session_members(&question.params);
            let request = Object::default().with("method", question.kind.method()).with("params", params);
            all.with(&open.key, request)
        })
    }
}

/// Returns a question's params without the members that refer to the server's session. Other `_meta` members stay.
fn without_session_members(params: &Raw) -> Object {
    let mut params = params.object().unwrap_or_default();
    for member in ["task", "elicitationId"] {
        params.remove(member);
    }
    let mut meta = params.remove("_meta").and_then(|meta| meta.object()).unwrap_or_default();
    for member in SESSION_META {
        meta.remove(member);
    }
    if !meta.is_empty() {
        params.set("_meta", meta);
    }
    params
}

/// Returns the key of a question: the server's own, else the name of the only requested property, else kind and
/// number.
fn key(question: &InputRequest, number: usize) -> String {
    if let Some(key) = &question.key {
        return key.to_string();
    }
    let word = match question.kind {
        InputRequestKind::Elicitation => {
            let schema = question.params.object().and_then(|params| params.get("requestedSchema")?.object());
            let properties = schema.and_then(|schema| schema.get("properties")?.object()).unwrap_or_default();
            if let (1, Some((name, _))) = (properties.len(), properties.iter().next()) {
                return name.to_owned();
            }
            "elicitation"
        }
        InputRequestKind::Sampling => "sampling",
        InputRequestKind::Roots => "roots",
    };
    format!("{word}-{number}")
}

/// The suspended calls of this process. `B` is the backchannel of each call.
pub struct SuspendedCalls<B> {
    calls: Mutex<HashMap<u64, SuspendedCall<B>>>,
    tokens: ContinuationTokens,
    /// Name of this process, part of each continuation token.
    process: Arc<str>,
    next: AtomicU64,
    /// Signals that a call was suspended.
    suspended: Notify,
    slots: SharedSlots<SlotOccupant>,
    lifetime: Duration,
}

struct SuspendedCall<B> {
    running: RunningCall<B>,
    until: Instant,
    _place: SharedSlot<SlotOccupant>,
}

/// The call that occupies a slot, and when it was suspended.
#[derive(Debug)]
struct SlotOccupant {
    id: u64,
    at: Instant,
}

const KIND: SlotKind = SlotKind {
    resource: "suspended_calls",
    limit: "suspended_calls",
    things: "calls waiting for an answer from their client",
};

impl<B> std::fmt::Debug for SuspendedCalls<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SuspendedCalls").finish_non_exhaustive()
    }
}

impl<B: Send + 'static> SuspendedCalls<B> {
    /// Creates the store. The allowance bounds the number of suspended calls, and `lifetime` the time of each.
    /// `process` is a name that no other process uses.
    pub fn new(seal: HmacSigner, process: Arc<str>, allowance: Allowance, lifetime: Duration) -> Arc<Self> {
        let tokens = ContinuationTokens::new(seal, lifetime);
        let (next, suspended) = (AtomicU64::new(1), Notify::new());
        let slots = SharedSlots::new(KIND, allowance);
        Arc::new(Self { calls: Mutex::default(), tokens, process, next, suspended, slots, lifetime })
    }

    /// Runs a call, and suspends it if it asks a question.
    pub async fn drive(&self, mut running: RunningCall<B>, purpose: TokenBinding<'_>) -> CallStep {
        if let Some(outcome) = running.advance().await {
            return CallStep::Done(outcome);
        }
        let requests = running.requests();
        let id = match self.suspend(running, purpose) {
            Ok(id) => id,
            Err(error) => return CallStep::Done(Err(error)),
        };
        self.suspended.notify_one();
        let place = ContinuationToken::SuspendedCall { process: Arc::clone(&self.process), id };
        let continuation = self.tokens.issue(&place, purpose, now_ms());
        let body = Object::default().with("resultType", "input_required").with("inputRequests", requests);
        CallStep::SuspendedCall(body.with("requestState", continuation.as_str()))
    }

    /// Suspends a call. A caller's own calls are never evicted, since a person may be answering; when all slots are
    /// taken, the oldest call of the holder with the most slots is cancelled.
    fn suspend(&self, running: RunningCall<B>, purpose: TokenBinding<'_>) -> Result<u64, Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (now, holder) = (Instant::now(), ShareHolder::from(purpose.caller));
        let gone = {
            let mut calls = self.calls.lock();
            let oldest = |occupant: &SlotOccupant, is_own: bool| (!is_own).then_some(occupant.at);
            let (place, out) = self.slots.take(&holder, SlotOccupant { id, at: now }, oldest)?;
            calls.insert(id, SuspendedCall { running, until: now + self.lifetime, _place: place });
            out.and_then(|out| calls.remove(&out.id))
        };
        // Outside the lock: dropping a call cancels it, also at its server.
        drop(gone);
        Ok(id)
    }

    pub fn usage(&self) -> SlotUsage {
        self.slots.usage()
    }

    /// Issues a continuation token for an upstream server's `requestState`.
    pub fn continuation(&self, state: String, purpose: TokenBinding<'_>) -> String {
        self.tokens.issue(&ContinuationToken::Server(state), purpose, now_ms())
    }

    /// Verifies and decodes a client's continuation token.
    pub fn read(&self, continuation: &str, purpose: TokenBinding<'_>) -> Result<ContinuationToken, Error> {
        self.tokens.read(continuation, purpose, now_ms())
    }

    /// Removes and returns a suspended call, if this process holds it.
    pub fn resume(&self, process: &str, id: u64) -> Result<RunningCall<B>, Error> {
        if *self.process != *process {
            return Err(refused());
        }
        self.calls.lock().remove(&id).map(|suspended| suspended.running).ok_or_else(refused)
    }

    /// Cancels all suspended calls.
    pub fn clear(&self) {
        let waiting = std::mem::take(&mut *self.calls.lock());
        drop(waiting);
    }

    /// Cancels each call when it expires. Never returns.
    pub async fn expire(&self) {
        loop {
            let next = self.calls.lock().values().map(|suspended| suspended.until).min();
            match next {
                Some(until) => tokio::time::sleep_until(until).await,
                None => self.suspended.notified().await,
            }
            let now = Instant::now();
            let late: Vec<SuspendedCall<B>> =
                self.calls.lock().extract_if(|_, suspended| suspended.until <= now).map(|(_, late)| late).collect();
            // Outside the lock: dropping a call cancels it, also at its server.
            drop(late);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikite_core::caller::Caller;

    fn suspended_calls(capacity: usize) -> Arc<SuspendedCalls<()>> {
        let allowance = Allowance::of(capacity, 50).without_reserve();
        SuspendedCalls::new(HmacSigner::new([7; 32]), "here".into(), allowance, Duration::from_secs(60))
    }

    #[test]
    fn a_question_keeps_what_its_server_says_in_meta() {
        let shown = |params: &str| without_session_members(&Raw::parse(params.to_owned()).expect("valid")).raw();
        let params = r#"{"message":"?","_meta":{"x":{"a":1},"progressToken":1,"hikite/key":"k"},"task":{}}"#;
        assert_eq!(shown(params).as_str(), r#"{"message":"?","_meta":{"x":{"a":1}}}"#);
        assert_eq!(shown(r#"{"_meta":{"progressToken":1},"elicitationId":"e"}"#).as_str(), "{}");
        assert_eq!(shown(r#"{"_meta":null}"#).as_str(), "{}");
    }

    /// Returns a call that asks one question and returns the answer.
    fn asking_call() -> RunningCall<()> {
        let (sender, questions) = mpsc::channel(4);
        let outcome = async move {
            let (answer, told) = oneshot::channel();
            let params = Raw::parse(r#"{"requestedSchema":{"properties":{"name":{}}}}"#).expect("valid");
            let question = InputRequest { kind: InputRequestKind::Elicitation, params, key: None };
            sender.send(PendingInput { question, answer }).await.expect("heard");
            Ok(told.await.expect("answered").expect("a result").into())
        };
        RunningCall::new((), Box::pin(outcome), questions)
    }

    struct SuspensionScene {
        owner: Caller,
        params: Object,
    }

    impl SuspensionScene {
        fn new() -> Self {
            Self { owner: Caller::owner(), params: Object::default().with("name", "t") }
        }

        fn purpose(&self) -> TokenBinding<'_> {
            TokenBinding { caller: &self.owner, method: "tools/call", params: &self.params }
        }

        async fn suspend(&self, suspended_calls: &Arc<SuspendedCalls<()>>) -> u64 {
            let CallStep::SuspendedCall(body) = suspended_calls.drive(asking_call(), self.purpose()).await else {
                panic!("it should wait")
            };
            let requests = body.get("inputRequests").expect("requests");
            assert!(requests.as_str().starts_with(r#"{"name":{"method":"elicitation/create""#));
            let continuation = body.text("requestState").expect("a continuation token");
            match suspended_calls.read(&continuation, self.purpose()) {
                Ok(ContinuationToken::SuspendedCall { process, id }) if &*process == "here" => id,
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspended_call_is_taken_up_again_once() {
        let (suspended_calls, scene) = (suspended_calls(10), SuspensionScene::new());
        let id = scene.suspend(&suspended_calls).await;
        let mut running = suspended_calls.resume("here", id).expect("taken up");
        running.answer(Some(&Raw::parse(r#"{"name":{"action":"accept"},"other":{}}"#).expect("valid")));
        let CallStep::Done(Ok(told)) = suspended_calls.drive(running, scene.purpose()).await else {
            panic!("it should be done")
        };
        assert_eq!(told.raw.as_str(), r#"{"action":"accept"}"#);
        assert!(suspended_calls.resume("here", id).is_err(), "used up");
        let id = scene.suspend(&suspended_calls).await;
        assert!(suspended_calls.resume("there", id).is_err(), "a call of another process");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_answer_leaves_the_question_open() {
        let (suspended_calls, scene) = (suspended_calls(10), SuspensionScene::new());
        let mut running = suspended_calls.resume("here", scene.suspend(&suspended_calls).await).expect("taken up");
        running.answer(Some(&Raw::parse(r#"{"name":12345,"wrong":{}}"#).expect("valid")));
        assert!(matches!(suspended_calls.drive(running, scene.purpose()).await, CallStep::SuspendedCall(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_may_come_before_the_question() {
        let (suspended_calls, scene) = (suspended_calls(10), SuspensionScene::new());
        let mut running = asking_call();
        running.answer(Some(&Raw::parse(r#"{"name":{"action":"decline"}}"#).expect("valid")));
        assert!(matches!(suspended_calls.drive(running, scene.purpose()).await, CallStep::Done(Ok(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_cannot_take_every_place() {
        let (suspended_calls, mut scene) = (suspended_calls(4), SuspensionScene::new());
        for caller in ["a", "a", "b"] {
            scene.owner = Caller::named(caller);
            scene.suspend(&suspended_calls).await;
        }
        scene.owner = Caller::named("a");
        let CallStep::Done(Err(refused)) = suspended_calls.drive(asking_call(), scene.purpose()).await else {
            panic!("it has its share")
        };
        assert_eq!(refused.kind, hikite_core::error::ErrorKind::RateLimit);
        for caller in ["b", "c"] {
            scene.owner = Caller::named(caller);
            scene.suspend(&suspended_calls).await;
        }
        assert_eq!(suspended_calls.calls.lock().len(), 4, "the oldest of those with most gave way");
        let held = suspended_calls.usage().top;
        assert_eq!(held.iter().map(|(_, held)| *held).collect::<Vec<_>>(), [2, 1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_wait_neither_for_ever_nor_in_any_number() {
        let (suspended_calls, scene) = (suspended_calls(1), SuspensionScene::new());
        let id = scene.suspend(&suspended_calls).await;
        assert!(matches!(suspended_calls.drive(asking_call(), scene.purpose()).await, CallStep::Done(Err(_))));
        let late = tokio::time::timeout(Duration::from_secs(61), suspended_calls.expire());
        assert!(late.await.is_err(), "it goes on");
        assert!(suspended_calls.resume("here", id).is_err(), "late");
        scene.suspend(&suspended_calls).await;
    }
}
