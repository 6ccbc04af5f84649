//! The sessions that are open, as far as news concerns them: what changes while nobody asks.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use hikite_core::caller::{Caller, Scopes, Session, SessionId};
use hikite_core::json::Raw;
use hikite_core::listing::ListKind;
use hikite_core::source::Event;
use parking_lot::Mutex;

use crate::gateway::Gateway;
use crate::surface::Surfaces;

/// Where a session receives what it did not ask for. Must not block.
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

#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<SessionId, Member>>);

#[derive(Clone)]
struct Member {
    session: Arc<Session>,
    surfaces: Surfaces,
    inbox: Weak<dyn Inbox>,
}

/// A session's membership; dropping it ends the session for every source.
pub struct Joined {
    session: Arc<Session>,
    gateway: Weak<Gateway>,
}

impl std::fmt::Debug for Joined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Joined").field(&self.session.id).finish()
    }
}

impl Gateway {
    /// Makes a session known, so that it hears of changes.
    pub fn join(
        self: &Arc<Self>,
        session: Arc<Session>,
        surfaces: Surfaces,
        inbox: Weak<dyn Inbox>,
    ) -> Joined {
        let member = Member { session: Arc::clone(&session), surfaces, inbox };
        self.sessions.0.lock().insert(session.id, member);
        Joined { session, gateway: Arc::downgrade(self) }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let Some(gateway) = self.gateway.upgrade() else { return };
        gateway.sessions.0.lock().remove(&self.session.id);
        gateway.sent.forget(&self.session);
        gateway.shelf.release(self.session.id);
        for module in &gateway.snapshot().catalog.modules {
            module.source.release(self.session.id);
        }
    }
}

impl Sessions {
    /// Whether somebody listens there between its requests.
    pub(crate) fn is_heard(&self, session: SessionId) -> bool {
        self.0.lock().get(&session).is_some_and(|member| member.inbox.strong_count() > 0)
    }

    /// Hands an event of a source to those of the sessions it is meant for whose callers `may_hear` it.
    pub(crate) fn hand_on(&self, event: Event, may_hear: impl Fn(&Caller) -> bool) {
        match event {
            Event::ListChanged => {}
            Event::ResourceUpdated { sessions, params } => {
                for session in sessions {
                    self.deliver(session, Delivery::ResourceUpdated(params.clone()), &may_hear);
                }
            }
            Event::Log { session, params } => self.deliver(session, Delivery::Log(params), may_hear),
            Event::ElicitationComplete { session, params } => {
                self.deliver(session, Delivery::ElicitationComplete(params), may_hear);
            }
        }
    }

    /// Tells every session which of the lists that its caller sees are new. `may_differ` says, at little cost, whether any
    /// could be.
    pub(crate) fn tell_changes(
        &self,
        may_differ: impl Fn(&Caller) -> bool,
        changed: impl Fn(&Caller, Surfaces, ListKind) -> bool,
    ) {
        let members: Vec<Member> = self.0.lock().values().cloned().collect();
        for member in members {
            let Some(inbox) = member.inbox.upgrade() else { continue };
            let caller = &member.session.caller;
            if !caller.scopes.contains(Scopes::READ) || !may_differ(caller) {
                continue;
            }
            for kind in [ListKind::Tools, ListKind::Resources, ListKind::Prompts] {
                if changed(caller, member.surfaces, kind) {
                    inbox.deliver(Delivery::ListChanged(kind));
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
