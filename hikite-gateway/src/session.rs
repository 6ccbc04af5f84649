//! Open sessions and the notifications they receive.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use hikite_core::caller::{Caller, ClientCapabilities, Scopes, Session, SessionId};
use hikite_core::json::Raw;
use hikite_core::listing::ListKind;
use hikite_core::source::SourceEvent;
use parking_lot::Mutex;

use crate::surface::Surfaces;
use crate::viewer::Viewer;

/// Receiver of a session's notifications. Must not block.
pub trait Inbox: Send + Sync {
    fn deliver(&self, delivery: Delivery);
}

#[derive(Clone, Debug)]
pub enum Delivery {
    ListChanged(ListKind),
    ResourceUpdated(Raw),
    Log(Raw),
    ElicitationComplete(Raw),
}

/// Lists with change notifications, and the kinds whose changes count for each.
const NOTIFIED_LISTS: [(ListKind, &[ListKind]); 3] = [
    (ListKind::Tools, &[ListKind::Tools]),
    (ListKind::Resources, &[ListKind::Resources, ListKind::Templates, ListKind::Skills]),
    (ListKind::Prompts, &[ListKind::Prompts]),
];

#[derive(Default)]
pub(crate) struct OpenSessions(Mutex<HashMap<SessionId, RegisteredSession>>);

#[derive(Clone)]
pub(crate) struct RegisteredSession {
    pub(crate) session: Arc<Session>,
    pub(crate) surfaces: Surfaces,
    pub(crate) inbox: Weak<dyn Inbox>,
    /// Capabilities that a sessionless listener sends with its requests; these requests run in other sessions.
    pub(crate) requests: Option<ClientCapabilities>,
}

impl RegisteredSession {
    /// Returns the session whose lists this member follows: its own, or one of `among` that serves its requests.
    fn followed_session<'a>(&'a self, among: Option<&'a [Arc<Session>]>) -> Option<&'a Session> {
        let Some(among) = among else { return Some(&self.session) };
        let serves_it = |other: &&Arc<Session>| {
            let requests = self
                .requests
                .as_ref()
                .is_some_and(|client_capabilities| *client_capabilities == other.client_capabilities);
            other.id == self.session.id || requests && other.caller == self.session.caller
        };
        among.iter().find(serves_it).map(|session| &**session)
    }
}

impl OpenSessions {
    pub(crate) fn insert(&self, member: RegisteredSession) {
        self.0.lock().insert(member.session.id, member);
    }

    pub(crate) fn remove(&self, session: SessionId) {
        self.0.lock().remove(&session);
    }

    /// Returns `true` if the session has a live inbox.
    pub(crate) fn is_listening(&self, session: SessionId) -> bool {
        self.0.lock().get(&session).is_some_and(|member| member.inbox.strong_count() > 0)
    }

    pub(crate) fn get(&self, session: SessionId) -> Option<Arc<Session>> {
        self.0.lock().get(&session).map(|member| Arc::clone(&member.session))
    }

    /// Delivers a source's event to its target sessions whose callers pass `may_hear`.
    pub(crate) fn deliver_event(&self, event: SourceEvent, may_hear: impl Fn(&Caller) -> bool) {
        match event {
            SourceEvent::ListChanged | SourceEvent::SessionListChanged { .. } | SourceEvent::ListAnnounced { .. } => {}
            SourceEvent::ResourceUpdated { sessions, params } => {
                for session in sessions {
                    self.deliver(session, Delivery::ResourceUpdated(params.clone()), &may_hear);
                }
            }
            SourceEvent::Log { session, params } => self.deliver(session, Delivery::Log(params), may_hear),
            SourceEvent::ElicitationComplete { session, params } => {
                self.deliver(session, Delivery::ElicitationComplete(params), may_hear);
            }
        }
    }

    /// Notifies all sessions, or only these, of the lists that changed for them.
    pub(crate) fn notify_list_changes(
        &self,
        only: Option<&[SessionId]>,
        changed: impl Fn(Viewer<'_>, Surfaces, ListKind) -> bool,
    ) {
        let members: Vec<RegisteredSession> = self.0.lock().values().cloned().collect();
        let is_selected = |member: &&RegisteredSession| only.is_some_and(|only| only.contains(&member.session.id));
        let selected = members.iter().filter(is_selected).map(|member| Arc::clone(&member.session));
        let selected: Option<Vec<Arc<Session>>> = only.map(|_| selected.collect());
        for member in &members {
            let Some(inbox) = member.inbox.upgrade() else { continue };
            let Some(session) = member.followed_session(selected.as_deref()) else { continue };
            if !session.caller.scopes.contains(Scopes::READ) {
                continue;
            }
            // Templates and skills count as resources.
            for (told, kinds) in NOTIFIED_LISTS {
                if kinds.iter().any(|kind| changed(session.into(), member.surfaces, *kind)) {
                    inbox.deliver(Delivery::ListChanged(told));
                }
            }
        }
    }

    fn deliver(&self, session: SessionId, delivery: Delivery, may_hear: impl Fn(&Caller) -> bool) {
        let member = self.0.lock().get(&session).cloned();
        let Some(member) = member.filter(|member| may_hear(&member.session.caller)) else { return };
        if let Some(inbox) = member.inbox.upgrade() {
            inbox.deliver(delivery);
        }
    }
}
