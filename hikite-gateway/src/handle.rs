//! Result handles: results too long to return at once, stored for their caller and read in pages, through jq or by text
//! search. Bounded in number, size and age, and dropped with the conversation. To everybody else they look absent.

mod line;
mod page;
mod read;
mod result_store;
#[cfg(test)]
mod tests;
mod uri;

use std::sync::Arc;

use hikite_core::caller::{Caller, Session, SessionId};
use hikite_core::compact::Shape;
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;

use crate::conversation::{Conversation, ConversationName, conversation};
use crate::gateway::Gateway;

pub(crate) use read::is_on_first_page;
pub(crate) use result_store::{ResultStore, StoredResult};
pub(crate) use uri::{is_stored_result, process_in, result_uri};

/// The requested part of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultPart {
    /// Counted from 1.
    pub page: Option<u32>,
    pub jq: Option<String>,
    pub search: Option<String>,
}

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
    fn session(&self) -> Option<SessionId> {
        match self.conversation.as_ref()?.1 {
            ConversationName::Session(id) => Some(id),
            ConversationName::Named(_) => None,
        }
    }
}

impl Gateway {
    /// Stores a result to be read in parts. Returns its id, or `None` if there is no room. The result is dropped with
    /// the session of a client that listens for notifications; otherwise its age alone decides.
    pub(crate) fn store_result(&self, value: &Raw, shape: Option<&Shape>, holder: &ResultOwner) -> Option<Arc<str>> {
        let session = holder.session().filter(|session| self.sessions.is_listening(*session));
        self.result_store.store_result(value, shape, holder.caller(), session)
    }
}
