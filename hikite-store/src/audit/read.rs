//! Reading the audit log, newest or oldest first. A single equality uses its index; other filters scan piece by piece
//! within a time budget, and the page says where to continue.

use std::time::Duration;

use hikite_core::json::Raw;
use sqlx::Row;
use sqlx::any::AnyRow;
use tokio::time::Instant;

use super::AuditLog;
use super::query::{AuditCondition, AuditQuery, SequenceRange};
use super::trim::end;
use crate::error::StoreError;
use crate::schema::{shown, stored};

/// Time after which an incomplete page is returned.
const TIME_BUDGET: Duration = Duration::from_millis(50);
/// Sequence numbers per scan where no index gives the records in order.
const SCAN_SIZE: u64 = 2_000;
/// A time range with at most this many records is first narrowed to its sequence numbers.
const NARROWED_RECORDS_MAX: u64 = 20_000;

/// A filter of audit records; the default matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub kind: Option<String>,
    pub decision: Option<String>,
    pub outcome: Option<String>,
    pub request_id: Option<String>,
    pub subject: Option<String>,
    /// The subject, or the id or name of a user.
    pub actor: Option<String>,
    pub project: Option<String>,
    pub module: Option<String>,
    pub tool: Option<String>,
    /// Milliseconds since 1970, inclusive.
    pub since: Option<u64>,
    /// Milliseconds since 1970, exclusive.
    pub until: Option<u64>,
    /// A case-insensitive part of any text in the record.
    pub text: Option<String>,
}

/// Direction and starting point of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditCursor {
    /// Backwards from the newest record, or from before this one.
    Back(Option<u64>),
    /// Forwards from after this record.
    On(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    pub seq: u64,
    /// The record exactly as hashed.
    pub record: String,
    pub hash: String,
}

/// A page of matching records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    pub rows: Vec<AuditRow>,
    /// Cursor of the next page, in the same direction. A page may have fewer rows than requested, or none, without
    /// being the last.
    pub next: Option<u64>,
}

impl AuditRow {
    /// Returns the record with its hash as last member. Without that member it is the hashed text.
    pub fn line(&self) -> String {
        let open = self.record.strip_suffix('}').unwrap_or(&self.record);
        format!("{open},\"hash\":\"{}\"}}", self.hash)
    }
}

impl AuditLog<'_> {
    /// Returns up to `limit` records, however long the search takes.
    pub async fn read(
        &self,
        filter: &AuditFilter,
        mut walk: AuditCursor,
        limit: usize,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let mut rows = Vec::new();
        loop {
            let page = self.page(filter, walk, limit - rows.len()).await?;
            rows.extend(page.rows);
            match page.next.filter(|_| rows.len() < limit) {
                Some(next) => walk = walk.resume_at(next),
                None => return Ok(rows),
            }
        }
    }

    /// Returns the records found within the time budget, at most `limit`, and a cursor.
    pub async fn page(&self, filter: &AuditFilter, walk: AuditCursor, limit: usize) -> Result<AuditPage, StoreError> {
        let Some(actor) = &filter.actor else { return self.scan(filter, walk, limit).await };
        let mut pages = Vec::new();
        for subject in self.subjects(actor).await? {
            // If both subject and actor are given, both must match.
            if filter.subject.as_ref().is_none_or(|named| *named == subject) {
                let filter = AuditFilter { actor: None, subject: Some(subject), ..filter.clone() };
                pages.push(self.scan(&filter, walk, limit).await?);
            }
        }
        Ok(walk.merge(pages, limit))
    }

    /// Returns the subjects under which a user is recorded.
    async fn subjects(&self, actor: &str) -> Result<Vec<String>, StoreError> {
        let mut subjects = vec![actor.to_owned()];
        if actor.contains('\0') {
            return Ok(subjects);
        }
        let query = sqlx::query("SELECT subject FROM users WHERE name = $1 OR id = $1").bind(actor);
        for row in query.fetch_all(self.0.reader()).await.map_err(self.0.failed())? {
            let subject: String = row.try_get(0).map_err(self.0.failed())?;
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        Ok(subjects)
    }

    async fn scan(&self, filter: &AuditFilter, walk: AuditCursor, limit: usize) -> Result<AuditPage, StoreError> {
        let conditions = filter.conditions(self.0.engine);
        // No record contains NUL, and PostgreSQL would reject it.
        if conditions.iter().any(AuditCondition::has_nul) || limit == 0 {
            return Ok(AuditPage::default());
        }
        let mut left = self.range(filter, walk).await?;
        let needle = filter.text.as_ref().map(|text| text.to_lowercase());
        // An index on one column is in chain order.
        let is_direct = conditions.len() <= 1 && conditions.iter().all(AuditCondition::has_index);
        let started = Instant::now();
        let mut page = AuditPage::default();
        while !left.is_empty() {
            let piece = if is_direct { left } else { left.piece(walk, SCAN_SIZE) };
            let wanted = limit - page.rows.len();
            let found = self.select(&AuditQuery { conditions: &conditions, range: piece, walk, limit: wanted }).await?;
            let is_cut = found.len() == wanted;
            let edge = found.last().filter(|_| is_cut).map(|row| row.seq);
            left = left.after(walk, edge.map_or(piece, |seq| piece.up_to(walk, seq)));
            page.rows
                .extend(found.into_iter().filter(|row| needle.as_ref().is_none_or(|needle| row.contains_text(needle))));
            if page.rows.len() == limit || (started.elapsed() >= TIME_BUDGET && !left.is_empty()) {
                page.next = Some(left.edge(walk));
                break;
            }
        }
        Ok(page)
    }

    /// Returns the range of sequence numbers that can match.
    async fn range(&self, filter: &AuditFilter, walk: AuditCursor) -> Result<SequenceRange, StoreError> {
        let mut connection = self.0.reader().acquire().await.map_err(self.0.failed())?;
        let first = end(&mut connection, "first").await.map_err(self.0.failed())?.seq;
        let last = end(&mut connection, "last").await.map_err(self.0.failed())?.seq;
        let whole = SequenceRange { low: first + 1, high: last + 1 }.from(walk);
        if filter.since.is_none() && filter.until.is_none() {
            return Ok(whole);
        }
        // Record times come from different nodes and are not ordered, so the range is looked up.
        let text = format!(
            "SELECT COUNT(*), MIN(seq), MAX(seq) FROM \
             (SELECT seq FROM audit WHERE at >= $1 AND at < $2 LIMIT {}) AS span",
            NARROWED_RECORDS_MAX + 1
        );
        let query = sqlx::query(&text).bind(stored(filter.since.unwrap_or(0)));
        let query = query.bind(filter.until.map_or(i64::MAX, stored));
        let row = query.fetch_one(&mut *connection).await.map_err(self.0.failed())?;
        let read = || -> Result<(i64, Option<i64>, Option<i64>), sqlx::Error> {
            Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
        };
        let (count, min, max) = read().map_err(self.0.failed())?;
        Ok(match min.zip(max) {
            Some((min, max)) if shown(count) <= NARROWED_RECORDS_MAX => whole.within(shown(min), shown(max) + 1),
            Some(_) => whole,
            None => SequenceRange { low: 0, high: 0 },
        })
    }

    async fn select(&self, select: &AuditQuery<'_>) -> Result<Vec<AuditRow>, StoreError> {
        let text = select.text();
        let mut query = sqlx::query(&text);
        for condition in select.conditions {
            query = match condition {
                AuditCondition::Word(_, word) => query.bind(*word),
                AuditCondition::Text(_, pattern) => query.bind(pattern.as_str()),
                AuditCondition::Since(at) | AuditCondition::Until(at) => query.bind(stored(*at)),
            };
        }
        let query = query.bind(stored(select.range.low)).bind(stored(select.range.high));
        let rows = query.fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        rows.iter().map(read).collect::<Result<_, _>>().map_err(self.0.failed())
    }
}

impl AuditRow {
    /// Returns `true` if a text member contains `needle`, which is in lower case. Member names are ignored.
    fn contains_text(&self, needle: &str) -> bool {
        let record = Raw::parse(self.record.clone()).ok().and_then(|record| record.object()).unwrap_or_default();
        record.iter().filter_map(|(_, value)| value.text()).any(|text| text.to_lowercase().contains(needle))
    }
}

fn read(row: &AnyRow) -> Result<AuditRow, sqlx::Error> {
    Ok(AuditRow { seq: shown(row.try_get(0)?), record: row.try_get(1)?, hash: row.try_get(2)? })
}
