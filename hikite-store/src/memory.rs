//! The search memory: queries that led to a successful call. Written in passing; only deletions increment the revision,
//! so that running processes forget as well.

use hikite_core::key::ToolKey;
use hikite_core::search::encoder::Vector;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::change::kind;
use crate::columns::MEMORY;
use crate::control::is_storable;
use crate::database::Database;
use crate::error::StoreError;
use crate::schema::{ROWS_PER_INSERT, SqlValue, shown, stored};

/// A query and the tool that it led to.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchMemoryRow {
    /// Project; empty outside of projects.
    pub project: String,
    /// Hash of the query.
    pub query: String,
    pub key: ToolKey,
    /// Text of the query, if storing it is allowed.
    pub text: Option<String>,
    /// Hashes of its terms.
    pub terms: Vec<u64>,
    /// The model of the vector.
    pub model: String,
    pub vector: Option<Vector>,
    /// Number of occurrences, decaying since `used_at`.
    pub weight: f32,
    /// Milliseconds since 1970.
    pub used_at: u64,
}

const KEY: &str = "project = $1 AND query = $2 AND module = $3 AND tool = $4";

/// The memory of searches and the vectors of a store.
#[derive(Debug)]
pub struct SearchTables<'a>(pub(crate) &'a Database);

impl SearchTables<'_> {
    /// Returns the pairs of one project, or of all.
    pub async fn remembered(&self, project: Option<&str>) -> Result<Vec<SearchMemoryRow>, StoreError> {
        let text = MEMORY.select();
        let rows = match project {
            Some(project) => {
                let text = format!("{text} WHERE project = $1");
                sqlx::query(&text).bind(project).fetch_all(self.0.reader()).await
            }
            None => sqlx::query(&text).fetch_all(self.0.reader()).await,
        };
        let rows = rows.map_err(self.0.failed())?;
        rows.iter().map(read).collect::<Result<_, _>>().map_err(self.0.failed())
    }

    /// Writes new or changed pairs and deletes those in `gone`.
    pub async fn remember(
        &self,
        pairs: &[SearchMemoryRow],
        gone: &[(String, String, ToolKey)],
    ) -> Result<(), StoreError> {
        let mut transaction = self.0.begin().await?;
        for (project, query, key) in gone {
            let text = format!("DELETE FROM search_memory WHERE {KEY}");
            let query = sqlx::query(&text).bind(project.as_str()).bind(query.as_str());
            let query = query.bind(&*key.module).bind(&*key.tool);
            query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        }
        let mut pairs: Vec<&SearchMemoryRow> = pairs.iter().filter(|pair| is_storable(&pair.key)).collect();
        // Sorted, so that two processes cannot deadlock.
        pairs.sort_by(|a, b| (&a.project, &a.query, &a.key).cmp(&(&b.project, &b.query, &b.key)));
        for pairs in pairs.chunks(ROWS_PER_INSERT) {
            let rows: Vec<Vec<SqlValue>> = pairs.iter().map(|pair| row(pair)).collect();
            let otherwise = "ON CONFLICT (project, query, module, tool) DO UPDATE SET text = excluded.text, \
                 model = excluded.model, vector = excluded.vector, weight = excluded.weight, \
                 used_at = excluded.used_at";
            MEMORY.insert(&mut transaction, &rows, otherwise).await.map_err(self.0.failed())?;
        }
        transaction.commit().await.map_err(self.0.failed())
    }

    /// Deletes the pairs of one project, or of all; returns their number.
    pub async fn forget(&self, project: Option<&str>) -> Result<u64, StoreError> {
        let mut transaction = self.0.begin().await?;
        let done = match project {
            Some(project) => {
                let query = sqlx::query("DELETE FROM search_memory WHERE project = $1").bind(project);
                query.execute(&mut *transaction).await
            }
            None => sqlx::query("DELETE FROM search_memory").execute(&mut *transaction).await,
        };
        let count = done.map_err(self.0.failed())?.rows_affected();
        self.0.commit_change(transaction, count > 0, &[(kind::MEMORY, "")]).await.map(|_| count)
    }
}

fn row(pair: &SearchMemoryRow) -> Vec<SqlValue> {
    let terms: Vec<String> = pair.terms.iter().map(|term| format!("{term:x}")).collect();
    // PostgreSQL rejects NUL.
    let text = pair.text.as_deref().unwrap_or_default().replace('\0', " ");
    vec![
        SqlValue::Text(pair.project.clone()),
        SqlValue::Text(pair.query.clone()),
        SqlValue::Text(pair.key.module.to_string()),
        SqlValue::Text(pair.key.tool.to_string()),
        SqlValue::Text(text),
        SqlValue::Text(terms.join(" ")),
        SqlValue::Text(pair.model.clone()),
        SqlValue::Text(pair.vector.as_ref().map(Vector::to_text).unwrap_or_default()),
        SqlValue::Number(thousandths(pair.weight)),
        SqlValue::Number(stored(pair.used_at)),
    ]
}

fn read(row: &AnyRow) -> Result<SearchMemoryRow, sqlx::Error> {
    let text: String = row.try_get(4)?;
    let terms: String = row.try_get(5)?;
    let vector: String = row.try_get(7)?;
    Ok(SearchMemoryRow {
        project: row.try_get(0)?,
        query: row.try_get(1)?,
        key: ToolKey::new(row.try_get::<String, _>(2)?, row.try_get::<String, _>(3)?),
        text: (!text.is_empty()).then_some(text),
        terms: terms.split(' ').filter_map(|term| u64::from_str_radix(term, 16).ok()).collect(),
        model: row.try_get(6)?,
        vector: Vector::from_text(&vector).filter(|_| !vector.is_empty()),
        weight: whole(row.try_get(8)?),
        used_at: shown(row.try_get(9)?),
    })
}

#[expect(clippy::cast_possible_truncation, reason = "weights are small")]
fn thousandths(weight: f32) -> i64 {
    (weight * 1000.0).round() as i64
}

#[expect(clippy::cast_precision_loss, reason = "weights are small")]
fn whole(thousandths: i64) -> f32 {
    thousandths as f32 / 1000.0
}
