//! Consents: what a user allowed a client.

use crate::error::StoreError;
use crate::record::{OwnedRecord, Record, Records};
use crate::schema::{ColumnType, RowValues, SqlValue, TableSchema};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentRow {
    pub id: String,
    pub subject: String,
    pub client: String,
    pub scopes: Vec<String>,
    /// The only project that it is for.
    pub project: Option<String>,
    pub version: u64,
    /// Milliseconds since 1970.
    pub created_at: u64,
}

impl Records<'_, ConsentRow> {
    /// Removes all consents for a client.
    pub async fn remove_of_client(&self, client: &str) -> Result<u64, StoreError> {
        let Ok(client) = self.database.checked_text(client) else { return Ok(0) };
        let mut transaction = self.database.begin().await?;
        let query = sqlx::query("DELETE FROM consents WHERE client = $1").bind(client);
        let removed = query.execute(&mut *transaction).await.map_err(self.database.failed())?.rows_affected();
        self.database.commit_change(transaction, removed > 0, &[(ConsentRow::KIND, "")]).await?;
        Ok(removed)
    }
}

impl Record for ConsentRow {
    const KIND: &'static str = "consent";
    const SCHEMA: TableSchema = TableSchema {
        name: "consents",
        columns: &[
            ("id", ColumnType::Text),
            ("subject", ColumnType::Text),
            ("client", ColumnType::OptionalText),
            ("scopes", ColumnType::Json),
            ("project", ColumnType::OptionalText),
            ("version", ColumnType::Number),
            ("created_at", ColumnType::Number),
        ],
    };

    fn id(&self) -> &str {
        &self.id
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn values(&self) -> Vec<SqlValue> {
        vec![
            SqlValue::text(&self.id),
            SqlValue::text(&self.subject),
            SqlValue::text(&self.client),
            SqlValue::list(&self.scopes),
            SqlValue::optional(self.project.as_deref()),
            SqlValue::number(self.version),
            SqlValue::number(self.created_at),
        ]
    }

    fn read(mut values: RowValues) -> Option<Self> {
        Some(Self {
            id: values.text(),
            subject: values.text(),
            client: values.text(),
            scopes: values.list()?,
            project: values.optional(),
            version: values.number(),
            created_at: values.number(),
        })
    }
}

impl OwnedRecord for ConsentRow {
    fn subject(&self) -> &str {
        &self.subject
    }
}
