//! What conversations have been sent of modules lately, so that it is not sent again. Bounded in conversations, in what is
//! remembered of each, and in time; gone with the session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Session;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::command::Detail;
use crate::conversation::{Conversation, Name};

/// Conversations that are remembered; the one that was silent for longest is let go of first.
const CONVERSATIONS: usize = 1000;
/// Sheets of each.
const SHEETS: usize = 200;
/// Of the names of tools in one question; a longer one is not remembered.
const ASKED_BYTES: usize = 4096;
/// What was sent longer ago may be out of the model's sight.
const AGE: Duration = Duration::from_secs(30 * 60);

/// What was asked for: a module, how far, and which of its tools.
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
    /// Whether the last that was sent of it, not long ago, is this.
    pub(super) fn holds(&self, conversation: &Conversation, asked: &Asked, hash: &str) -> bool {
        let talks = self.0.lock();
        let sent = talks.get(conversation).and_then(|talk| talk.sheets.get(asked));
        sent.is_some_and(|(last, at)| **last == *hash && at.elapsed() < AGE)
    }

    pub(super) fn note(&self, conversation: &Conversation, asked: Asked, hash: &str) {
        // What was asked is a key, and the names in it are the client's own.
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

    /// The session is over.
    pub(crate) fn forget(&self, session: &Session) {
        self.0.lock().remove(&(session.caller.clone(), Name::Session(session.id)));
    }
}
