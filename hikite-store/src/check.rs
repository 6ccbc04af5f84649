//! Consistency check of the whole store: its pages, its version and every row.

use futures_util::TryStreamExt;
use hikite_core::json::Raw;
use sqlx::{AnyConnection, Row};

use crate::connect::DatabaseEngine;
use crate::damage::known_damage;
use crate::database::Database;
use crate::error::{StoreError, StoreFault};
use crate::migrate::{NEWEST, version};
use crate::schema::{ColumnType, SqlValue, TableSchema};
use crate::store::Store;
use crate::table::{TABLES, select_own};

/// Maximum findings per kind.
const FAULTS: usize = 20;
/// Rows per table, and audit records, that a brief check reads.
const BRIEF: u64 = 1000;

impl Store {
    /// Returns one line per problem; empty if there is none. Fails only if the store cannot be read.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        let audit = self.audit().verify(None, |_, _| {}).await?;
        let mut connection = self.0.reader().acquire().await.map_err(self.0.failed())?;
        let mut findings = Vec::new();
        let engine = match self.0.engine {
            DatabaseEngine::Sqlite => sqlite(&mut connection).await,
            DatabaseEngine::Postgres => postgres(&mut connection).await,
        };
        self.0.gather(engine, &mut findings)?;
        self.0.gather(versions(&mut connection).await, &mut findings)?;
        for table in TABLES {
            self.0.gather(rows(table, &select_own(table, NEWEST), &mut connection).await, &mut findings)?;
        }
        let broken = audit.broken.map(|broken| format!("record {} of the audit: {}", broken.seq, broken.problem));
        findings.extend(broken);
        findings.extend(known_damage(&self.0.url));
        Ok(findings)
    }

    /// Checks the version, the settings, some rows of each table and the newest audit records. Reads a few thousand
    /// rows, whatever the size of the store.
    pub async fn check_briefly(&self) -> Result<Vec<String>, StoreError> {
        let newest = self.audit().verify_newest(BRIEF).await?;
        let mut connection = self.0.reader().acquire().await.map_err(self.0.failed())?;
        let mut findings = Vec::new();
        if self.0.engine == DatabaseEngine::Postgres {
            self.0.gather(postgres(&mut connection).await, &mut findings)?;
        }
        self.0.gather(versions(&mut connection).await, &mut findings)?;
        for table in TABLES {
            let select = format!("{} LIMIT {BRIEF}", select_own(table, NEWEST));
            self.0.gather(rows(table, &select, &mut connection).await, &mut findings)?;
        }
        findings.extend(newest.map(|broken| format!("record {} of the audit: {}", broken.seq, broken.problem)));
        Ok(findings)
    }
}

impl Database {
    /// Collects the findings of a part. An unreadable part is a finding; an unreachable store is an error.
    fn gather(&self, found: Result<Vec<String>, sqlx::Error>, findings: &mut Vec<String>) -> Result<(), StoreError> {
        match found {
            Ok(found) => findings.extend(found),
            Err(error) => {
                let error = self.failed()(error);
                if !matches!(error.fault, StoreFault::Damaged | StoreFault::Failed | StoreFault::Full) {
                    return Err(error);
                }
                findings.push(error.to_string());
            }
        }
        Ok(())
    }
}

async fn sqlite(connection: &mut AnyConnection) -> Result<Vec<String>, sqlx::Error> {
    let text = format!("PRAGMA integrity_check({FAULTS})");
    let mut findings = Vec::new();
    for row in sqlx::query(&text).fetch_all(&mut *connection).await? {
        let said: String = row.try_get(0)?;
        if said != "ok" {
            findings.push(said);
        }
    }
    for row in sqlx::query("PRAGMA foreign_key_check").fetch_all(connection).await? {
        let table: String = row.try_get(0)?;
        findings.push(format!("a row of `{table}` refers to a row that does not exist"));
    }
    Ok(findings)
}

async fn postgres(connection: &mut AnyConnection) -> Result<Vec<String>, sqlx::Error> {
    let mut findings = Vec::new();
    for (setting, bad, cure) in [
        ("server_encoding", &["SQL_ASCII", "LATIN1"][..], "create the database with `ENCODING 'UTF8'`"),
        ("synchronous_commit", &["off"], "turn it on: a crash of the database would lose committed data"),
        ("fsync", &["off"], "turn it on: a power failure would damage the database"),
    ] {
        let row = sqlx::query("SELECT current_setting($1)").bind(setting).fetch_one(&mut *connection).await?;
        let value: String = row.try_get(0)?;
        if bad.contains(&value.as_str()) {
            findings.push(format!("`{setting}` of the database is `{value}`: {cure}"));
        }
    }
    Ok(findings)
}

async fn versions(connection: &mut AnyConnection) -> Result<Vec<String>, sqlx::Error> {
    let found = version(connection).await?;
    let wrong = (found != NEWEST).then(|| format!("it has version {found}, and this hikite supports version {NEWEST}"));
    Ok(wrong.into_iter().collect())
}

async fn rows(table: &TableSchema, select: &str, connection: &mut AnyConnection) -> Result<Vec<String>, sqlx::Error> {
    let mut rows = sqlx::query(select).fetch(connection);
    let mut findings = Vec::new();
    while let Some(row) = rows.try_next().await? {
        if findings.len() == FAULTS {
            break;
        }
        match table.read(&row) {
            Ok(values) => findings.extend(wrong_value(table, &values)),
            Err(error) => findings.push(format!("a row of `{}` cannot be read: {error}", table.name)),
        }
    }
    Ok(findings)
}

/// Returns the first value that is invalid for its column, with the key of the row.
fn wrong_value(table: &TableSchema, values: &[SqlValue]) -> Option<String> {
    let wrong = |(value, (_, column)): &(&SqlValue, &(&str, ColumnType))| match (value, column) {
        (SqlValue::Text(text), ColumnType::Json) => Raw::parse(text.clone()).is_err(),
        (SqlValue::Text(text), ColumnType::OptionalText | ColumnType::NullableText) => text.contains('\0'),
        (SqlValue::Text(text), _) => text.is_empty() || text.contains('\0'),
        (SqlValue::Number(number), ColumnType::Boolean) => !matches!(number, 0 | 1),
        (SqlValue::Number(number), _) => *number < 0,
    };
    let (_, (column, _)) = values.iter().zip(table.columns).find(wrong)?;
    let name = match values {
        [SqlValue::Text(module), SqlValue::Text(tool), ..] if column != &"lists" => {
            format!("{module}:{tool}")
        }
        [SqlValue::Text(definition), ..] => definition.clone(),
        [SqlValue::Number(number), ..] => number.to_string(),
        _ => String::new(),
    };
    Some(format!("`{column}` of `{}` in `{}` is unreadable", name.escape_debug(), table.name))
}
