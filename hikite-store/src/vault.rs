//! Sealed secrets and their sealed keys. Nothing in this crate can unseal them.

use sqlx::Row;
use sqlx::any::AnyRow;

use crate::change::kind;
use crate::database::Database;
use crate::error::StoreError;
use crate::schema::{shown, stored};

/// The key of an account, sealed with a master key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultKeyRow {
    pub account: String,
    pub key_id: String,
    pub sealed: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultSecretRow {
    pub account: String,
    pub provider: String,
    pub field: String,
    /// Starts at 1 and grows with every change.
    pub version: u64,
    pub sealed: String,
}

/// The sealed keys and secrets of a store.
#[derive(Debug)]
pub struct VaultTable<'a>(pub(crate) &'a Database);

impl VaultTable<'_> {
    pub async fn keys(&self) -> Result<Vec<VaultKeyRow>, StoreError> {
        let query = sqlx::query("SELECT account, key_id, sealed FROM vault_key ORDER BY account");
        let rows = query.fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        rows.iter().map(read_key).collect::<Result<_, _>>().map_err(self.0.failed())
    }

    pub async fn key(&self, account: &str) -> Result<Option<VaultKeyRow>, StoreError> {
        let Ok(account) = self.0.checked_text(account) else { return Ok(None) };
        let query = sqlx::query("SELECT account, key_id, sealed FROM vault_key WHERE account = $1");
        let row = query.bind(account).fetch_optional(self.0.reader()).await.map_err(self.0.failed())?;
        row.as_ref().map(read_key).transpose().map_err(self.0.failed())
    }

    /// Stores a key. Returns `false` if the account has one, which is kept.
    pub async fn put_key(&self, row: &VaultKeyRow) -> Result<bool, StoreError> {
        let query = sqlx::query(
            "INSERT INTO vault_key (account, key_id, sealed) VALUES ($1, $2, $3) ON CONFLICT (account) DO NOTHING",
        );
        let query = query.bind(self.0.checked_text(&row.account)?).bind(&*row.key_id).bind(&*row.sealed);
        let done = query.execute(self.0.writer()).await.map_err(self.0.failed())?;
        Ok(done.rows_affected() > 0)
    }

    /// Replaces a key by itself under another master key. Returns `false` if it is not under `from` any more.
    pub async fn rewrap_key(&self, row: &VaultKeyRow, from: &str) -> Result<bool, StoreError> {
        let query = sqlx::query("UPDATE vault_key SET key_id = $1, sealed = $2 WHERE account = $3 AND key_id = $4");
        let query = query.bind(&*row.key_id).bind(&*row.sealed);
        let query = query.bind(self.0.checked_text(&row.account)?).bind(from);
        let done = query.execute(self.0.writer()).await.map_err(self.0.failed())?;
        Ok(done.rows_affected() > 0)
    }

    pub async fn secret(
        &self,
        account: &str,
        provider: &str,
        field: &str,
    ) -> Result<Option<VaultSecretRow>, StoreError> {
        let query = sqlx::query(
            "SELECT account, provider, field, version, sealed FROM vault_secret \
             WHERE account = $1 AND provider = $2 AND field = $3",
        );
        let query = query.bind(self.0.checked_text(account)?).bind(self.0.checked_text(provider)?);
        let query = query.bind(self.0.checked_text(field)?);
        let row = query.fetch_optional(self.0.reader()).await.map_err(self.0.failed())?;
        row.as_ref().map(read_secret).transpose().map_err(self.0.failed())
    }

    pub async fn secrets(&self) -> Result<Vec<VaultSecretRow>, StoreError> {
        let query = sqlx::query(
            "SELECT account, provider, field, version, sealed FROM vault_secret ORDER BY account, provider, field",
        );
        let rows = query.fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        rows.iter().map(read_secret).collect::<Result<_, _>>().map_err(self.0.failed())
    }

    /// Stores a secret as successor of the previous version, or as the first. Returns `false` on a concurrent change.
    pub async fn put_secret(&self, row: &VaultSecretRow) -> Result<bool, StoreError> {
        let text = if row.version <= 1 {
            "INSERT INTO vault_secret (sealed, version, account, provider, field) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (account, provider, field) DO NOTHING"
        } else {
            "UPDATE vault_secret SET sealed = $1, version = $2 \
             WHERE account = $3 AND provider = $4 AND field = $5 AND version = $2 - 1"
        };
        let query = sqlx::query(text).bind(&*row.sealed).bind(stored(row.version));
        let query = query.bind(self.0.checked_text(&row.account)?).bind(self.0.checked_text(&row.provider)?);
        let query = query.bind(self.0.checked_text(&row.field)?);
        let mut transaction = self.0.begin().await?;
        let done = query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        self.0.commit_change(transaction, done.rows_affected() > 0, &[(kind::VAULT, &row.account)]).await
    }

    /// Removes the secrets of an account with a provider; without a provider all of them, including the key.
    pub async fn remove_secrets(&self, account: &str, provider: Option<&str>) -> Result<bool, StoreError> {
        let Ok(account) = self.0.checked_text(account) else { return Ok(false) };
        let mut transaction = self.0.begin().await?;
        let mut removed = 0;
        let texts: &[&str] = match provider {
            Some(_) => &["DELETE FROM vault_secret WHERE account = $1 AND provider = $2"],
            None => &[
                "DELETE FROM vault_secret WHERE account = $1 AND $2 = $2",
                "DELETE FROM vault_key WHERE account = $1 AND $2 = $2",
            ],
        };
        for text in texts {
            let query = sqlx::query(text).bind(account).bind(provider.unwrap_or_default());
            removed += query.execute(&mut *transaction).await.map_err(self.0.failed())?.rows_affected();
        }
        self.0.commit_change(transaction, removed > 0, &[(kind::VAULT, account)]).await
    }
}

fn read_key(row: &AnyRow) -> Result<VaultKeyRow, sqlx::Error> {
    Ok(VaultKeyRow { account: row.try_get(0)?, key_id: row.try_get(1)?, sealed: row.try_get(2)? })
}

fn read_secret(row: &AnyRow) -> Result<VaultSecretRow, sqlx::Error> {
    Ok(VaultSecretRow {
        account: row.try_get(0)?,
        provider: row.try_get(1)?,
        field: row.try_get(2)?,
        version: shown(row.try_get(3)?),
        sealed: row.try_get(4)?,
    })
}
