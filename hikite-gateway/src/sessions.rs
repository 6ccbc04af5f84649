//! Registration of sessions with the gateway, and what a session sets on every source. What belongs to a session ends
//! when its registration is dropped.

use std::sync::{Arc, Weak};

use hikite_core::caller::{ClientCapabilities, Session, SessionId};
use hikite_core::json::Object;
use hikite_core::source::{CallContext, Invocation, SourceMethod};

use crate::answers::Answers;
use crate::catalogs::Catalogs;
use crate::discovery::Discovery;
use crate::session::{Inbox, OpenSessions, RegisteredSession};
use crate::surface::Surfaces;

pub struct Sessions {
    pub(crate) open: Arc<OpenSessions>,
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) discovery: Arc<Discovery>,
    pub(crate) answers: Arc<Answers>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

/// A registered session; dropping it ends the session at every source.
pub struct SessionRegistration {
    session: Arc<Session>,
    sessions: Weak<Sessions>,
}

impl std::fmt::Debug for SessionRegistration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SessionRegistration").field(&self.session.id).finish()
    }
}

impl Sessions {
    /// Registers a session for notifications.
    pub fn join(
        self: &Arc<Self>,
        session: Arc<Session>,
        surfaces: Surfaces,
        inbox: Weak<dyn Inbox>,
    ) -> SessionRegistration {
        self.join_as(RegisteredSession { session, surfaces, inbox, requests: None })
    }

    /// Registers the notification stream of a sessionless client, whose requests carry these capabilities.
    pub fn join_listener(
        self: &Arc<Self>,
        session: Arc<Session>,
        surfaces: Surfaces,
        inbox: Weak<dyn Inbox>,
        requests: ClientCapabilities,
    ) -> SessionRegistration {
        self.join_as(RegisteredSession { session, surfaces, inbox, requests: Some(requests) })
    }

    fn join_as(self: &Arc<Self>, member: RegisteredSession) -> SessionRegistration {
        let session = Arc::clone(&member.session);
        self.open.insert(member);
        SessionRegistration { session, sessions: Arc::downgrade(self) }
    }

    /// Sets a client's log level on every source that it sees, including those not running yet.
    pub async fn set_level(&self, params: Object, context: &CallContext) {
        for module in self.catalogs.snapshot().view_of(&context.session.caller).modules() {
            let invocation = Invocation { method: SourceMethod::SetLevel, params: params.clone() };
            let _ = module.source.call(invocation, context.clone()).await;
        }
    }

    pub fn roots_changed(&self, session: SessionId) {
        for module in &self.catalogs.snapshot().catalog.modules {
            module.source.roots_changed(session);
        }
    }

    fn end(&self, session: &Session) {
        self.open.remove(session.id);
        self.catalogs.forget_overlay(session.id);
        self.discovery.sent.forget(session);
        self.answers.result_store.release(session.id);
        for module in &self.catalogs.snapshot().catalog.modules {
            module.source.release(session.id);
        }
    }
}

impl Drop for SessionRegistration {
    fn drop(&mut self) {
        if let Some(sessions) = self.sessions.upgrade() {
            sessions.end(&self.session);
        }
    }
}
