//! Module descriptions that conversations received recently, so that they are not sent twice. Bounded in
//! conversations, entries per conversation and time; dropped with the session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Session;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::command::Detail;
use crate::conversation::{Conversation, Name};

/// Maximum number of conversations; the longest idle one is evicted first.
const CONVERSATIONS: usize = 1000;
/// Maximum number of descriptions per conversation.
const SHEETS: usize = 200;
/// Maximum total length of the tool names in one request; longer requests are not recorded.
const ASKED_BYTES: usize = 4096;
/// Age after which a description may have left the model's context.
const AGE: Duration = Duration::from_secs(30 * 60);

/// Request key: module, level of detail, and tools.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) module: Arc<str>,
    pub(super) detail: Detail,
    pub(super) tools: Arc<[String]>,
}

#[derive(Default)]
pub(crate) struct Sent(Mutex<HashMap<Conversation, Talk>>);

struct Talk {
    last: Instant,
    sheets: HashMap<Asked, (Box<str>, Instant)>,
}

impl Sent {
    /// Returns `true` if the last description sent for this request is recent and has this hash.
    pub(super) fn holds(&self, conversation: &Conversation, asked: &Asked, hash: &str) -> bool {
        let talks = self.0.lock();
        let sent = talks.get(conversation).and_then(|talk| talk.sheets.get(asked));
        sent.is_some_and(|(last, at)| **last == *hash && at.elapsed() < AGE)
    }

    pub(super) fn note(&self, conversation: &Conversation, asked: Asked, hash: &str) {
        // The request is a map key that contains names chosen by the client.
        if asked.tools.iter().map(String::len).sum::<usize>() > ASKED_BYTES {
            return;
        }
        let now = Instant::now();
        let mut talks = self.0.lock();
        if talks.len() >= CONVERSATIONS && !talks.contains_key(conversation) {
            talks.retain(|_, talk| now.duration_since(talk.last) < AGE);
            let silent = talks.iter().min_by_key(|(_, talk)| talk.last).map(|(name, _)| name.clone());
            if let Some(silent) = silent.filter(|_| talks.len() >= CONVERSATIONS) {
                talks.remove(&silent);
            }
        }
        let talk =
            talks.entry(conversation.clone()).or_insert_with(|| Talk { last: now, sheets: HashMap::new() });
        talk.last = now;
        if talk.sheets.len() >= SHEETS && !talk.sheets.contains_key(&asked) {
            let oldest = talk.sheets.iter().min_by_key(|(_, (_, at))| *at).map(|(asked, _)| asked.clone());
            oldest.and_then(|oldest| talk.sheets.remove(&oldest));
        }
        talk.sheets.insert(asked, (hash.into(), now));
    }

    /// Drops the entries of a session that ended.
    pub(crate) fn forget(&self, session: &Session) {
        self.0.lock().remove(&(session.caller.clone(), Name::Session(session.id)));
    }
}
