//! Inbox for questions of tasks on a server with sessions. The server asks them in separate requests; a client with
//! task support finds them in the task and answers by key. Until then they are suspended here.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, Question, QuestionKind};
use hikite_wire::encode;
use hikite_wire::message::Id;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::connection::Connection;
use crate::pending::Call;
use crate::tasks::form;

/// Maximum number of tasks per connection. The oldest without open questions is dropped first.
const DESKS: usize = 64;
/// Maximum number of open questions per task.
const QUESTIONS: usize = 32;
/// Time for a question to arrive after its task's result was requested.
const ARRIVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Desks(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    by_task: HashMap<String, Desk>,
    order: VecDeque<String>,
    /// Calls that wait for the result of a task.
    callers: HashMap<String, Call>,
}

#[derive(Debug, Default)]
struct Desk {
    questions: Vec<Parked>,
    /// Number of questions so far, so that generated keys are unique.
    count: usize,
    /// Our request for the result, on whose stream the questions arrive.
    fetching: Option<(u64, DropGuard)>,
    outcome: Option<Result<Raw, Error>>,
    arrived: Arc<Notify>,
}

#[derive(Debug)]
struct Parked {
    key: Box<str>,
    id: Id,
    question: Question,
}

/// Receiver of a task's question.
#[derive(Debug)]
pub(crate) enum Addressee {
    Call(Call),
    /// The next client that queries the task.
    Desk(String),
}

impl Desks {
    /// Creates the inbox of a task. Returns the questions of a task that was dropped for it.
    fn open(&self, task: &str) -> Vec<Id> {
        self.0.lock().make_room(task)
    }

    /// Removes the inbox of a task that is over or no longer wanted.
    pub(crate) fn close(&self, task: &str) {
        let mut state = self.0.lock();
        state.by_task.remove(task);
        state.order.retain(|other| other != task);
    }

    pub(crate) fn outcome(&self, task: &str) -> Option<Result<Raw, Error>> {
        self.0.lock().by_task.get(task)?.outcome.clone()
    }

    /// Routes questions of this task to this call while the guard lives.
    pub(crate) fn wait_for(&self, task: &str, context: &CallContext) -> Waiting<'_> {
        let over = CancellationToken::new();
        let call = Call { context: context.clone(), over: over.clone() };
        self.0.lock().callers.insert(task.to_owned(), call);
        Waiting { desks: self, task: task.to_owned(), _over: over.drop_guard() }
    }

    /// Returns the receiver of a question, if it belongs to a task: by the related task id, or by the stream it came
    /// on.
    pub(crate) fn addressee(&self, params: &Raw, origin: Option<u64>) -> Option<Addressee> {
        let named = form::related(params);
        let state = self.0.lock();
        if let Some(call) = named.as_ref().and_then(|task| state.callers.get(task)) {
            return Some(Addressee::Call(call.clone()));
        }
        let named = named.filter(|task| state.by_task.contains_key(task));
        let fetched = || {
            let fetching = |desk: &Desk| desk.fetching.as_ref().map(|(id, _)| *id);
            state.by_task.iter().find(|(_, desk)| origin.is_some() && fetching(desk) == origin)
        };
        named.or_else(|| fetched().map(|(task, _)| task.clone())).map(Addressee::Desk)
    }

    /// Suspends a question until a client queries its task. Returns `true` if there was room.
    pub(crate) fn park(&self, task: &str, id: Id, question: Question) -> bool {
        let mut state = self.0.lock();
        let Some(desk) = state.by_task.get_mut(task).filter(|desk| desk.questions.len() < QUESTIONS) else {
            return false;
        };
        desk.count += 1;
        let key = match &question.key {
            Some(key) if desk.questions.iter().all(|parked| parked.key != *key) => key.clone(),
            _ => format!("{}-{}", word(question.kind), desk.count).into(),
        };
        desk.questions.push(Parked { key, id, question });
        desk.arrived.notify_waiters();
        true
    }

    /// Removes a question that the server cancelled.
    pub(crate) fn withdraw(&self, id: &Id) {
        for desk in self.0.lock().by_task.values_mut() {
            desk.questions.retain(|parked| parked.id != *id);
        }
    }

    /// Removes an answered question and returns its request id.
    fn take(&self, task: &str, key: &str) -> Option<Id> {
        let mut state = self.0.lock();
        let questions = &mut state.by_task.get_mut(task)?.questions;
        let index = questions.iter().position(|parked| &*parked.key == key)?;
        Some(questions.remove(index).id)
    }

    /// Returns the open questions as `inputRequests`, and those that the client cannot answer.
    fn show(&self, task: &str, context: &CallContext) -> (Object, Vec<(Id, QuestionKind)>) {
        let mut state = self.0.lock();
        let Some(desk) = state.by_task.get_mut(task) else { return Default::default() };
        let (able, unable): (Vec<_>, Vec<_>) = std::mem::take(&mut desk.questions)
            .into_iter()
            .partition(|parked| parked.question.kind.can_ask(&context.session));
        let requests = able.iter().fold(Object::default(), |all, parked| {
            let request = Object::default()
                .with("method", parked.question.kind.method())
                .with("params", form::question(&parked.question.params));
            all.with(&parked.key, request)
        });
        desk.questions = able;
        (requests, unable.into_iter().map(|parked| (parked.id, parked.question.kind)).collect())
    }
}

impl State {
    fn make_room(&mut self, task: &str) -> Vec<Id> {
        if self.by_task.contains_key(task) {
            return Vec::new();
        }
        let mut unanswered = Vec::new();
        if self.order.len() >= DESKS {
            let asks_nothing =
                |task: &String| self.by_task.get(task).is_none_or(|desk| desk.questions.is_empty());
            let leaving = self.order.iter().position(asks_nothing).unwrap_or(0);
            let desk = self.order.remove(leaving).and_then(|task| self.by_task.remove(&task));
            let questions = desk.map(|desk| desk.questions).unwrap_or_default();
            unanswered = questions.into_iter().map(|parked| parked.id).collect();
        }
        self.order.push_back(task.to_owned());
        self.by_task.insert(task.to_owned(), Desk::default());
        unanswered
    }
}

impl Connection {
    /// Creates the inbox of a task, and refuses the questions of a task that was dropped for it.
    pub(super) fn open_desk(&self, task: &str) {
        for id in self.desks.open(task) {
            self.refuse(&id, "too many tasks wait for answers");
        }
    }

    /// Releases everything that belongs to a finished task.
    pub(super) fn task_is_over(&self, task: &str) {
        self.desks.close(task);
        self.running.end(task);
        self.rested();
    }

    /// Returns the open questions of a task, after requesting its result if it needs input.
    pub(super) async fn questions_of(
        self: &Arc<Self>,
        task: &str,
        waits: bool,
        context: &CallContext,
    ) -> Object {
        if !waits {
            return self.show_questions(task, context);
        }
        let arrived = self.fetch_questions(task);
        let arrival = arrived.notified();
        let questions = self.show_questions(task, context);
        if !questions.is_empty() {
            return questions;
        }
        let _ = tokio::time::timeout(ARRIVAL, arrival).await;
        self.show_questions(task, context)
    }

    /// Returns the open questions, and refuses those that the client cannot answer.
    fn show_questions(&self, task: &str, context: &CallContext) -> Object {
        let (questions, unable) = self.desks.show(task, context);
        for (id, kind) in unable {
            context.back.lacks(kind);
            self.refuse(&id, &format!("the client does not support `{}`", kind.method()));
        }
        questions
    }

    /// Answers questions of a task by key. Unknown keys are ignored.
    pub(super) fn answer_task(&self, task: &str, answers: &Object) {
        for (key, answer) in answers.iter() {
            if let Some(id) = self.desks.take(task, key) {
                self.send(encode::result(&id, answer));
            }
        }
    }

    /// Requests the result of a task in the background, once per task, because its questions arrive only then.
    fn fetch_questions(self: &Arc<Self>, task: &str) -> Arc<Notify> {
        self.open_desk(task);
        let mut state = self.desks.0.lock();
        // Another task may have displaced the inbox.
        let Some(desk) = state.by_task.get_mut(task) else { return Arc::default() };
        let arrived = Arc::clone(&desk.arrived);
        if desk.fetching.is_some() || desk.outcome.is_some() {
            return arrived;
        }
        let Ok(ticket) = self.ticket(None) else { return arrived };
        let over = CancellationToken::new();
        desk.fetching = Some((ticket.id, over.clone().drop_guard()));
        drop(state);
        let (connection, task) = (Arc::clone(self), task.to_owned());
        self.tasks.spawn(async move {
            let exchange = connection.exchange(ticket, "tasks/result", Some(form::named(&task)), None);
            let outcome = over.run_until_cancelled(exchange).await;
            let mut state = connection.desks.0.lock();
            if let Some(desk) = state.by_task.get_mut(&task) {
                desk.fetching = None;
                // Transport failures are not stored, so that the result is requested again.
                desk.outcome = outcome.filter(|o| o.as_ref().map_or_else(|e| e.relayed.is_some(), |_| true));
                desk.arrived.notify_waiters();
            }
        });
        arrived
    }
}

/// Guard of a call that waits for a task.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    desks: &'a Desks,
    task: String,
    _over: DropGuard,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.desks.0.lock().callers.remove(&self.task);
    }
}

fn word(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::Sampling => "sampling",
        QuestionKind::Elicitation => "elicitation",
        QuestionKind::Roots => "roots",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(key: Option<&str>) -> Question {
        let params = Raw::parse(r#"{"message":"?"}"#).expect("valid");
        Question { kind: QuestionKind::Elicitation, params, key: key.map(Into::into) }
    }

    #[test]
    fn a_parked_question_is_found_by_its_task_and_answered_once() {
        let desks = Desks::default();
        assert!(!desks.park("a", Id::number(1), question(None)));
        desks.open("a");
        let params = r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a"}}}"#;
        let params = Raw::parse(params).expect("valid");
        assert!(matches!(desks.addressee(&params, None), Some(Addressee::Desk(task)) if task == "a"));
        assert!(desks.park("a", Id::number(1), question(None)));
        assert!(desks.park("a", Id::number(2), question(Some("who"))));
        assert_eq!(desks.take("a", "elicitation-1"), Some(Id::number(1)));
        assert_eq!(desks.take("a", "elicitation-1"), None);
        assert_eq!(desks.take("a", "who"), Some(Id::number(2)));
        desks.close("a");
        assert!(desks.addressee(&params, None).is_none());
    }

    #[test]
    fn the_oldest_task_makes_room() {
        let desks = Desks::default();
        for task in 0..=DESKS {
            assert!(desks.open(&task.to_string()).is_empty());
        }
        assert!(!desks.park("0", Id::number(1), question(None)));
        assert!(desks.park("1", Id::number(1), question(None)));
    }

    #[test]
    fn a_task_with_questions_makes_room_last_and_its_questions_are_not_forgotten() {
        let desks = Desks::default();
        for task in 0..DESKS {
            desks.open(&task.to_string());
        }
        assert!(desks.park("0", Id::number(7), question(None)));
        assert!(desks.open("new").is_empty());
        assert!(!desks.park("1", Id::number(8), question(None)), "the oldest without questions");
        for task in (2..DESKS).map(|task| task.to_string()).chain(["new".to_owned()]) {
            assert!(desks.park(&task, Id::number(9), question(None)));
        }
        assert_eq!(desks.open("newer"), [Id::number(7)]);
    }
}
