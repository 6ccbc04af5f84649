//! Entries that are put in for a user who may still have them: the user is looked at in the same transaction, and held
//! there, so that nobody is locked out, removed or given another password between the look and the entry.

use sqlx::{AnyConnection, Row};

use crate::control::shown;
use crate::drawer::Entry;
use crate::error::StoreError;
use crate::store::Store;

/// The owner that a new entry must have when it is put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A user who is not locked out.
    User,
    /// Such a user, in this version.
    UserIn(u64),
    /// Such a user, or somebody who is no user at all.
    Anybody,
}

impl Store {
    /// True if a subject is that of a user, locked out or not.
    pub async fn is_user(&self, subject: &str) -> Result<bool, StoreError> {
        let Ok(subject) = self.keepable_text(subject) else { return Ok(false) };
        let query = sqlx::query("SELECT id FROM users WHERE subject = $1").bind(subject);
        Ok(query.fetch_optional(self.reader()).await.map_err(self.failed())?.is_some())
    }

    /// True if a subject is that of a user who is locked out.
    pub async fn is_locked_out(&self, subject: &str) -> Result<bool, StoreError> {
        let Ok(subject) = self.keepable_text(subject) else { return Ok(false) };
        let query = sqlx::query("SELECT id FROM users WHERE subject = $1 AND disabled <> 0").bind(subject);
        Ok(query.fetch_optional(self.reader()).await.map_err(self.failed())?.is_some())
    }

    /// As `put_entry`, and `false` as well if the owner is not who they must be.
    pub async fn put_entry_of(&self, entry: &Entry, holder: Holder) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let done = self.is_held(&mut transaction, &entry.owner, holder).await?
            && self.insert_entry(&mut transaction, entry).await?;
        self.conclude(transaction, done, &[(entry.kind, &entry.id)]).await
    }

    /// True if a subject is who it must be. If it is a user, nobody changes them until the transaction ends: the update
    /// changes nothing, and takes the lock on the row that PostgreSQL needs.
    pub(crate) async fn is_held(
        &self,
        connection: &mut AnyConnection,
        subject: &str,
        holder: Holder,
    ) -> Result<bool, StoreError> {
        let text = "UPDATE users SET version = version WHERE subject = $1 RETURNING version, disabled";
        let query = sqlx::query(text).bind(self.keepable_text(subject)?);
        let Some(row) = query.fetch_optional(connection).await.map_err(self.failed())? else {
            return Ok(holder == Holder::Anybody);
        };
        let version = shown(row.try_get(0).map_err(self.failed())?);
        let disabled = row.try_get::<i64, _>(1).map_err(self.failed())? != 0;
        let is_same = match holder {
            Holder::UserIn(before) => before == version,
            Holder::User | Holder::Anybody => true,
        };
        Ok(is_same && !disabled)
    }
}
