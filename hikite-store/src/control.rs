//! Registered tools and the switches of all tools. Every change increments the revision in the same transaction, so
//! that other processes reload.

use hikite_core::json::Raw;
use hikite_core::key::ToolKey;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::change::kind;
use crate::database::Database;
use crate::error::{StoreError, StoreFault};
use crate::schema::{shown, stored};

/// A registered tool with its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredToolRow {
    pub key: ToolKey,
    pub form: Raw,
    /// Milliseconds since 1970.
    pub registered_at: u64,
}

/// The registered tools of a store, the switches of all tools, and when each tool was first seen.
#[derive(Debug)]
pub struct ToolTable<'a>(pub(crate) &'a Database);

impl ToolTable<'_> {
    /// Returns all registered tools, oldest first.
    pub async fn registered(&self) -> Result<Vec<RegisteredToolRow>, StoreError> {
        let query = sqlx::query("SELECT module, tool, form, registered_at FROM registered_tool");
        let rows = query.fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        let mut tools = Vec::with_capacity(rows.len());
        for row in &rows {
            let (key, form, registered_at) = read_tool(row).map_err(self.0.failed())?;
            match Raw::parse(form) {
                Ok(form) => tools.push(RegisteredToolRow { key, form, registered_at }),
                // An unreadable row must not affect the others.
                Err(_) => tracing::error!("the registered tool `{key}` is unreadable and is skipped"),
            }
        }
        tools.sort_by(|a, b| (a.registered_at, &a.key).cmp(&(b.registered_at, &b.key)));
        Ok(tools)
    }

    /// Stores a tool. Returns `false` if it exists and `overwrite` is not set.
    pub async fn put(&self, tool: &RegisteredToolRow, overwrite: bool) -> Result<bool, StoreError> {
        let (module, name) = self.checked_key(&tool.key)?;
        let form = self.0.text_of(&tool.form)?;
        let text = if overwrite {
            "INSERT INTO registered_tool (module, tool, form, registered_at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (module, tool) DO UPDATE SET form = excluded.form, registered_at = excluded.registered_at"
        } else {
            "INSERT INTO registered_tool (module, tool, form, registered_at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (module, tool) DO NOTHING"
        };
        let query = sqlx::query(text).bind(module).bind(name).bind(form).bind(stored(tool.registered_at));
        let mut transaction = self.0.begin().await?;
        let done = query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        self.0.commit_change(transaction, done.rows_affected() > 0, &[(kind::TOOL, "")]).await
    }

    /// Removes a tool together with its switch. Returns `false` if there is no such tool.
    pub async fn remove(&self, key: &ToolKey) -> Result<bool, StoreError> {
        let Ok((module, name)) = self.checked_key(key) else { return Ok(false) };
        let mut transaction = self.0.begin().await?;
        let query = sqlx::query("DELETE FROM registered_tool WHERE module = $1 AND tool = $2");
        let done = query.bind(module).bind(name).execute(&mut *transaction).await.map_err(self.0.failed())?;
        if done.rows_affected() > 0 {
            let query = sqlx::query("DELETE FROM tool_switch WHERE module = $1 AND tool = $2");
            query.bind(module).bind(name).execute(&mut *transaction).await.map_err(self.0.failed())?;
        }
        let touched = [(kind::TOOL, ""), (kind::SWITCH, "")];
        self.0.commit_change(transaction, done.rows_affected() > 0, &touched).await
    }

    /// Returns the tools with a switch, and whether they are enabled.
    pub async fn switches(&self) -> Result<Vec<(ToolKey, bool)>, StoreError> {
        let query = sqlx::query("SELECT module, tool, enabled FROM tool_switch");
        let rows = query.fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        let read = |row: &AnyRow| Ok((read_key(row)?, row.try_get::<i64, _>(2)? != 0));
        rows.iter().map(read).collect::<Result<_, _>>().map_err(self.0.failed())
    }

    pub async fn set_switch(&self, key: &ToolKey, enabled: bool) -> Result<(), StoreError> {
        let (module, name) = self.checked_key(key)?;
        let query = sqlx::query(
            "INSERT INTO tool_switch (module, tool, enabled) VALUES ($1, $2, $3) \
             ON CONFLICT (module, tool) DO UPDATE SET enabled = excluded.enabled",
        );
        let mut transaction = self.0.begin().await?;
        let query = query.bind(module).bind(name).bind(i64::from(enabled));
        query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        self.0.commit_change(transaction, true, &[(kind::SWITCH, "")]).await.map(drop)
    }

    /// Returns module and name of a key without NUL, which PostgreSQL rejects; SQLite behaves the same for consistency.
    fn checked_key<'k>(&self, key: &'k ToolKey) -> Result<(&'k str, &'k str), StoreError> {
        if is_storable(key) {
            return Ok((&key.module, &key.tool));
        }
        Err(self.0.refused(StoreFault::Nul, key.to_string().escape_debug().to_string()))
    }
}

pub(crate) fn is_storable(key: &ToolKey) -> bool {
    !key.module.contains('\0') && !key.tool.contains('\0')
}

pub(crate) fn read_key(row: &AnyRow) -> Result<ToolKey, sqlx::Error> {
    Ok(ToolKey::new(row.try_get::<String, _>(0)?, row.try_get::<String, _>(1)?))
}

fn read_tool(row: &AnyRow) -> Result<(ToolKey, String, u64), sqlx::Error> {
    Ok((read_key(row)?, row.try_get(2)?, shown(row.try_get(3)?)))
}
