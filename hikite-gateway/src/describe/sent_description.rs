//! Module descriptions that conversations received recently, so that they are not sent twice. Bounded in
//! conversations, entries per conversation and time; dropped with the session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Session;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::command::Detail;
use crate::conversation::{Conversation, ConversationName};

/// Maximum number of conversations; the longest idle one is evicted first.
const CONVERSATIONS: usize = 1000;
/// Maximum number of descriptions per conversation.
const SHEETS: usize = 200;
/// Maximum total length of the tool names in one request; longer requests are not recorded.
const REQUEST_BYTES: usize = 4096;
/// Age after which a description may have left the model's context.
const AGE: Duration = Duration::from_secs(30 * 60);

/// Request key: module, level of detail, and tools.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DescriptionRequest {
    pub(crate) module: Arc<str>,
    pub(crate) detail: Detail,
    pub(crate) tools: Arc<[String]>,
}

#[derive(Default)]
pub(crate) struct SentDescriptions(Mutex<HashMap<Conversation, ConversationDescriptions>>);

struct ConversationDescriptions {
    last: Instant,
    descriptions: HashMap<DescriptionRequest, (Box<str>, Instant)>,
}

impl SentDescriptions {
    /// Returns `true` if the last description sent for this request is recent and has this hash.
    pub(crate) fn holds(&self, conversation: &Conversation, request: &DescriptionRequest, hash: &str) -> bool {
        let conversations = self.0.lock();
        let sent = conversations.get(conversation).and_then(|talk| talk.descriptions.get(request));
        sent.is_some_and(|(last, at)| **last == *hash && at.elapsed() < AGE)
    }

    pub(crate) fn note(&self, conversation: &Conversation, request: DescriptionRequest, hash: &str) {
        // The request is a map key that contains names chosen by the client.
        if request.tools.iter().map(String::len).sum::<usize>() > REQUEST_BYTES {
            return;
        }
        let now = Instant::now();
        let mut conversations = self.0.lock();
        if conversations.len() >= CONVERSATIONS && !conversations.contains_key(conversation) {
            conversations.retain(|_, talk| now.duration_since(talk.last) < AGE);
            let silent = conversations.iter().min_by_key(|(_, talk)| talk.last).map(|(name, _)| name.clone());
            if let Some(silent) = silent.filter(|_| conversations.len() >= CONVERSATIONS) {
                conversations.remove(&silent);
            }
        }
        let talk = conversations
            .entry(conversation.clone())
            .or_insert_with(|| ConversationDescriptions { last: now, descriptions: HashMap::new() });
        talk.last = now;
        if talk.descriptions.len() >= SHEETS && !talk.descriptions.contains_key(&request) {
            let oldest = talk.descriptions.iter().min_by_key(|(_, (_, at))| *at).map(|(request, _)| request.clone());
            oldest.and_then(|oldest| talk.descriptions.remove(&oldest));
        }
        talk.descriptions.insert(request, (hash.into(), now));
    }

    /// Drops the entries of a session that ended.
    pub(crate) fn forget(&self, session: &Session) {
        self.0.lock().remove(&(session.caller.clone(), ConversationName::Session(session.id)));
    }
}
