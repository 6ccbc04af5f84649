//! Inbox for questions of tasks on a server with sessions. The server asks them in separate requests; a client with
//! task support finds them in the task and answers by key. Until then they are suspended here.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, InputRequest, InputRequestKind};
use hikite_wire::message::MessageId;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::UpstreamError;
use crate::pending::{ActiveCall, PendingRequest};
use crate::tasks::conversion;

/// Maximum number of tasks per connection. The oldest without open questions is dropped first.
const INBOXES: usize = 64;
/// Maximum number of open questions per task.
const QUESTIONS: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct TaskInboxes(Mutex<InboxState>);

#[derive(Debug, Default)]
struct InboxState {
    by_task: HashMap<String, TaskInbox>,
    order: VecDeque<String>,
    /// Calls that wait for the result of a task.
    callers: HashMap<String, ActiveCall>,
}

#[derive(Debug, Default)]
struct TaskInbox {
    questions: Vec<SuspendedQuestion>,
    /// Number of questions so far, so that generated keys are unique.
    count: usize,
    /// Our request for the result, on whose stream the questions arrive.
    fetching: Option<(u64, DropGuard)>,
    outcome: Option<Result<Raw, UpstreamError>>,
    arrived: Arc<Notify>,
}

#[derive(Debug)]
struct SuspendedQuestion {
    key: Box<str>,
    id: MessageId,
    question: InputRequest,
}

/// Receiver of a task's question.
#[derive(Debug)]
pub(crate) enum QuestionReceiver {
    Call(ActiveCall),
    /// The next client that queries the task.
    TaskInbox(String),
}

impl TaskInboxes {
    /// Creates the inbox of a task. Returns the questions of a task that was dropped for it.
    pub(super) fn open(&self, task: &str) -> Vec<MessageId> {
        self.0.lock().make_room(task)
    }

    /// Removes the inbox of a task that is over or no longer wanted.
    pub(crate) fn close(&self, task: &str) {
        let mut state = self.0.lock();
        state.by_task.remove(task);
        state.order.retain(|other| other != task);
    }

    pub(crate) fn outcome(&self, task: &str) -> Option<Result<Raw, UpstreamError>> {
        self.0.lock().by_task.get(task)?.outcome.clone()
    }

    /// Routes questions of this task to this call while the guard lives.
    pub(crate) fn wait_for(&self, task: &str, context: &CallContext) -> TaskWaitGuard<'_> {
        let finished = CancellationToken::new();
        let call = ActiveCall { context: context.clone(), finished: finished.clone() };
        self.0.lock().callers.insert(task.to_owned(), call);
        TaskWaitGuard { inboxes: self, task: task.to_owned(), _over: finished.drop_guard() }
    }

    /// Returns the receiver of a question, if it belongs to a task: by the related task id, or by the stream it came
    /// on.
    pub(crate) fn addressee(&self, params: &Raw, origin: Option<u64>) -> Option<QuestionReceiver> {
        let named = conversion::related(params);
        let state = self.0.lock();
        if let Some(call) = named.as_ref().and_then(|task| state.callers.get(task)) {
            return Some(QuestionReceiver::Call(call.clone()));
        }
        let named = named.filter(|task| state.by_task.contains_key(task));
        let fetched = || {
            let fetching = |inbox: &TaskInbox| inbox.fetching.as_ref().map(|(id, _)| *id);
            state.by_task.iter().find(|(_, inbox)| origin.is_some() && fetching(inbox) == origin)
        };
        named.or_else(|| fetched().map(|(task, _)| task.clone())).map(QuestionReceiver::TaskInbox)
    }

    /// Registers the request for a task's result, unless it was sent before. Returns the signal of its questions, and the
    /// request with the token that cancels it.
    pub(super) fn begin_fetch(
        &self,
        task: &str,
        open: impl FnOnce() -> Option<PendingRequest>,
    ) -> (Arc<Notify>, Option<(PendingRequest, CancellationToken)>) {
        let mut state = self.0.lock();
        // Another task may have displaced the inbox.
        let Some(inbox) = state.by_task.get_mut(task) else { return Default::default() };
        let arrived = Arc::clone(&inbox.arrived);
        if inbox.fetching.is_some() || inbox.outcome.is_some() {
            return (arrived, None);
        }
        let Some(pending_request) = open() else { return (arrived, None) };
        let finished = CancellationToken::new();
        inbox.fetching = Some((pending_request.id, finished.clone().drop_guard()));
        (arrived, Some((pending_request, finished)))
    }

    /// Stores the outcome of that request. Transport failures are not stored, so that the result is requested again.
    pub(super) fn end_fetch(&self, task: &str, outcome: Option<Result<Raw, UpstreamError>>) {
        let mut state = self.0.lock();
        let Some(inbox) = state.by_task.get_mut(task) else { return };
        inbox.fetching = None;
        inbox.outcome = outcome.filter(|o| o.as_ref().map_or_else(|e| e.error.relayed.is_some(), |_| true));
        inbox.arrived.notify_waiters();
    }

    /// Suspends a question until a client queries its task. Returns `true` if there was room.
    pub(crate) fn suspend(&self, task: &str, id: MessageId, question: InputRequest) -> bool {
        let mut state = self.0.lock();
        let Some(inbox) = state.by_task.get_mut(task).filter(|inbox| inbox.questions.len() < QUESTIONS) else {
            return false;
        };
        inbox.count += 1;
        let key = match &question.key {
            Some(key) if inbox.questions.iter().all(|suspended| suspended.key != *key) => key.clone(),
            _ => format!("{}-{}", kind_name(question.kind), inbox.count).into(),
        };
        inbox.questions.push(SuspendedQuestion { key, id, question });
        inbox.arrived.notify_waiters();
        true
    }

    /// Removes a question that the server cancelled.
    pub(crate) fn withdraw(&self, id: &MessageId) {
        for inbox in self.0.lock().by_task.values_mut() {
            inbox.questions.retain(|suspended| suspended.id != *id);
        }
    }

    /// Removes an answered question and returns its request id.
    pub(super) fn take(&self, task: &str, key: &str) -> Option<MessageId> {
        let mut state = self.0.lock();
        let questions = &mut state.by_task.get_mut(task)?.questions;
        let index = questions.iter().position(|suspended| &*suspended.key == key)?;
        Some(questions.remove(index).id)
    }

    /// Returns the open questions as `inputRequests`, and those that the client cannot answer.
    pub(super) fn partition_questions(
        &self,
        task: &str,
        context: &CallContext,
    ) -> (Object, Vec<(MessageId, InputRequestKind)>) {
        let mut state = self.0.lock();
        let Some(inbox) = state.by_task.get_mut(task) else { return Default::default() };
        let (able, unable): (Vec<_>, Vec<_>) = std::mem::take(&mut inbox.questions)
            .into_iter()
            .partition(|suspended| suspended.question.kind.is_supported_by(&context.session));
        let requests = able.iter().fold(Object::default(), |all, suspended| {
            let request = Object::default()
                .with("method", suspended.question.kind.method())
                .with("params", conversion::question(&suspended.question.params));
            all.with(&suspended.key, request)
        });
        inbox.questions = able;
        (requests, unable.into_iter().map(|suspended| (suspended.id, suspended.question.kind)).collect())
    }
}

impl InboxState {
    fn make_room(&mut self, task: &str) -> Vec<MessageId> {
        if self.by_task.contains_key(task) {
            return Vec::new();
        }
        let mut unanswered = Vec::new();
        if self.order.len() >= INBOXES {
            let asks_nothing = |task: &String| self.by_task.get(task).is_none_or(|inbox| inbox.questions.is_empty());
            let leaving = self.order.iter().position(asks_nothing).unwrap_or(0);
            let inbox = self.order.remove(leaving).and_then(|task| self.by_task.remove(&task));
            let questions = inbox.map(|inbox| inbox.questions).unwrap_or_default();
            unanswered = questions.into_iter().map(|suspended| suspended.id).collect();
        }
        self.order.push_back(task.to_owned());
        self.by_task.insert(task.to_owned(), TaskInbox::default());
        unanswered
    }
}

/// Guard of a call that waits for a task.
#[derive(Debug)]
pub(crate) struct TaskWaitGuard<'a> {
    inboxes: &'a TaskInboxes,
    task: String,
    _over: DropGuard,
}

impl Drop for TaskWaitGuard<'_> {
    fn drop(&mut self) {
        self.inboxes.0.lock().callers.remove(&self.task);
    }
}

fn kind_name(kind: InputRequestKind) -> &'static str {
    match kind {
        InputRequestKind::Sampling => "sampling",
        InputRequestKind::Elicitation => "elicitation",
        InputRequestKind::Roots => "roots",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(key: Option<&str>) -> InputRequest {
        let params = Raw::parse(r#"{"message":"?"}"#).expect("valid");
        InputRequest { kind: InputRequestKind::Elicitation, params, key: key.map(Into::into) }
    }

    #[test]
    fn a_waiting_question_is_found_by_its_task_and_answered_once() {
        let inboxes = TaskInboxes::default();
        assert!(!inboxes.suspend("a", MessageId::number(1), question(None)));
        inboxes.open("a");
        let params = r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a"}}}"#;
        let params = Raw::parse(params).expect("valid");
        assert!(matches!(inboxes.addressee(&params, None), Some(QuestionReceiver::TaskInbox(task)) if task == "a"));
        assert!(inboxes.suspend("a", MessageId::number(1), question(None)));
        assert!(inboxes.suspend("a", MessageId::number(2), question(Some("who"))));
        assert_eq!(inboxes.take("a", "elicitation-1"), Some(MessageId::number(1)));
        assert_eq!(inboxes.take("a", "elicitation-1"), None);
        assert_eq!(inboxes.take("a", "who"), Some(MessageId::number(2)));
        inboxes.close("a");
        assert!(inboxes.addressee(&params, None).is_none());
    }

    #[test]
    fn the_oldest_task_makes_room() {
        let inboxes = TaskInboxes::default();
        for task in 0..=INBOXES {
            assert!(inboxes.open(&task.to_string()).is_empty());
        }
        assert!(!inboxes.suspend("0", MessageId::number(1), question(None)));
        assert!(inboxes.suspend("1", MessageId::number(1), question(None)));
    }

    #[test]
    fn a_task_with_questions_makes_room_last_and_its_questions_are_not_forgotten() {
        let inboxes = TaskInboxes::default();
        for task in 0..INBOXES {
            inboxes.open(&task.to_string());
        }
        assert!(inboxes.suspend("0", MessageId::number(7), question(None)));
        assert!(inboxes.open("new").is_empty());
        assert!(!inboxes.suspend("1", MessageId::number(8), question(None)), "the oldest without questions");
        for task in (2..INBOXES).map(|task| task.to_string()).chain(["new".to_owned()]) {
            assert!(inboxes.suspend(&task, MessageId::number(9), question(None)));
        }
        assert_eq!(inboxes.open("newer"), [MessageId::number(7)]);
    }
}
