//! Result handles: results too long to return at once, stored for their caller and read in pages, through jq or by text
//! search. Bounded in number, size and age, and dropped with the conversation. To everybody else they look absent.

pub(crate) mod line;
pub(crate) mod page;
mod result_store;
#[cfg(test)]
mod tests;
mod uri;

use std::sync::Arc;

use hikite_core::caller::{Caller, Session, SessionId};
use hikite_core::json::Object;
use hikite_core::source::CallContext;

use crate::conversation::{Conversation, ConversationName, conversation};

pub(crate) use result_store::{ResultStore, StoredResult};
pub use uri::process_of_result;
pub(crate) use uri::{ResultUri, is_stored_result, joined, result_uri};

/// The owner of a stored result, and the conversation that it is dropped with.
#[derive(Clone, Debug)]
pub(crate) struct ResultOwner {
    session: Arc<Session>,
    pub(crate) conversation: Option<Conversation>,
}

impl ResultOwner {
    /// Reads the conversation from the params and removes it there.
    pub(crate) fn of(params: &mut Object, context: &CallContext) -> Self {
        let conversation = conversation(params, context);
        Self { session: Arc::clone(&context.session), conversation }
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.session.caller
    }

    pub(crate) fn viewer(&self) -> &Session {
        &self.session
    }

    /// Returns the session of the request, if that is its conversation.
    pub(crate) fn session(&self) -> Option<SessionId> {
        match self.conversation.as_ref()?.1 {
            ConversationName::Session(id) => Some(id),
            ConversationName::Named(_) => None,
        }
    }
}
