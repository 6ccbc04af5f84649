//! Grants: what a client may do for a user or for itself, with the state of its refresh tokens.

use std::fmt;

use sqlx::Row;

use crate::document::{DocumentRow, Documents};
use crate::error::StoreError;
use crate::owner::OwnerCheck;
use crate::record::{OwnedRecord, Record, Records};
use crate::schema::{ColumnType, RowValues, SqlValue, TableSchema};

#[derive(Clone, PartialEq, Eq)]
pub struct GrantRow {
    pub id: String,
    /// The user; `None` if the client acts for itself.
    pub subject: Option<String>,
    pub client: String,
    pub scopes: Vec<String>,
    /// The only project that it is for.
    pub project: Option<String>,
    /// Number of refresh tokens so far; the last one is valid.
    pub generation: u64,
    pub rotated_at: u64,
    /// Id of the key that wraps `sealed_key`.
    pub key_id: String,
    /// Wrapped key of this grant.
    pub sealed_key: String,
    /// Result of the last refresh.
    pub last: Option<GrantRotation>,
    pub version: u64,
    /// Milliseconds since 1970, like all times.
    pub created_at: u64,
    /// Zero means never.
    pub expires_at: u64,
}

/// Access token of the last refresh, sealed, with its terms.
#[derive(Clone, PartialEq, Eq)]
pub struct GrantRotation {
    pub access: String,
    pub scopes: Vec<String>,
    pub expires_at: u64,
    pub project: Option<String>,
}

impl Records<'_, GrantRow> {
    /// Replaces the document `code` by a grant and the document `used`, if the code exists, the others do not, and the
    /// user is not locked out: all or nothing.
    pub async fn redeem(
        &self,
        code: (&'static str, &str),
        grant: &GrantRow,
        used: &DocumentRow,
    ) -> Result<bool, StoreError> {
        let Ok(id) = self.database.checked_text(code.1) else { return Ok(false) };
        let documents = Documents(self.database);
        let mut transaction = self.database.begin().await?;
        // Users are locked before other rows, in the order of all other writers, to avoid deadlocks.
        let done = self.database.lock_owner(&mut transaction, grant.subject(), OwnerCheck::User).await?
            && documents.delete(&mut transaction, (code.0, id)).await?
            && self.insert(&mut transaction, grant).await?
            && documents.insert(&mut transaction, used).await?;
        let touched = [(code.0, id), (GrantRow::KIND, &*grant.id), (used.kind, &*used.id)];
        self.database.commit_change(transaction, done, &touched).await
    }

    /// Removes the grants of a client, or only those that one user gave it. Returns their ids.
    pub async fn remove_of_client(&self, client: &str, subject: Option<&str>) -> Result<Vec<String>, StoreError> {
        let of_subject = if subject.is_some() { "subject = $2" } else { "$2 = $2" };
        let text = format!("DELETE FROM grants WHERE client = $1 AND {of_subject} RETURNING id");
        let Ok(client) = self.database.checked_text(client) else { return Ok(Vec::new()) };
        let Ok(subject) = self.database.checked_text(subject.unwrap_or_default()) else { return Ok(Vec::new()) };
        let mut transaction = self.database.begin().await?;
        let query = sqlx::query(&text).bind(client).bind(subject);
        let rows = query.fetch_all(&mut *transaction).await.map_err(self.database.failed())?;
        let ids = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>();
        let ids = ids.map_err(self.database.failed())?;
        let touched: Vec<(&str, &str)> = ids.iter().map(|id| (GrantRow::KIND, id.as_str())).collect();
        self.database.commit_change(transaction, !ids.is_empty(), &touched).await?;
        Ok(ids)
    }
}

impl Record for GrantRow {
    const KIND: &'static str = "grant";
    const SCHEMA: TableSchema = TableSchema {
        name: "grants",
        columns: &[
            ("id", ColumnType::Text),
            ("subject", ColumnType::NullableText),
            ("client", ColumnType::OptionalText),
            ("scopes", ColumnType::Json),
            ("project", ColumnType::OptionalText),
            ("generation", ColumnType::Number),
            ("rotated_at", ColumnType::Number),
            ("key_id", ColumnType::OptionalText),
            ("sealed_key", ColumnType::OptionalText),
            ("last_access", ColumnType::OptionalText),
            ("last_scopes", ColumnType::Json),
            ("last_expires_at", ColumnType::Number),
            ("last_project", ColumnType::OptionalText),
            ("version", ColumnType::Number),
            ("created_at", ColumnType::Number),
            ("expires_at", ColumnType::Number),
        ],
    };

    fn id(&self) -> &str {
        &self.id
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn values(&self) -> Vec<SqlValue> {
        let last = self.last.as_ref();
        vec![
            SqlValue::text(&self.id),
            SqlValue::optional(self.subject.as_deref()),
            SqlValue::text(&self.client),
            SqlValue::list(&self.scopes),
            SqlValue::optional(self.project.as_deref()),
            SqlValue::number(self.generation),
            SqlValue::number(self.rotated_at),
            SqlValue::text(&self.key_id),
            SqlValue::text(&self.sealed_key),
            SqlValue::optional(last.map(|last| last.access.as_str())),
            SqlValue::list(last.map(|last| last.scopes.as_slice()).unwrap_or_default()),
            SqlValue::number(last.map_or(0, |last| last.expires_at)),
            SqlValue::optional(last.and_then(|last| last.project.as_deref())),
            SqlValue::number(self.version),
            SqlValue::number(self.created_at),
            SqlValue::number(self.expires_at),
        ]
    }

    fn read(mut values: RowValues) -> Option<Self> {
        Some(Self {
            id: values.text(),
            subject: values.optional(),
            client: values.text(),
            scopes: values.list()?,
            project: values.optional(),
            generation: values.number(),
            rotated_at: values.number(),
            key_id: values.text(),
            sealed_key: values.text(),
            last: {
                let (access, scopes) = (values.optional(), values.list()?);
                let (expires_at, project) = (values.number(), values.optional());
                access.map(|access| GrantRotation { access, scopes, expires_at, project })
            },
            version: values.number(),
            created_at: values.number(),
            expires_at: values.number(),
        })
    }
}

impl OwnedRecord for GrantRow {
    fn subject(&self) -> &str {
        self.subject.as_deref().unwrap_or_default()
    }
}

impl fmt::Debug for GrantRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrantRow").field("id", &self.id).field("client", &self.client).finish_non_exhaustive()
    }
}

impl fmt::Debug for GrantRotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrantRotation").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}
