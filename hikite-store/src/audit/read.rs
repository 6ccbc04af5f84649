//! Looking at the audit: some of its records, the newest or the oldest first.

use std::fmt::Write;

use sqlx::Row;
use sqlx::any::AnyRow;

use crate::control::{shown, stored};
use crate::error::StoreError;
use crate::store::Store;

/// Which records are asked for; nothing means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub kind: Option<String>,
    pub decision: Option<String>,
    pub outcome: Option<String>,
    pub request_id: Option<String>,
    pub subject: Option<String>,
    pub project: Option<String>,
    pub module: Option<String>,
    pub tool: Option<String>,
    /// Milliseconds since 1970, this one included.
    pub since: Option<u64>,
    /// And this one not.
    pub until: Option<u64>,
}

/// In which direction, and where to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditWalk {
    /// From the newest, or from the one before this.
    Back(Option<u64>),
    /// From the one after this.
    On(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    pub seq: u64,
    /// The record as it was hashed.
    pub record: String,
    pub hash: String,
}

impl AuditRow {
    /// The record with its hash as the last member. Without that, and the brace again, it is what was hashed.
    pub fn line(&self) -> String {
        let open = self.record.strip_suffix('}').unwrap_or(&self.record);
        format!("{open},\"hash\":\"{}\"}}", self.hash)
    }
}

impl Store {
    pub async fn audit(
        &self,
        filter: &AuditFilter,
        walk: AuditWalk,
        limit: usize,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let words = filter.words();
        // No record holds one, and PostgreSQL would not take it.
        if words.iter().any(|(_, word)| word.contains('\0')) {
            return Ok(Vec::new());
        }
        let text = text(&words, filter, walk, limit);
        let mut query = sqlx::query(&text);
        for (_, word) in &words {
            query = query.bind(*word);
        }
        for number in numbers(filter, walk).into_iter().flatten() {
            query = query.bind(stored(number));
        }
        let rows = query.fetch_all(self.reader()).await.map_err(self.failed())?;
        rows.iter().map(read).collect::<Result<_, _>>().map_err(self.failed())
    }
}

impl AuditFilter {
    fn words(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("kind", &self.kind),
            ("decision", &self.decision),
            ("outcome", &self.outcome),
            ("request_id", &self.request_id),
            ("subject", &self.subject),
            ("project", &self.project),
            ("module", &self.module),
            ("tool", &self.tool),
        ];
        all.into_iter().filter_map(|(column, word)| Some((column, word.as_deref()?))).collect()
    }
}

/// The numbers of a question, in the order of its conditions.
fn numbers(filter: &AuditFilter, walk: AuditWalk) -> [Option<u64>; 3] {
    let edge = match walk {
        AuditWalk::Back(before) => before,
        AuditWalk::On(after) => Some(after),
    };
    [filter.since, filter.until, edge]
}

fn text(words: &[(&str, &str)], filter: &AuditFilter, walk: AuditWalk, limit: usize) -> String {
    let (edge, order) = match walk {
        AuditWalk::Back(_) => ("seq <", "DESC"),
        AuditWalk::On(_) => ("seq >", "ASC"),
    };
    let conditions = words.iter().map(|(column, _)| format!("{column} ="));
    let bounds = ["at >=", "at <", edge].into_iter().zip(numbers(filter, walk));
    let bounds = bounds.filter(|(_, number)| number.is_some()).map(|(bound, _)| bound.to_owned());
    let mut text = "SELECT seq, record, hash FROM audit".to_owned();
    for (at, condition) in conditions.chain(bounds).enumerate() {
        let joint = if at == 0 { "WHERE" } else { "AND" };
        let _ = write!(text, " {joint} {condition} ${}", at + 1);
    }
    let _ = write!(text, " ORDER BY seq {order} LIMIT {limit}");
    text
}

fn read(row: &AnyRow) -> Result<AuditRow, sqlx::Error> {
    Ok(AuditRow { seq: shown(row.try_get(0)?), record: row.try_get(1)?, hash: row.try_get(2)? })
}
