//! Consents: what a user let a client do, remembered for one client at one place it leads back to, and for one project where the
//! client asked for a project. The last answer of the user counts: answers are not added up.

use hikite_core::caller::Scopes;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_store::{Entry, Store};

use super::secret::hash_of;
use super::{CONSENT, Identity};
use crate::clock::now_ms;

/// Whose, which client's, and to where.
#[derive(Clone, Copy, Debug)]
pub struct Consent<'a> {
    pub subject: &'a str,
    pub client: &'a str,
    /// The origin of the address that the client is answered at.
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
    /// What was allowed before; nothing if nothing was.
    pub async fn consented(&self, consent: Consent<'_>) -> Result<Scopes, Error> {
        let entry = self.store.entry(CONSENT, &consent.id(), now_ms()).await?;
        Ok(entry.map_or(Scopes::NONE, |entry| read(&entry)))
    }

    /// From now on this is allowed, and nothing else that was allowed before.
    pub async fn consent(&self, consent: Consent<'_>, scopes: Scopes) -> Result<(), Error> {
        loop {
            let before = self.store.entry(CONSENT, &consent.id(), now_ms()).await?;
            let names: Vec<&str> = scopes.names().collect();
            let mut form = Object::default().with("client", consent.client).with("scopes", Raw::of(&names));
            if let Some(project) = consent.project {
                form.set("project", project);
            }
            let form = form.raw();
            let entry = Entry {
                kind: CONSENT,
                id: consent.id(),
                owner: consent.subject.to_owned(),
                form,
                version: before.as_ref().map_or(0, |entry| entry.version),
                created_at: now_ms(),
                expires_at: 0,
            };
            let done = match before {
                Some(_) => self.store.change_entry(&entry).await?,
                None => self.store.put_entry(&entry).await?,
            };
            if done {
                return Ok(());
            }
        }
    }
}

/// What users let a client do is forgotten.
pub(super) async fn forget(store: &Store, client: &str) -> Result<(), Error> {
    for entry in store.entries(CONSENT, None, now_ms()).await? {
        if entry.form.object().and_then(|form| form.text("client")).as_deref() == Some(client) {
            store.take_entry(CONSENT, &entry.id, now_ms()).await?;
        }
    }
    Ok(())
}

fn read(entry: &Entry) -> Scopes {
    let words = entry.form.object().and_then(|form| form.get("scopes")?.decode::<Vec<String>>().ok());
    let words = words.unwrap_or_default();
    words.iter().filter_map(|word| Scopes::parse(word)).fold(Scopes::NONE, Scopes::with)
}
