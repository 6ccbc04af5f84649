//! Client capabilities that a shared connection declares. A process started to read lists declares all of them, because
//! lists may depend on them, and stays for later calls. A process started for a call declares those of its caller.
//! Either is retired once its declaration exceeds what its callers support.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hikite_core::caller::{ClientCapabilities, Session};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;

use crate::connection::retire::RetireReason;
use crate::connection::{Connection, ConnectionPurpose};
use crate::definition::ConnectionSharing;
use crate::upstream::UpstreamInner;

/// Sets the capabilities of a shared connection: all for an unlisted stdio server, else those of the first caller,
/// unless the server is known to ask questions. A question goes only to the caller it belongs to; after the first
/// one, callers that can answer get their own processes.
pub(crate) fn declare(upstream: &UpstreamInner, connection: &Connection, caller: Option<&CallContext>) {
    let known =
        upstream.lists.sends_requests.load(Ordering::Relaxed) || upstream.capabilities_exceeded.load(Ordering::Relaxed);
    let unknown = upstream.definition.share == ConnectionSharing::Auto && !known;
    if unknown && upstream.definition.transport.is_stdio() && upstream.lists.listing.load().is_none() {
        connection.opened_for_lists.store(true, Ordering::Relaxed);
        let _ = connection.starter_capabilities.set(ClientCapabilities::all());
    } else if let Some(caller) = caller.filter(|caller| unknown && caller.session.client_capabilities.any()) {
        // Extensions are left out: only the client itself can use them.
        let client_capabilities = ClientCapabilities { extensions: None, ..caller.session.client_capabilities.clone() };
        let _ = connection.starter_capabilities.set(client_capabilities);
    }
}

/// Retires a shared connection whose declared capabilities exceed those of this session, and returns `true` if it
/// did. The process that read the lists serves all callers until it asks a question: most servers never do, and
/// would all be started twice.
pub(crate) fn retire_if_exceeded(upstream: &UpstreamInner, connection: &Arc<Connection>, session: &Session) -> bool {
    let Some(declared) = declared(connection) else { return false };
    let fits = connection.opened_for_lists.load(Ordering::Relaxed) || covers(&session.client_capabilities, declared);
    if !upstream.lists.sends_requests.load(Ordering::Relaxed) && fits {
        return false;
    }
    upstream.capabilities_exceeded.store(true, Ordering::Relaxed);
    // Another call may have retired it already; this one needs a new connection all the same.
    connection.retire(RetireReason::CapabilitiesExceeded);
    true
}

/// Retires a shared connection that declared capabilities: the server is now known to ask, and other callers may
/// lack them.
pub(crate) fn retire_declared(upstream: &UpstreamInner) {
    if let Some(connection) = upstream.slots.shared.live().filter(|connection| declared(connection).is_some()) {
        connection.retire(RetireReason::CapabilitiesExceeded);
    }
}

/// Returns the capabilities that a shared connection declared. A stateless one declares them per request.
fn declared(connection: &Connection) -> Option<&ClientCapabilities> {
    let shared = matches!(connection.purpose, ConnectionPurpose::Shared) && !connection.is_stateless();
    connection.starter_capabilities.get().filter(|_| shared)
}

/// Returns `true` if the client supports everything that was declared.
fn covers(can: &ClientCapabilities, declared: &ClientCapabilities) -> bool {
    has_all(can.sampling.as_ref(), declared.sampling.as_ref())
        && has_all(can.elicitation.as_ref(), declared.elicitation.as_ref())
        // `roots.listChanged` is not something that a server could ask for.
        && (can.roots.is_some() || declared.roots.is_none())
}

fn has_all(can: Option<&Raw>, declared: Option<&Raw>) -> bool {
    let Some(declared) = declared else { return true };
    let members = |raw: &Raw| raw.object().unwrap_or_default();
    // `form` is the default mode of elicitation.
    let has = |can: &Object, name: &str| name == "form" || can.get(name).is_some();
    can.is_some_and(|can| members(declared).iter().all(|(name, _)| has(&members(can), name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_covers_what_it_can_itself() {
        let client_capabilities = |text: &str| {
            let capabilities = Raw::parse(text.to_owned()).expect("valid").object().expect("an object");
            ClientCapabilities::read(&capabilities)
        };
        let covers = |can: &str, declared: &str| covers(&client_capabilities(can), &client_capabilities(declared));
        assert!(covers("{}", "{}") && covers(r#"{"roots":{}}"#, r#"{"roots":{"listChanged":true}}"#));
        assert!(covers(r#"{"sampling":{"tools":{}},"roots":{}}"#, r#"{"sampling":{}}"#));
        assert!(covers(r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#));
        assert!(!covers(r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{},"url":{}}}"#));
        assert!(!covers("{}", r#"{"roots":{}}"#) && !covers(r#"{"sampling":{}}"#, r#"{"elicitation":{}}"#));
    }
}
