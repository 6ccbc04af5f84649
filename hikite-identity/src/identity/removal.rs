//! Removed users of external issuers. Their issuer would send them back at once, so the removal is remembered until an
//! admin lifts it.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::time::rfc3339;
use hikite_store::clock::now_ms;
use hikite_store::{DocumentRow, Store};

use super::user::{User, UserRegistry};
use super::{REMOVED, hash};

/// Message for removed users.
pub const REMOVED_MESSAGE: &str = "This account was removed from this server.";
const ID: &str = "rmv_";
const ID_CHARS: usize = 24;

/// Builds the record of a removed federated user; `None` for other users.
pub(super) fn of(user: &User) -> Option<DocumentRow> {
    let (issuer, number) = user.subject.split_once('#')?;
    let form = Object::default()
        .with("issuer", issuer)
        .with("subject", number)
        .with("name", &*user.name)
        .with("user", &*user.id);
    Some(DocumentRow {
        kind: REMOVED,
        id: id_of(&user.subject),
        owner: String::new(),
        document: form.raw(),
        version: 0,
        created_at: now_ms(),
        expires_at: 0,
    })
}

impl UserRegistry<'_> {
    /// Fails if the user was removed.
    pub(super) async fn check_not_removed(self, subject: &str) -> Result<(), Error> {
        if was_removed(&self.0.store, subject).await? {
            return Err(Error::new(ErrorKind::Authorization, REMOVED_MESSAGE).hint("Ask an admin to lift the removal."));
        }
        Ok(())
    }

    /// Returns `true` if a federated user was removed, according to memory.
    pub fn is_removed(self, subject: &str) -> bool {
        self.0.snapshot.load().is_removed(subject)
    }

    /// Returns the removed users, oldest first.
    pub async fn removal_objects(self) -> Result<Vec<Raw>, Error> {
        let entries = self.0.store.documents().all(REMOVED, None, now_ms()).await?;
        let object = |entry: &DocumentRow| {
            let form = entry.document.object().unwrap_or_default();
            let text = |member: &str| form.text(member).unwrap_or_default();
            Object::default()
                .with("id", entry.id.as_str())
                .with("name", text("name"))
                .with("issuer", text("issuer"))
                .with("subject", text("subject"))
                .with("user", text("user"))
                .with("removedAt", rfc3339(entry.created_at))
                .raw()
        };
        Ok(entries.iter().map(object).collect())
    }

    /// Lifts a removal, given its id or the user's former name. The person can then log in as a new user.
    pub async fn lift_removal(self, named: &str) -> Result<(), Error> {
        let entries = self.0.store.documents().all(REMOVED, None, now_ms()).await?;
        let is_meant = |entry: &&DocumentRow| {
            entry.id == named || entry.document.object().and_then(|form| form.text("name")).as_deref() == Some(named)
        };
        let mut meant = entries.iter().filter(is_meant);
        let unknown = || {
            Error::new(ErrorKind::NotFound, format!("There is no removed user `{named}`."))
                .hint("Run `hikite user removed` to see the removed users.")
        };
        let entry = meant.next().ok_or_else(unknown)?;
        if meant.next().is_some() {
            let error = Error::new(ErrorKind::Conflict, format!("More than one removed user was called `{named}`."));
            return Err(error.hint("Use the id that `hikite user removed` shows."));
        }
        self.0.store.documents().take(REMOVED, &entry.id, now_ms()).await?.ok_or_else(unknown)?;
        self.0.read_store().await
    }
}

/// Returns `true` if a federated user was removed, according to the store.
pub async fn was_removed(store: &Store, subject: &str) -> Result<bool, Error> {
    Ok(store.documents().get(REMOVED, &id_of(subject), now_ms()).await?.is_some())
}

pub(super) fn id_of(subject: &str) -> String {
    format!("{ID}{}", &hash(subject)[..ID_CHARS])
}
