//! Recent queries of conversations and the tools they returned, to attribute a successful call to a query.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hikite_core::hex::hex;
use hikite_core::key::ToolKey;
use hikite_core::search::Question;
use hikite_core::search::encoder::Vector;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::conversation::Conversation;

/// Maximum number of conversations; the longest idle one is evicted first.
const CONVERSATIONS: usize = 1000;
/// Maximum number of queries per conversation.
const QUESTIONS: usize = 8;
const SILENCE: Duration = Duration::from_secs(30 * 60);

/// The part of a query that the usage memory stores.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Remark {
    /// Hash of the terms, which identifies equal queries.
    pub(super) query: String,
    pub(super) terms: Vec<u64>,
    pub(super) model: String,
    pub(super) vector: Option<Vector>,
    pub(super) text: Option<String>,
}

impl Remark {
    /// Returns `None` if the query has no terms.
    pub(super) fn of(question: &Question, model: &str, text: Option<String>) -> Option<Self> {
        let terms = question.terms();
        let bytes: Vec<u8> = terms.iter().flat_map(|term| term.to_le_bytes()).collect();
        let query = hex(&Sha256::digest(&bytes)[..16]);
        let vector = question.vector().filter(|_| !model.is_empty()).cloned();
        let model = vector.as_ref().map(|_| model.to_owned()).unwrap_or_default();
        (!terms.is_empty()).then_some(Self { query, terms, model, vector, text })
    }
}

#[derive(Default)]
pub(super) struct Conversations(Mutex<HashMap<Conversation, Talk>>);

struct Talk {
    last: Instant,
    /// Newest last.
    shown: VecDeque<(Arc<Remark>, Vec<ToolKey>)>,
}

impl Conversations {
    /// Records the tools returned for a query.
    pub(super) fn note(&self, conversation: Conversation, remark: Remark, tools: Vec<ToolKey>) {
        let now = Instant::now();
        let mut talks = self.0.lock();
        if talks.len() >= CONVERSATIONS && !talks.contains_key(&conversation) {
            talks.retain(|_, talk| now.duration_since(talk.last) < SILENCE);
            let silent = talks.iter().min_by_key(|(_, talk)| talk.last).map(|(name, _)| name.clone());
            if let Some(silent) = silent.filter(|_| talks.len() >= CONVERSATIONS) {
                talks.remove(&silent);
            }
        }
        let talk = talks.entry(conversation).or_insert_with(|| Talk { last: now, shown: VecDeque::new() });
        talk.last = now;
        if talk.shown.len() == QUESTIONS {
            talk.shown.pop_front();
        }
        talk.shown.push_back((Arc::new(remark), tools));
    }

    /// Returns the latest query that returned this tool.
    pub(super) fn question_of(&self, conversation: &Conversation, tool: &ToolKey) -> Option<Arc<Remark>> {
        let talks = self.0.lock();
        let talk = talks.get(conversation).filter(|talk| talk.last.elapsed() < SILENCE)?;
        let shown = talk.shown.iter().rev().find(|(_, tools)| tools.contains(tool))?;
        Some(Arc::clone(&shown.0))
    }
}
