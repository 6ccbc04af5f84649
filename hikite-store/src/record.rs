//! Rows of the typed tables that have an id and a version. A change names the version that it replaces, so that of two
//! concurrent changes one fails; of several callers who take a row, one gets it.

use std::fmt;
use std::marker::PhantomData;

use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use crate::database::Database;
use crate::error::StoreError;
use crate::owner::OwnerCheck;
use crate::schema::{RowValues, SqlValue, TableSchema, stored};

/// A row of a typed table. The first column is the id.
pub trait Record: Clone + Send + Sync + 'static {
    /// Kind in the change log.
    const KIND: &'static str;
    const SCHEMA: TableSchema;

    fn id(&self) -> &str;
    fn version(&self) -> u64;
    /// Returns the values in the order of the columns.
    fn values(&self) -> Vec<SqlValue>;
    /// Reads a row; `None` if a value is unreadable.
    fn read(values: RowValues) -> Option<Self>;
}

/// A row that belongs to a subject.
pub trait OwnedRecord: Record {
    /// The subject; empty if it belongs to none.
    fn subject(&self) -> &str;
}

/// One typed table of a store.
pub struct Records<'a, R> {
    pub(crate) database: &'a Database,
    row: PhantomData<R>,
}

impl<'a, R: Record> Records<'a, R> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database, row: PhantomData }
    }

    /// Returns a row, if it exists and has not expired.
    pub async fn get(&self, id: &str, now: u64) -> Result<Option<R>, StoreError> {
        let Ok(id) = self.database.checked_text(id) else { return Ok(None) };
        let text = format!("{} WHERE id = $1 AND {}", R::SCHEMA.select(), alive::<R>("$2"));
        let query = sqlx::query(&text).bind(id).bind(stored(now));
        let row = query.fetch_optional(self.database.reader()).await.map_err(self.database.failed())?;
        self.read(row.as_ref().as_slice()).map(|mut rows| rows.pop())
    }

    /// Returns all rows that have not expired, oldest first.
    pub async fn all(&self, now: u64) -> Result<Vec<R>, StoreError> {
        let text = format!("{} WHERE {} ORDER BY created_at, id", R::SCHEMA.select(), alive::<R>("$1"));
        let query = sqlx::query(&text).bind(stored(now));
        let rows = query.fetch_all(self.database.reader()).await.map_err(self.database.failed())?;
        self.read(&rows.iter().collect::<Vec<_>>())
    }

    /// Inserts a row with version 1. Returns `false` if the id exists, expired or not.
    pub async fn put(&self, row: &R) -> Result<bool, StoreError> {
        let mut transaction = self.database.begin().await?;
        let done = self.insert(&mut transaction, row).await?;
        self.database.commit_change(transaction, done, &[(R::KIND, row.id())]).await
    }

    /// Changes a row in the version that it names, except for the time of its creation. Returns `false` if it has
    /// another version or is gone. The version grows by one.
    pub async fn change(&self, row: &R) -> Result<bool, StoreError> {
        let mut transaction = self.database.begin().await?;
        let done = self.update(&mut transaction, row).await?;
        self.database.commit_change(transaction, done, &[(R::KIND, row.id())]).await
    }

    /// Removes and returns a row; only one of several concurrent callers gets it. Expired ones are not returned.
    pub async fn take(&self, id: &str, now: u64) -> Result<Option<R>, StoreError> {
        let Ok(id) = self.database.checked_text(id) else { return Ok(None) };
        let text = format!(
            "DELETE FROM {} WHERE id = $1 AND {} RETURNING {}",
            R::SCHEMA.name,
            alive::<R>("$2"),
            R::SCHEMA.selected()
        );
        let mut transaction = self.database.begin().await?;
        let query = sqlx::query(&text).bind(id).bind(stored(now));
        let row = query.fetch_optional(&mut *transaction).await.map_err(self.database.failed())?;
        let taken = self.read(row.as_ref().as_slice())?.pop();
        self.database.commit_change(transaction, row.is_some(), &[(R::KIND, id)]).await?;
        Ok(taken)
    }

    pub(crate) async fn insert(&self, connection: &mut AnyConnection, row: &R) -> Result<bool, StoreError> {
        let mut values = self.checked(row)?;
        for ((column, _), value) in R::SCHEMA.columns.iter().zip(&mut values) {
            if *column == "version" {
                *value = SqlValue::Number(1);
            }
        }
        let done = R::SCHEMA.insert(connection, &[values], "ON CONFLICT (id) DO NOTHING").await;
        Ok(done.map_err(self.database.failed())? > 0)
    }

    async fn update(&self, connection: &mut AnyConnection, row: &R) -> Result<bool, StoreError> {
        let is_fixed = |column: &str| matches!(column, "id" | "version" | "created_at");
        let columns = R::SCHEMA.columns.iter().filter(|(column, _)| !is_fixed(column));
        let changes: Vec<String> = columns
            .enumerate()
            .map(|(at, (column, kind))| format!("{column} = {}", kind.parameter(&format!("${}", at + 1))))
            .collect();
        let next = changes.len() + 1;
        let text = format!(
            "UPDATE {} SET {}, version = version + 1 WHERE id = ${next} AND version = ${}",
            R::SCHEMA.name,
            changes.join(", "),
            next + 1
        );
        let values = self.checked(row)?;
        let mut query = sqlx::query(&text);
        for (_, value) in R::SCHEMA.columns.iter().zip(&values).filter(|((column, _), _)| !is_fixed(column)) {
            query = value.bind_to(query);
        }
        let query = query.bind(row.id()).bind(stored(row.version()));
        let done = query.execute(connection).await.map_err(self.database.failed())?;
        Ok(done.rows_affected() > 0)
    }

    /// Returns the values, unless a text contains NUL.
    fn checked(&self, row: &R) -> Result<Vec<SqlValue>, StoreError> {
        let values = row.values();
        for value in &values {
            if let SqlValue::Text(text) = value {
                self.database.checked_text(text)?;
            }
        }
        Ok(values)
    }

    /// Reads rows; an unreadable one must not affect the others.
    fn read(&self, rows: &[&AnyRow]) -> Result<Vec<R>, StoreError> {
        let mut records = Vec::with_capacity(rows.len());
        for row in rows {
            let values = R::SCHEMA.read(row).map_err(self.database.failed())?;
            let id = values.first().map(SqlValue::shown).unwrap_or_default();
            match R::read(RowValues::new(values)) {
                Some(record) => records.push(record),
                None => tracing::error!("the row `{id}` of `{}` is unreadable and is skipped", R::SCHEMA.name),
            }
        }
        Ok(records)
    }
}

impl<R: OwnedRecord> Records<'_, R> {
    /// Returns the rows of a subject that have not expired, oldest first.
    pub async fn of_subject(&self, subject: &str, now: u64) -> Result<Vec<R>, StoreError> {
        let Ok(subject) = self.database.checked_text(subject) else { return Ok(Vec::new()) };
        let text =
            format!("{} WHERE subject = $1 AND {} ORDER BY created_at, id", R::SCHEMA.select(), alive::<R>("$2"));
        let query = sqlx::query(&text).bind(subject).bind(stored(now));
        let rows = query.fetch_all(self.database.reader()).await.map_err(self.database.failed())?;
        self.read(&rows.iter().collect::<Vec<_>>())
    }

    /// Inserts a row with version 1. Returns `false` if its id exists or its subject does not match `holder`.
    pub async fn put_owned(&self, row: &R, holder: OwnerCheck) -> Result<bool, StoreError> {
        let mut transaction = self.database.begin().await?;
        let done = self.database.lock_owner(&mut transaction, row.subject(), holder).await?
            && self.insert(&mut transaction, row).await?;
        self.database.commit_change(transaction, done, &[(R::KIND, row.id())]).await
    }
}

/// Returns the condition that a row has not expired. The parameter is used in any case, as both databases require.
fn alive<R: Record>(now: &str) -> String {
    if R::SCHEMA.has_column("expires_at") {
        format!("(expires_at = 0 OR expires_at > {now})")
    } else {
        format!("{now} = {now}")
    }
}

impl<R: Record> fmt::Debug for Records<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Records({})", R::SCHEMA.name)
    }
}
