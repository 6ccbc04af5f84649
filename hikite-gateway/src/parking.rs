//! Suspended calls. A client without a session cannot be asked while its call runs; instead the call is suspended and
//! the client receives an `input_required` result with the questions and a continuation token. Its next request, with
//! answers and token, resumes the call once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::seal::Seal;
use hikite_core::share::{Allowance, ShareHolder};
use hikite_core::source::{BoxFuture, Question, QuestionKind};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use crate::clock::now_ms;
use crate::share::{Place, PlaceKind, Places, Usage};
use crate::ticket::{Purpose, Ticket, Tickets, refused};

/// A running call with its outcome and its open questions. Dropping it cancels the call.
pub struct Running<B> {
    /// The call's backchannel, redirected to each request that resumes the call.
    pub back: B,
    outcome: BoxFuture<'static, Result<Raw, Error>>,
    questions: mpsc::Receiver<Asked>,
    open: Vec<Open>,
    /// Answers that arrived before their question was asked.
    prepared: HashMap<String, Raw>,
    asked: usize,
}

/// A question from the call to its client, with the channel for the answer.
#[derive(Debug)]
pub struct Asked {
    pub question: Question,
    pub answer: oneshot::Sender<Result<Raw, Raw>>,
}

struct Open {
    key: String,
    asked: Asked,
}

impl<B> std::fmt::Debug for Running<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

/// Result of running a call until it ends or needs input.
#[derive(Debug)]
pub enum Step {
    Done(Result<Raw, Error>),
    /// The call is suspended; holds the body of an `input_required` result.
    Parked(Object),
}

/// `_meta` members of a question that only make sense within the server's session: the progress token, the related
/// task, and our own key.
const META_TIES: [&str; 3] = ["progressToken", "io.modelcontextprotocol/related-task", "hikite/key"];

/// Time to wait for further questions asked at the same moment.
const TOGETHER: Duration = Duration::from_millis(20);

impl<B> Running<B> {
    pub fn new(
        back: B,
        outcome: BoxFuture<'static, Result<Raw, Error>>,
        questions: mpsc::Receiver<Asked>,
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
    async fn advance(&mut self) -> Option<Result<Raw, Error>> {
        loop {
            // The server may have cancelled a question.
            self.open.retain(|open| !open.asked.answer.is_closed());
            let wait_for_more = !self.open.is_empty();
            tokio::select! {
                biased;
                Some(asked) = self.questions.recv() => self.take(asked),
                outcome = &mut self.outcome => return Some(outcome),
                () = tokio::time::sleep(TOGETHER), if wait_for_more => {
                    self.open.retain(|open| !open.asked.answer.is_closed());
                    if !self.open.is_empty() {
                        return None;
                    }
                }
            }
        }
    }

    fn take(&mut self, asked: Asked) {
        self.asked += 1;
        let mut key = key(&asked.question, self.asked);
        if self.open.iter().any(|open| open.key == key) {
            key = format!("{key}-{}", self.asked);
        }
        self.put(Open { key, asked });
    }

    fn put(&mut self, open: Open) {
        match self.prepared.remove(&open.key) {
            Some(answer) => drop(open.asked.answer.send(Ok(answer))),
            None => self.open.push(open),
        }
    }

    fn requests(&self) -> Object {
        self.open.iter().fold(Object::default(), |all, open| {
            let question = &open.asked.question;
            let params = without_ties(&question.params);
            let request = Object::default().with("method", question.kind.method()).with("params", params);
            all.with(&open.key, request)
        })
    }
}

/// Returns a question's params without the members that refer to the server's session. Other `_meta` members stay.
fn without_ties(params: &Raw) -> Object {
    let mut params = params.object().unwrap_or_default();
    for tie in ["task", "elicitationId"] {
        params.remove(tie);
    }
    let mut meta = params.remove("_meta").and_then(|meta| meta.object()).unwrap_or_default();
    for tie in META_TIES {
        meta.remove(tie);
    }
    if !meta.is_empty() {
        params.set("_meta", meta);
    }
    params
}

/// Returns the key of a question: the server's own, else the name of the only requested property, else kind and
/// number.
fn key(question: &Question, number: usize) -> String {
    if let Some(key) = &question.key {
        return key.to_string();
    }
    let word = match question.kind {
        QuestionKind::Elicitation => {
            let schema = question.params.object().and_then(|params| params.get("requestedSchema")?.object());
            let properties = schema.and_then(|schema| schema.get("properties")?.object()).unwrap_or_default();
            if let (1, Some((name, _))) = (properties.len(), properties.iter().next()) {
                return name.to_owned();
            }
            "elicitation"
        }
        QuestionKind::Sampling => "sampling",
        QuestionKind::Roots => "roots",
    };
    format!("{word}-{number}")
}

/// The suspended calls of this process. `B` is the backchannel of each call.
pub struct Parking<B> {
    calls: Mutex<HashMap<u64, Parked<B>>>,
    tickets: Tickets,
    /// Name of this process, part of each continuation token.
    process: Arc<str>,
    next: AtomicU64,
    /// Signals that a call was suspended.
    parked: Notify,
    places: Places<Since>,
    patience: Duration,
}

struct Parked<B> {
    running: Running<B>,
    until: Instant,
    _place: Place<Since>,
}

/// The call that occupies a slot, and when it was suspended.
#[derive(Debug)]
struct Since {
    id: u64,
    at: Instant,
}

const KIND: PlaceKind = PlaceKind {
    resource: "parked_calls",
    limit: "parked_calls",
    things: "calls that wait for an answer of their client",
};

impl<B> std::fmt::Debug for Parking<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parking").finish_non_exhaustive()
    }
}

impl<B: Send + 'static> Parking<B> {
    /// Creates the store. The allowance bounds the number of suspended calls, and `patience` the time of each.
    /// `process` is a name that no other process uses.
    pub fn new(seal: Seal, process: Arc<str>, allowance: Allowance, patience: Duration) -> Arc<Self> {
        let tickets = Tickets::new(seal, patience);
        let (next, parked) = (AtomicU64::new(1), Notify::new());
        let places = Places::new(KIND, allowance);
        Arc::new(Self { calls: Mutex::default(), tickets, process, next, parked, places, patience })
    }

    /// Runs a call, and suspends it if it asks a question.
    pub async fn drive(&self, mut running: Running<B>, purpose: Purpose<'_>) -> Step {
        if let Some(outcome) = running.advance().await {
            return Step::Done(outcome);
        }
        let requests = running.requests();
        let id = match self.park(running, purpose) {
            Ok(id) => id,
            Err(error) => return Step::Done(Err(error)),
        };
        self.parked.notify_one();
        let place = Ticket::Parked { process: Arc::clone(&self.process), id };
        let ticket = self.tickets.issue(&place, purpose, now_ms());
        let body = Object::default().with("resultType", "input_required").with("inputRequests", requests);
        Step::Parked(body.with("requestState", ticket.as_str()))
    }

    /// Suspends a call. A caller's own calls are never evicted, since a person may be answering; when all slots are
    /// taken, the oldest call of the holder with the most slots is cancelled.
    fn park(&self, running: Running<B>, purpose: Purpose<'_>) -> Result<u64, Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (now, holder) = (Instant::now(), ShareHolder::from(purpose.caller));
        let gone = {
            let mut calls = self.calls.lock();
            let oldest = |since: &Since, is_own: bool| (!is_own).then_some(since.at);
            let (place, out) = self.places.take(&holder, Since { id, at: now }, oldest)?;
            calls.insert(id, Parked { running, until: now + self.patience, _place: place });
            out.and_then(|out| calls.remove(&out.id))
        };
        // Outside the lock: dropping a call cancels it, also at its server.
        drop(gone);
        Ok(id)
    }

    pub fn usage(&self) -> Usage {
        self.places.usage()
    }

    /// Issues a continuation token for an upstream server's `requestState`.
    pub fn ticket(&self, state: String, purpose: Purpose<'_>) -> String {
        self.tickets.issue(&Ticket::Server(state), purpose, now_ms())
    }

    /// Verifies and decodes a client's continuation token.
    pub fn read(&self, ticket: &str, purpose: Purpose<'_>) -> Result<Ticket, Error> {
        self.tickets.read(ticket, purpose, now_ms())
    }

    /// Removes and returns a suspended call, if this process holds it.
    pub fn resume(&self, process: &str, id: u64) -> Result<Running<B>, Error> {
        if *self.process != *process {
            return Err(refused());
        }
        self.calls.lock().remove(&id).map(|parked| parked.running).ok_or_else(refused)
    }

    /// Cancels all suspended calls.
    pub fn clear(&self) {
        let waiting = std::mem::take(&mut *self.calls.lock());
        drop(waiting);
    }

    /// Cancels each call when it expires. Never returns.
    pub async fn expire(&self) {
        loop {
            let next = self.calls.lock().values().map(|parked| parked.until).min();
            match next {
                Some(until) => tokio::time::sleep_until(until).await,
                None => self.parked.notified().await,
            }
            let now = Instant::now();
            let late: Vec<Parked<B>> =
                self.calls.lock().extract_if(|_, parked| parked.until <= now).map(|(_, late)| late).collect();
            // Outside the lock: dropping a call cancels it, also at its server.
            drop(late);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikite_core::caller::Caller;

    fn parking(capacity: usize) -> Arc<Parking<()>> {
        let allowance = Allowance::of(capacity, 50).without_reserve();
        Parking::new(Seal::new([7; 32]), "here".into(), allowance, Duration::from_secs(60))
    }

    #[test]
    fn a_question_keeps_what_its_server_says_in_meta() {
        let shown = |params: &str| without_ties(&Raw::parse(params.to_owned()).expect("valid")).raw();
        let params = r#"{"message":"?","_meta":{"x":{"a":1},"progressToken":1,"hikite/key":"k"},"task":{}}"#;
        assert_eq!(shown(params).as_str(), r#"{"message":"?","_meta":{"x":{"a":1}}}"#);
        assert_eq!(shown(r#"{"_meta":{"progressToken":1},"elicitationId":"e"}"#).as_str(), "{}");
        assert_eq!(shown(r#"{"_meta":null}"#).as_str(), "{}");
    }

    /// Returns a call that asks one question and returns the answer.
    fn asking() -> Running<()> {
        let (sender, questions) = mpsc::channel(4);
        let outcome = async move {
            let (answer, told) = oneshot::channel();
            let params = Raw::parse(r#"{"requestedSchema":{"properties":{"name":{}}}}"#).expect("valid");
            let question = Question { kind: QuestionKind::Elicitation, params, key: None };
            sender.send(Asked { question, answer }).await.expect("heard");
            Ok(told.await.expect("answered").expect("a result"))
        };
        Running::new((), Box::pin(outcome), questions)
    }

    struct Scene {
        owner: Caller,
        params: Object,
    }

    impl Scene {
        fn new() -> Self {
            Self { owner: Caller::owner(), params: Object::default().with("name", "t") }
        }

        fn purpose(&self) -> Purpose<'_> {
            Purpose { caller: &self.owner, method: "tools/call", params: &self.params }
        }

        async fn park(&self, parking: &Arc<Parking<()>>) -> u64 {
            let Step::Parked(body) = parking.drive(asking(), self.purpose()).await else {
                panic!("it should wait")
            };
            let requests = body.get("inputRequests").expect("requests");
            assert!(requests.as_str().starts_with(r#"{"name":{"method":"elicitation/create""#));
            let ticket = body.text("requestState").expect("a ticket");
            match parking.read(&ticket, self.purpose()) {
                Ok(Ticket::Parked { process, id }) if &*process == "here" => id,
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_parked_call_is_taken_up_again_once() {
        let (parking, scene) = (parking(10), Scene::new());
        let id = scene.park(&parking).await;
        let mut running = parking.resume("here", id).expect("taken up");
        running.answer(Some(&Raw::parse(r#"{"name":{"action":"accept"},"other":{}}"#).expect("valid")));
        let Step::Done(Ok(told)) = parking.drive(running, scene.purpose()).await else {
            panic!("it should be done")
        };
        assert_eq!(told.as_str(), r#"{"action":"accept"}"#);
        assert!(parking.resume("here", id).is_err(), "used up");
        let id = scene.park(&parking).await;
        assert!(parking.resume("there", id).is_err(), "a call of another process");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_answer_leaves_the_question_open() {
        let (parking, scene) = (parking(10), Scene::new());
        let mut running = parking.resume("here", scene.park(&parking).await).expect("taken up");
        running.answer(Some(&Raw::parse(r#"{"name":12345,"wrong":{}}"#).expect("valid")));
        assert!(matches!(parking.drive(running, scene.purpose()).await, Step::Parked(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_may_come_before_the_question() {
        let (parking, scene) = (parking(10), Scene::new());
        let mut running = asking();
        running.answer(Some(&Raw::parse(r#"{"name":{"action":"decline"}}"#).expect("valid")));
        assert!(matches!(parking.drive(running, scene.purpose()).await, Step::Done(Ok(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_cannot_take_every_place() {
        let (parking, mut scene) = (parking(4), Scene::new());
        for caller in ["a", "a", "b"] {
            scene.owner = Caller::named(caller);
            scene.park(&parking).await;
        }
        scene.owner = Caller::named("a");
        let Step::Done(Err(refused)) = parking.drive(asking(), scene.purpose()).await else {
            panic!("it has its share")
        };
        assert_eq!(refused.kind, hikite_core::error::Kind::RateLimit);
        for caller in ["b", "c"] {
            scene.owner = Caller::named(caller);
            scene.park(&parking).await;
        }
        assert_eq!(parking.calls.lock().len(), 4, "the oldest of those with most gave way");
        let held = parking.usage().top;
        assert_eq!(held.iter().map(|(_, held)| *held).collect::<Vec<_>>(), [2, 1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_wait_neither_for_ever_nor_in_any_number() {
        let (parking, scene) = (parking(1), Scene::new());
        let id = scene.park(&parking).await;
        assert!(matches!(parking.drive(asking(), scene.purpose()).await, Step::Done(Err(_))));
        let late = tokio::time::timeout(Duration::from_secs(61), parking.expire());
        assert!(late.await.is_err(), "it goes on");
        assert!(parking.resume("here", id).is_err(), "late");
        scene.park(&parking).await;
    }
}
