//! Consents of users, stored per client and redirect origin, and per project if the client asked for one. The latest
//! answer of the user replaces earlier ones.

use hikite_core::caller::Scopes;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_store::clock::now_ms;
use hikite_store::{DocumentRow, Store};

use super::secret::hash_of;
use super::{CONSENT, Identity};

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

impl Identity {
    /// Returns the scopes that the user has consented to, or none.
    pub async fn consented(&self, consent: Consent<'_>) -> Result<Scopes, Error> {
        let entry = self.store.entry(CONSENT, &consent.id(), now_ms()).await?;
        Ok(entry.map_or(Scopes::NONE, |entry| read(&entry)))
    }

    /// Stores a consent, replacing an earlier one.
    pub async fn consent(&self, consent: Consent<'_>, scopes: Scopes) -> Result<(), Error> {
        loop {
            let before = self.store.entry(CONSENT, &consent.id(), now_ms()).await?;
            let names: Vec<&str> = scopes.names().collect();
            let mut form = Object::default().with("client", consent.client).with("scopes", Raw::of(&names));
            if let Some(project) = consent.project {
                form.set("project", project);
            }
            let form = form.raw();
            let entry = DocumentRow {
                kind: CONSENT,
                id: consent.id(),
                owner: consent.subject.to_owned(),
                form,
                version: before.as_ref().map_or(0, |entry| entry.version),
                created_at: now_ms(),
                expires_at: 0,
            };
            let done = match before {
                Some(_) => self.store.change_document(&entry).await?,
                None => self.store.put_document(&entry).await?,
            };
            if done {
                return Ok(());
            }
        }
    }
}

/// Deletes all consents for a client.
pub(super) async fn forget(store: &Store, client: &str) -> Result<(), Error> {
    for entry in store.entries(CONSENT, None, now_ms()).await? {
        if entry.form.object().and_then(|form| form.text("client")).as_deref() == Some(client) {
            store.take_document(CONSENT, &entry.id, now_ms()).await?;
        }
    }
    Ok(())
}

fn read(entry: &DocumentRow) -> Scopes {
    let words = entry.form.object().and_then(|form| form.get("scopes")?.decode::<Vec<String>>().ok());
    let words = words.unwrap_or_default();
    words.iter().filter_map(|word| Scopes::parse(word)).fold(Scopes::NONE, Scopes::with)
}
