//! Recent queries of conversations and the tools they returned, to attribute a successful call to a query.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hikite_core::hex::hex;
use hikite_core::key::ToolKey;
use hikite_core::search::SearchQuery;
use hikite_core::search::encoder::Vector;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::conversation::Conversation;

/// Maximum number of conversations; the longest idle one is evicted first.
const CONVERSATIONS: usize = 1000;
/// Maximum number of queries per conversation.
const QUESTIONS: usize = 8;
const IDLE: Duration = Duration::from_secs(30 * 60);

/// The part of a query that the usage memory stores.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueryRecord {
    /// Hash of the terms, which identifies equal queries.
    pub(super) query: String,
    pub(super) terms: Vec<u64>,
    pub(super) model: String,
    pub(super) vector: Option<Vector>,
    pub(super) text: Option<String>,
}

impl QueryRecord {
    /// Returns `None` if the query has no terms.
    pub(super) fn of(question: &SearchQuery, model: &str, text: Option<String>) -> Option<Self> {
        let terms = question.terms();
        let bytes: Vec<u8> = terms.iter().flat_map(|term| term.to_le_bytes()).collect();
        let query = hex(&Sha256::digest(&bytes)[..16]);
        let vector = question.vector().filter(|_| !model.is_empty()).cloned();
        let model = vector.as_ref().map(|_| model.to_owned()).unwrap_or_default();
        (!terms.is_empty()).then_some(Self { query, terms, model, vector, text })
    }
}

#[derive(Default)]
pub(super) struct QueryHistory(Mutex<HashMap<Conversation, ConversationQueries>>);

struct ConversationQueries {
    last: Instant,
    /// Newest last.
    shown: VecDeque<(Arc<QueryRecord>, Vec<ToolKey>)>,
}

impl QueryHistory {
    /// Records the tools returned for a query.
    pub(super) fn note(&self, conversation: Conversation, query_record: QueryRecord, tools: Vec<ToolKey>) {
        let now = Instant::now();
        let mut conversations = self.0.lock();
        if conversations.len() >= CONVERSATIONS && !conversations.contains_key(&conversation) {
            conversations.retain(|_, entry| now.duration_since(entry.last) < IDLE);
            let silent = conversations.iter().min_by_key(|(_, entry)| entry.last).map(|(name, _)| name.clone());
            if let Some(silent) = silent.filter(|_| conversations.len() >= CONVERSATIONS) {
                conversations.remove(&silent);
            }
        }
        let entry = conversations
            .entry(conversation)
            .or_insert_with(|| ConversationQueries { last: now, shown: VecDeque::new() });
        entry.last = now;
        if entry.shown.len() == QUESTIONS {
            entry.shown.pop_front();
        }
        entry.shown.push_back((Arc::new(query_record), tools));
    }

    /// Returns the latest query that returned this tool.
    pub(super) fn query_of(&self, conversation: &Conversation, tool: &ToolKey) -> Option<Arc<QueryRecord>> {
        let conversations = self.0.lock();
        let entry = conversations.get(conversation).filter(|entry| entry.last.elapsed() < IDLE)?;
        let shown = entry.shown.iter().rev().find(|(_, tools)| tools.contains(tool))?;
        Some(Arc::clone(&shown.0))
    }
}
