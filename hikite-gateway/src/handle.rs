//! Answers that were too long to give at once, kept for who asked: to be read on in pages, through jq or by a text that is
//! looked for. Bounded in number, size and age, and gone with the conversation. To everybody else they look as if they
//! had never been.

mod address;
mod line;
mod page;
mod read;
mod shelf;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use hikite_core::caller::{Caller, Session, SessionId};
use hikite_core::compact::Shape;
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;

use crate::conversation::{Conversation, Name, conversation};
use crate::gateway::Gateway;

pub(crate) use address::{address_of, is_kept, process_in};
pub(crate) use read::is_on_first_page;
pub(crate) use shelf::{Kept, Shelf};

/// Which part of a resource is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// From 1.
    pub page: Option<u32>,
    pub jq: Option<String>,
    pub search: Option<String>,
}

/// Whose an answer is that is kept, and with whose conversation it goes.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    session: Arc<Session>,
    pub(crate) conversation: Option<Conversation>,
}

impl Holder {
    /// Reads, and takes away, what the params say of their conversation.
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

    /// The session that the request came in, if that is its conversation.
    fn session(&self) -> Option<SessionId> {
        match self.conversation.as_ref()?.1 {
            Name::Session(id) => Some(id),
            Name::Given(_) => None,
        }
    }
}

impl Gateway {
    /// Keeps an answer to be read on; gives its id, or nothing if there is no room for it. It goes with the session of a
    /// client that listens; what a program got that sends one request after the other lives by its age alone.
    pub(crate) fn keep(&self, value: &Raw, shape: Option<&Shape>, holder: &Holder) -> Option<Arc<str>> {
        let session = holder.session().filter(|session| self.sessions.is_heard(*session));
        self.shelf.keep(value, shape, holder.caller(), session)
    }
}
