//! Personal tokens. Only the hash of a secret is stored.

use std::fmt;

use hikite_core::json::Raw;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::change::kind;
use crate::database::Database;
use crate::error::StoreError;
use crate::schema::{shown, stored};

#[derive(Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// Public id.
    pub id: String,
    /// SHA-256 of the secret, in hex.
    pub hash: String,
    /// The project that the token is bound to; empty for none.
    pub project: String,
    /// Name, subject and scopes.
    pub form: Raw,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970; zero means never.
    pub expires_at: u64,
}

/// Omits the hash, which does not belong in logs.
impl fmt::Debug for TokenRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRow").field("id", &self.id).field("form", &self.form).finish_non_exhaustive()
    }
}

/// The personal tokens of a store.
#[derive(Debug)]
pub struct TokenTable<'a>(pub(crate) &'a Database);

impl TokenTable<'_> {
    /// Returns all tokens, oldest first.
    pub async fn all(&self) -> Result<Vec<TokenRow>, StoreError> {
        let query = sqlx::query("SELECT id, hash, project, form, created_at, expires_at FROM token");
        let rows = query.fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        self.read(&rows)
    }

    /// Returns a token, if it exists and is readable.
    pub async fn get(&self, id: &str) -> Result<Option<TokenRow>, StoreError> {
        let Ok(id) = self.0.checked_text(id) else { return Ok(None) };
        let text = "SELECT id, hash, project, form, created_at, expires_at FROM token WHERE id = $1";
        let rows = sqlx::query(text).bind(id).fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        Ok(self.read(&rows)?.pop())
    }

    /// Returns the tokens of a project.
    pub async fn of_project(&self, project: &str) -> Result<Vec<TokenRow>, StoreError> {
        let Ok(project) = self.0.checked_text(project) else { return Ok(Vec::new()) };
        let text = "SELECT id, hash, project, form, created_at, expires_at FROM token WHERE project = $1";
        let rows = sqlx::query(text).bind(project).fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        self.read(&rows)
    }

    fn read(&self, rows: &[AnyRow]) -> Result<Vec<TokenRow>, StoreError> {
        let mut tokens = Vec::with_capacity(rows.len());
        for row in rows {
            let (row, form) = read(row).map_err(self.0.failed())?;
            match Raw::parse(form) {
                Ok(form) => tokens.push(TokenRow { form, ..row }),
                Err(_) => tracing::error!("the token `{}` is unreadable and is skipped", row.id),
            }
        }
        tokens.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(tokens)
    }

    /// Stores a token. Returns `false` if the id exists.
    pub async fn put(&self, token: &TokenRow) -> Result<bool, StoreError> {
        let form = self.0.text_of(&token.form)?;
        let query = sqlx::query(
            "INSERT INTO token (id, hash, project, form, created_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING",
        );
        let query = query
            .bind(self.0.checked_text(&token.id)?)
            .bind(self.0.checked_text(&token.hash)?)
            .bind(self.0.checked_text(&token.project)?)
            .bind(form)
            .bind(stored(token.created_at))
            .bind(stored(token.expires_at));
        let mut transaction = self.0.begin().await?;
        let done = query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        self.0.commit_change(transaction, done.rows_affected() > 0, &[(kind::TOKEN, &token.id)]).await
    }

    /// Removes a token. Returns `false` if there is none.
    pub async fn remove(&self, id: &str) -> Result<bool, StoreError> {
        let Ok(id) = self.0.checked_text(id) else { return Ok(false) };
        let mut transaction = self.0.begin().await?;
        let query = sqlx::query("DELETE FROM token WHERE id = $1").bind(id);
        let done = query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        self.0.commit_change(transaction, done.rows_affected() > 0, &[(kind::TOKEN, id)]).await
    }
}

/// Reads the row without its form, and the form as text.
fn read(row: &AnyRow) -> Result<(TokenRow, String), sqlx::Error> {
    let token = TokenRow {
        id: row.try_get(0)?,
        hash: row.try_get(1)?,
        project: row.try_get(2)?,
        form: Raw::null(),
        created_at: shown(row.try_get(4)?),
        expires_at: shown(row.try_get(5)?),
    };
    Ok((token, row.try_get(3)?))
}
