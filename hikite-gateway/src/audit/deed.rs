//! The record of who came in or tried to, and of what was given and taken back on the way: logins, consents, clients that
//! register, grants. Holds ids and names alone; what somebody typed who is not known is never in it, because it may be a
//! password in the wrong field.

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, Kind};
use hikite_core::source::Origin;

use super::entry::{Asked, Entry, Who};
use super::guard::Guard;
use super::{OK, word};
use crate::gateway::Gateway;
use crate::scope;

/// The kind of these records.
const IDENTITY: &str = "identity";

/// One thing that somebody did, or was refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deed<'a> {
    /// A word of ours like `login.password`.
    pub action: &'static str,
    /// Whose it is; nothing where nobody knows.
    pub subject: &'a str,
    /// The id of the grant that it concerns.
    pub grant: Option<&'a str>,
    /// What else it concerns: the id of a client, the name of an issuer.
    pub what: &'a str,
    /// Why it was refused.
    pub refused: Option<Kind>,
}

impl Gateway {
    /// Records what is about to be done, or was refused. What finds no place in the audit is not to be done.
    pub async fn audit_deed(&self, deed: Deed<'_>) -> Result<(), Error> {
        let mut guard = self.deed(deed).await?;
        guard.outcome(deed.refused.map_or(OK, |kind| kind.face().code));
        drop(guard);
        self.release(Ok(())).await
    }

    /// Does the work and records it with its outcome.
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
