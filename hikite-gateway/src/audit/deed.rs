//! Audit records of authentication: logins, consents, client registrations and grants, accepted or refused. Records
//! hold ids and names only. Text typed by an unknown person is never recorded, because it may be a password in the
//! wrong field.

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, Kind};
use hikite_core::source::Origin;

use super::entry::{Asked, Entry, Who};
use super::guard::Guard;
use super::{OK, word};
use crate::gateway::Gateway;
use crate::scope;

/// Kind of these records.
const IDENTITY: &str = "identity";

/// An authentication event, accepted or refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deed<'a> {
    /// Identifier of the action, like `login.password`.
    pub action: &'static str,
    /// Subject of the user; empty if unknown.
    pub subject: &'a str,
    /// Id of the affected grant.
    pub grant: Option<&'a str>,
    /// Other affected object: a client id or the name of an issuer.
    pub what: &'a str,
    /// Reason of the refusal.
    pub refused: Option<Kind>,
}

impl Gateway {
    /// Records an event that is about to happen or was refused. Fails without a queue slot; the event must then not
    /// happen.
    pub async fn audit_deed(&self, deed: Deed<'_>) -> Result<(), Error> {
        let mut guard = self.deed(deed).await?;
        guard.outcome(deed.refused.map_or(OK, |kind| kind.face().code));
        drop(guard);
        self.release(Ok(())).await
    }

    /// Runs the work and records it with its outcome.
    pub async fn audit_deed_with<T>(
        &self,
        deed: Deed<'_>,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut guard = self.deed(deed).await?;
        let outcome = work.await;
        guard.with(|entry| entry.allowed = outcome.is_ok());
        guard.outcome(outcome.as_ref().map_or_else(word, |_| OK));
        drop(guard);
        self.release(outcome).await
    }

    async fn deed(&self, deed: Deed<'_>) -> Result<Guard<'_>, Error> {
        let place = self.auditor.place(self.limits.call_timeout).await?;
        let caller =
            Caller { scopes: Scopes::NONE, token: deed.grant.map(Into::into), ..Caller::named(deed.subject) };
        let origin = scope::current(Origin::clone).unwrap_or_default();
        let asked = Asked::ours(IDENTITY, deed.action, deed.what);
        let entry =
            Entry { asked, allowed: deed.refused.is_none(), ..Entry::new(Who::Alone(caller), &origin) };
        Ok(Guard::new(&self.auditor, place, entry))
    }
}
