//! Small JSON documents with an owner, by kind. A change names the version that it replaces, so that of two concurrent
//! changes one fails; a one-time document is taken by exactly one caller.

use hikite_core::json::Raw;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::database::Database;
use crate::error::StoreError;
use crate::owner::OwnerCheck;
use crate::schema::{shown, stored};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentRow {
    pub kind: &'static str,
    pub id: String,
    /// The subject that owns it; may be empty.
    pub owner: String,
    pub document: Raw,
    /// Starts at 1 and grows with every change.
    pub version: u64,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970; zero means never.
    pub expires_at: u64,
}

const COLUMNS: &str = "id, owner, document, version, created_at, expires_at";

/// The documents of a store.
#[derive(Debug)]
pub struct Documents<'a>(pub(crate) &'a Database);

impl Documents<'_> {
    /// Returns a document, if it exists and has not expired.
    pub async fn get(&self, kind: &'static str, id: &str, now: u64) -> Result<Option<DocumentRow>, StoreError> {
        let Ok(id) = self.0.checked_text(id) else { return Ok(None) };
        let text = format!(
            "SELECT {COLUMNS} FROM documents WHERE kind = $1 AND id = $2 AND (expires_at = 0 OR expires_at > $3)"
        );
        let query = sqlx::query(&text).bind(kind).bind(id).bind(stored(now));
        let row = query.fetch_optional(self.0.reader()).await.map_err(self.0.failed())?;
        Ok(row.and_then(|row| read(kind, &row)))
    }

    /// Returns all documents of a kind that have not expired, oldest first; optionally of one owner.
    pub async fn all(&self, kind: &'static str, owner: Option<&str>, now: u64) -> Result<Vec<DocumentRow>, StoreError> {
        let of_owner = if owner.is_some() { "owner = $3" } else { "$3 = $3" };
        let text = format!(
            "SELECT {COLUMNS} FROM documents WHERE kind = $1 AND (expires_at = 0 OR expires_at > $2) AND {of_owner} \
             ORDER BY created_at, id"
        );
        let Ok(owner) = self.0.checked_text(owner.unwrap_or_default()) else { return Ok(Vec::new()) };
        let query = sqlx::query(&text).bind(kind).bind(stored(now)).bind(owner);
        let rows = query.fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        Ok(rows.iter().filter_map(|row| read(kind, row)).collect())
    }

    /// Inserts a document with version 1. Returns `false` if the id exists, expired or not.
    pub async fn put(&self, entry: &DocumentRow) -> Result<bool, StoreError> {
        let mut transaction = self.0.begin().await?;
        let done = self.insert(&mut transaction, entry).await?;
        self.0.commit_change(transaction, done, &[(entry.kind, &entry.id)]).await
    }

    /// Inserts a document with version 1. Returns `false` if its id exists or its owner does not match `holder`.
    pub async fn put_owned(&self, entry: &DocumentRow, holder: OwnerCheck) -> Result<bool, StoreError> {
        let mut transaction = self.0.begin().await?;
        let done = self.0.lock_owner(&mut transaction, &entry.owner, holder).await?
            && self.insert(&mut transaction, entry).await?;
        self.0.commit_change(transaction, done, &[(entry.kind, &entry.id)]).await
    }

    /// Adds to counters in a document, which is created if missing. Does not increment the revision, because counters
    /// change constantly.
    pub async fn add_counts(
        &self,
        kind: &'static str,
        id: &str,
        more: &[(&'static str, u64)],
        (now, expires_at): (u64, u64),
    ) -> Result<(), StoreError> {
        loop {
            let before = self.get(kind, id, now).await?;
            let mut document = before.as_ref().and_then(|entry| entry.document.object()).unwrap_or_default();
            for (name, count) in more {
                let sum = document.get(name).and_then(|sum| sum.decode::<u64>().ok()).unwrap_or_default();
                document.set(name, Raw::of(&sum.saturating_add(*count)));
            }
            let document = document.raw();
            let done = if let Some(before) = before {
                let query = sqlx::query(
                    "UPDATE documents SET document = $1, version = version + 1 WHERE kind = $2 AND id = $3 AND version = $4",
                );
                let query = query.bind(self.0.text_of(&document)?).bind(kind).bind(id).bind(stored(before.version));
                query.execute(self.0.writer()).await.map_err(self.0.failed())?.rows_affected() > 0
            } else {
                let (id, owner) = (id.to_owned(), String::new());
                let entry = DocumentRow { kind, id, owner, document, version: 1, created_at: now, expires_at };
                let mut transaction = self.0.begin().await?;
                let done = self.insert(&mut transaction, &entry).await?;
                transaction.commit().await.map_err(self.0.failed())?;
                done
            };
            if done {
                return Ok(());
            }
        }
    }

    /// Changes content, owner and expiry of a document in the version that `entry` names. Returns `false` if it has
    /// another version or is gone. The version grows by one.
    pub async fn change(&self, entry: &DocumentRow) -> Result<bool, StoreError> {
        let query = sqlx::query(
            "UPDATE documents SET owner = $1, document = $2, expires_at = $3, version = version + 1 \
             WHERE kind = $4 AND id = $5 AND version = $6",
        );
        let query = query
            .bind(self.0.checked_text(&entry.owner)?)
            .bind(self.0.text_of(&entry.document)?)
            .bind(stored(entry.expires_at))
            .bind(entry.kind)
            .bind(self.0.checked_text(&entry.id)?)
            .bind(stored(entry.version));
        let mut transaction = self.0.begin().await?;
        let done = query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        self.0.commit_change(transaction, done.rows_affected() > 0, &[(entry.kind, &entry.id)]).await
    }

    /// Removes and returns a document; only one of several concurrent callers gets it. Expired ones are not returned.
    pub async fn take(&self, kind: &'static str, id: &str, now: u64) -> Result<Option<DocumentRow>, StoreError> {
        let Ok(id) = self.0.checked_text(id) else { return Ok(None) };
        let text = format!(
            "DELETE FROM documents WHERE kind = $1 AND id = $2 AND (expires_at = 0 OR expires_at > $3) RETURNING {COLUMNS}"
        );
        let mut transaction = self.0.begin().await?;
        let query = sqlx::query(&text).bind(kind).bind(id).bind(stored(now));
        let row = query.fetch_optional(&mut *transaction).await.map_err(self.0.failed())?;
        let entry = row.and_then(|row| read(kind, &row));
        self.0.commit_change(transaction, entry.is_some(), &[(kind, id)]).await?;
        Ok(entry)
    }

    /// Removes all documents of a kind and owner; returns their number.
    pub async fn remove_of(&self, kind: &'static str, owner: &str) -> Result<u64, StoreError> {
        let Ok(owner) = self.0.checked_text(owner) else { return Ok(0) };
        let mut transaction = self.0.begin().await?;
        let query = sqlx::query("DELETE FROM documents WHERE kind = $1 AND owner = $2").bind(kind).bind(owner);
        let done = query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        self.0.commit_change(transaction, done.rows_affected() > 0, &[(kind, "")]).await?;
        Ok(done.rows_affected())
    }

    pub(crate) async fn delete(
        &self,
        connection: &mut AnyConnection,
        (kind, id): (&'static str, &str),
    ) -> Result<bool, StoreError> {
        let query = sqlx::query("DELETE FROM documents WHERE kind = $1 AND id = $2").bind(kind).bind(id);
        Ok(query.execute(connection).await.map_err(self.0.failed())?.rows_affected() > 0)
    }

    pub(crate) async fn insert(&self, connection: &mut AnyConnection, entry: &DocumentRow) -> Result<bool, StoreError> {
        let query = sqlx::query(
            "INSERT INTO documents (kind, id, owner, document, version, created_at, expires_at) \
             VALUES ($1, $2, $3, $4, 1, $5, $6) ON CONFLICT (kind, id) DO NOTHING",
        );
        let query = query
            .bind(entry.kind)
            .bind(self.0.checked_text(&entry.id)?)
            .bind(self.0.checked_text(&entry.owner)?)
            .bind(self.0.text_of(&entry.document)?)
            .bind(stored(entry.created_at))
            .bind(stored(entry.expires_at));
        let done = query.execute(connection).await.map_err(self.0.failed())?;
        Ok(done.rows_affected() > 0)
    }
}

/// Reads a row; an unreadable one must not affect the others.
fn read(kind: &'static str, row: &AnyRow) -> Option<DocumentRow> {
    let parts = || -> Result<_, sqlx::Error> {
        Ok((row.try_get::<String, _>(0)?, row.try_get(1)?, row.try_get::<String, _>(2)?, row.try_get(3)?))
    };
    let times = || -> Result<_, sqlx::Error> { Ok((row.try_get(4)?, row.try_get(5)?)) };
    let ((id, owner, document, version), (created_at, expires_at)) = (parts().ok()?, times().ok()?);
    let Ok(document) = Raw::parse(document) else {
        tracing::error!("the document `{id}` of kind `{kind}` is unreadable and is skipped");
        return None;
    };
    let (version, created_at, expires_at) = (shown(version), shown(created_at), shown(expires_at));
    Some(DocumentRow { kind, id, owner, document, version, created_at, expires_at })
}
