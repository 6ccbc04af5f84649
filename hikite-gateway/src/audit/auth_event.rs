//! Audit records of authentication: logins, consents, client registrations and grants, accepted or refused. Records
//! hold ids and names only. Text typed by an unknown person is never recorded, because it may be a password in the
//! wrong field.

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::source::CallOrigin;

use super::entry::{AuditActor, AuditEntry, AuditedRequest};
use super::guard::RecordGuard;
use super::{Auditor, OK, word};
use crate::scope;

/// Kind of these records.
const IDENTITY: &str = "identity";

/// An authentication event, accepted or refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuthEvent<'a> {
    /// Identifier of the action, like `login.password`.
    pub action: &'static str,
    /// Subject of the user; empty if unknown.
    pub subject: &'a str,
    /// Id of the affected grant.
    pub grant: Option<&'a str>,
    /// Other affected object: a client id or the name of an issuer.
    pub what: &'a str,
    /// Reason of the refusal.
    pub refused: Option<ErrorKind>,
}

impl Auditor {
    /// Records an event that is about to happen or was refused. Fails without a queue slot; the event must then not
    /// happen.
    pub async fn record_auth_event(&self, auth_event: AuthEvent<'_>) -> Result<(), Error> {
        let mut guard = self.auth_event(auth_event).await?;
        guard.outcome(auth_event.refused.map_or(OK, |kind| kind.definition().code));
        drop(guard);
        self.release(Ok(())).await
    }

    /// Runs the work and records it with its outcome.
    pub async fn record_auth_event_with<T>(
        &self,
        auth_event: AuthEvent<'_>,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut guard = self.auth_event(auth_event).await?;
        let outcome = work.await;
        guard.with(|entry| entry.allowed = outcome.is_ok());
        guard.outcome(outcome.as_ref().map_or_else(word, |_| OK));
        drop(guard);
        self.release(outcome).await
    }

    async fn auth_event(&self, auth_event: AuthEvent<'_>) -> Result<RecordGuard<'_>, Error> {
        let slot = self.slot().await?;
        let caller = Caller {
            scopes: Scopes::NONE,
            token: auth_event.grant.map(Into::into),
            ..Caller::named(auth_event.subject)
        };
        let origin = scope::current(CallOrigin::clone).unwrap_or_default();
        let request = AuditedRequest::internal(IDENTITY, auth_event.action, auth_event.what);
        let entry = AuditEntry {
            request,
            allowed: auth_event.refused.is_none(),
            ..AuditEntry::new(AuditActor::NoSession(caller), &origin)
        };
        Ok(RecordGuard::new(self, slot, entry))
    }
}
