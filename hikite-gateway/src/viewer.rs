//! The viewer of a catalog: a caller and, if any, its session. A session whose upstream session is offered different
//! tools sees its own catalog.

use hikite_core::caller::{Caller, Session, SessionId};

#[derive(Clone, Copy, Debug)]
pub struct Viewer<'a> {
    pub caller: &'a Caller,
    pub session: Option<SessionId>,
}

impl<'a> From<&'a Caller> for Viewer<'a> {
    fn from(caller: &'a Caller) -> Self {
        Self { caller, session: None }
    }
}

impl<'a> From<&'a Session> for Viewer<'a> {
    fn from(session: &'a Session) -> Self {
        Self { caller: &session.caller, session: Some(session.id) }
    }
}
