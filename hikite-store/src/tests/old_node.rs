//! A node of the first release, which has all documents in the table `drawer`.

use serde_json::Value;
use sqlx::{Executor, Row};

use crate::Store;

pub(super) struct OldNode<'a>(pub(super) &'a Store);

#[derive(Debug, PartialEq)]
pub(super) struct OldRow {
    pub(super) owner: String,
    pub(super) form: Value,
    pub(super) version: i64,
    pub(super) expires_at: i64,
}

impl OldNode<'_> {
    pub(super) async fn put(&self, key: (&str, &str), owner: &str, form: &str) -> bool {
        let text = "INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at) \
                    VALUES ($1, $2, $3, $4, 1, 7, 0) ON CONFLICT (kind, id) DO NOTHING";
        let query = sqlx::query(text).bind(key.0).bind(key.1).bind(owner).bind(form);
        let done = query.execute(self.0.0.writer()).await.expect("put").rows_affected() > 0;
        self.raise_revision().await;
        done
    }

    pub(super) async fn change(&self, key: (&str, &str), version: i64, form: &Value) -> bool {
        let text = "UPDATE drawer SET form = $1, version = version + 1 WHERE kind = $2 AND id = $3 AND version = $4";
        let query = sqlx::query(text).bind(form.to_string()).bind(key.0).bind(key.1).bind(version);
        let done = query.execute(self.0.0.writer()).await.expect("changed").rows_affected() > 0;
        self.raise_revision().await;
        done
    }

    pub(super) async fn take(&self, key: (&str, &str)) -> bool {
        let query = sqlx::query("DELETE FROM drawer WHERE kind = $1 AND id = $2 RETURNING id").bind(key.0).bind(key.1);
        let done = query.fetch_optional(self.0.0.writer()).await.expect("taken").is_some();
        self.raise_revision().await;
        done
    }

    pub(super) async fn get(&self, key: (&str, &str)) -> Option<OldRow> {
        let text = "SELECT owner, form, version, expires_at FROM drawer WHERE kind = $1 AND id = $2";
        let row = sqlx::query(text).bind(key.0).bind(key.1).fetch_optional(self.0.0.reader()).await.expect("read")?;
        let form: String = row.get(1);
        let form = serde_json::from_str(&form).expect("JSON");
        Some(OldRow { owner: row.get(0), form, version: row.get(2), expires_at: row.get(3) })
    }

    /// It does not write to the change log.
    async fn raise_revision(&self) {
        let raise = "UPDATE hikite SET value = value + 1 WHERE name = 'revision'";
        self.0.0.writer().execute(raise).await.expect("raised");
    }
}
