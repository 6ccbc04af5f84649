//! Which conversation a request belongs to: a client's session, or what a client without one calls it.

use hikite_core::caller::{Caller, SessionId};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;

/// What a client without a session calls its conversation, in `_meta`.
pub(crate) const NAME: &str = "hikite/conversation";
const NAME_CHARS: usize = 200;

/// One conversation of one caller: nobody speaks for another.
pub(crate) type Conversation = (Caller, Name);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    Session(SessionId),
    Given(Box<str>),
}

/// The conversation that a request belongs to, if it is known. Its name is ours to read and goes no further.
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
        Some(name) => Name::Given(name.into()),
        // A lane is used by one request after the other, of whatever conversation.
        None if context.takes_rounds => return None,
        None => Name::Session(context.session.id),
    };
    Some((context.session.caller.clone(), name))
}
