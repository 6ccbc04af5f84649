//! Who looks: a caller, and the session it looks from where there is one. What a session's own session with a server
//! offers is seen from there alone.

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
