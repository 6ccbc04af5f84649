//! What a shared process is told its callers can. One that is started to list what its server offers is told everything,
//! because what is offered may depend on it, and stays for the calls that follow. One that is started for a call is told
//! what that caller can, so that the first question of a server is not its first failure. Either is left as soon as it
//! no longer fits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hikite_core::caller::{Abilities, Session};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;

use crate::connection::{Connection, Purpose};
use crate::definition::Share;
use crate::retire::Why;
use crate::upstream::Inner;

impl Inner {
    /// A process that nobody knows to ask declares what its first caller can; where not even its lists are known, it
    /// declares everything. A question still goes only to the caller it belongs to; once one was asked, callers that can
    /// answer have processes of their own.
    pub(crate) fn declare_for(&self, connection: &Connection, asker: Option<&CallContext>) {
        let known = self.asks_back.load(Ordering::Relaxed) || self.outgrown.load(Ordering::Relaxed);
        let unknown = self.definition.share == Share::Auto && !known;
        if unknown && self.definition.transport.is_stdio() && self.listing.load().is_none() {
            connection.lists_first.store(true, Ordering::Relaxed);
            let _ = connection.starter.set(Abilities::all());
        } else if let Some(asker) = asker.filter(|asker| unknown && asker.session.abilities.any()) {
            // An extension is spoken by a client of its own accord; nobody else does so in its place.
            let abilities = Abilities { extensions: None, ..asker.session.abilities.clone() };
            let _ = connection.starter.set(abilities);
        }
    }

    /// Leaves a shared connection that declares too much for this session, or at all; whether it did. The process that
    /// listed serves everybody until it asks: most servers never do, and would all be started twice.
    pub(crate) fn leave_if_outgrown(&self, connection: &Arc<Connection>, session: &Session) -> bool {
        let Some(declared) = declared(connection) else { return false };
        let fits = connection.lists_first.load(Ordering::Relaxed) || covers(&session.abilities, declared);
        if !self.asks_back.load(Ordering::Relaxed) && fits {
            return false;
        }
        self.outgrown.store(true, Ordering::Relaxed);
        // Another call may have done so already; this one goes elsewhere all the same.
        connection.retire(Why::Outgrown);
        true
    }

    /// The server is known to ask: what it was told of its first caller does not hold for others.
    pub(crate) fn leave_declared(&self) {
        if let Some(connection) = self.shared.live().filter(|connection| declared(connection).is_some()) {
            connection.retire(Why::Outgrown);
        }
    }
}

/// What a shared connection declares; a stateless one says it with each request.
fn declared(connection: &Connection) -> Option<&Abilities> {
    let shared = matches!(connection.purpose, Purpose::Shared) && !connection.is_stateless();
    connection.starter.get().filter(|_| shared)
}

/// Whether a client can all that was declared.
fn covers(can: &Abilities, declared: &Abilities) -> bool {
    has_all(can.sampling.as_ref(), declared.sampling.as_ref())
        && has_all(can.elicitation.as_ref(), declared.elicitation.as_ref())
        // Whether its roots change is nothing that it could be asked.
        && (can.roots.is_some() || declared.roots.is_none())
}

fn has_all(can: Option<&Raw>, declared: Option<&Raw>) -> bool {
    let Some(declared) = declared else { return true };
    let members = |raw: &Raw| raw.object().unwrap_or_default();
    // Forms are what every client shows that says nothing else.
    let has = |can: &Object, name: &str| name == "form" || can.get(name).is_some();
    can.is_some_and(|can| members(declared).iter().all(|(name, _)| has(&members(can), name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_covers_what_it_can_itself() {
        let abilities = |text: &str| {
            let capabilities = Raw::parse(text.to_owned()).expect("valid").object().expect("an object");
            Abilities::read(&capabilities)
        };
        let covers = |can: &str, declared: &str| covers(&abilities(can), &abilities(declared));
        assert!(covers("{}", "{}") && covers(r#"{"roots":{}}"#, r#"{"roots":{"listChanged":true}}"#));
        assert!(covers(r#"{"sampling":{"tools":{}},"roots":{}}"#, r#"{"sampling":{}}"#));
        assert!(covers(r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#));
        assert!(!covers(r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{},"url":{}}}"#));
        assert!(!covers("{}", r#"{"roots":{}}"#) && !covers(r#"{"sampling":{}}"#, r#"{"elicitation":{}}"#));
    }
}
