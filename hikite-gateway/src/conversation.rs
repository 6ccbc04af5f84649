//! Conversations: a client's session, or the name that a client without sessions gives in `_meta`.

use hikite_core::caller::{Caller, SessionId};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;

/// Member of `_meta` in which a client without sessions names its conversation.
pub(crate) const NAME: &str = "hikite/conversation";
const NAME_CHARS: usize = 200;

/// One conversation of one caller, so that callers cannot use each other's names.
pub(crate) type Conversation = (Caller, ConversationName);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ConversationName {
    Session(SessionId),
    Named(Box<str>),
}

/// Returns the conversation of a request, if known, and removes its name from `_meta`, which is not forwarded.
pub(crate) fn conversation(params: &mut Object, context: &CallContext) -> Option<Conversation> {
    let mut meta = params.get("_meta").and_then(Raw::object);
    let given = meta.as_mut().and_then(|meta| meta.remove(NAME)).and_then(|name| name.text());
    if let Some(meta) = meta {
        if meta.is_empty() {
            params.remove("_meta");
        } else {
            params.set("_meta", meta);
        }
    }
    let name = match given.filter(|name| !name.is_empty() && name.chars().count() <= NAME_CHARS) {
        Some(name) => ConversationName::Named(name.into()),
        // A stateless session is reused by one request after another, of whatever conversation.
        None if context.accepts_input_required => return None,
        None => ConversationName::Session(context.session.id),
    };
    Some((context.session.caller.clone(), name))
}
