//! Consents of users, stored per client and redirect origin, and per project if the client asked for one. The latest
//! answer of the user replaces earlier ones.

use hikite_core::caller::Scopes;
use hikite_core::error::{Error, ErrorKind};
use hikite_store::clock::now_ms;
use hikite_store::{ConsentRow, OwnerCheck, Store};

use super::secret::hash_of;
use super::{ClientRegistry, read_scopes};

/// The key of a consent.
#[derive(Clone, Copy, Debug)]
pub struct Consent<'a> {
    pub subject: &'a str,
    pub client: &'a str,
    /// Origin of the redirect URI.
    pub place: &'a str,
    /// The only project that it is for.
    pub project: Option<&'a str>,
}

impl Consent<'_> {
    fn id(&self) -> String {
        match self.project {
            Some(project) => hash_of(&[self.subject, self.client, self.place, project]),
            None => hash_of(&[self.subject, self.client, self.place]),
        }
    }
}

impl ClientRegistry<'_> {
    /// Returns the scopes that the user has consented to, or none.
    pub async fn consented(self, consent: Consent<'_>) -> Result<Scopes, Error> {
        let stored = self.0.store.consents().get(&consent.id(), now_ms()).await?;
        Ok(stored.map_or(Scopes::NONE, |stored| read_scopes(&stored.scopes)))
    }

    /// Stores a consent, replacing an earlier one.
    pub async fn consent(self, consent: Consent<'_>, scopes: Scopes) -> Result<(), Error> {
        loop {
            let before = self.0.store.consents().get(&consent.id(), now_ms()).await?;
            let next = ConsentRow {
                id: consent.id(),
                subject: consent.subject.to_owned(),
                client: consent.client.to_owned(),
                scopes: scopes.names().map(str::to_owned).collect(),
                project: consent.project.map(str::to_owned),
                version: before.as_ref().map_or(0, |before| before.version),
                created_at: now_ms(),
            };
            let done = match before {
                Some(_) => self.0.store.consents().change(&next).await?,
                None => put(&self.0.store, &next).await?,
            };
            if done {
                return Ok(());
            }
        }
    }
}

/// Stores a new consent. Returns `false` if there is one already.
async fn put(store: &Store, consent: &ConsentRow) -> Result<bool, Error> {
    if store.consents().put_owned(consent, OwnerCheck::User).await? {
        return Ok(true);
    }
    if store.consents().get(&consent.id, now_ms()).await?.is_some() {
        return Ok(false);
    }
    let error = Error::new(ErrorKind::Authentication, "This user is not allowed to log in.");
    Err(error.hint("Ask the administrator of this server."))
}
