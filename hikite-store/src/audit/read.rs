//! Looking at the audit: some of its records, the newest or the oldest first. One word is found through its index; what no
//! index answers is looked for piece by piece, for a limited time, and the page says where to go on.

use std::time::Duration;

use hikite_core::json::Raw;
use sqlx::Row;
use sqlx::any::AnyRow;
use tokio::time::Instant;

use super::query::{Condition, Range, Select};
use super::trim::end;
use crate::control::{shown, stored};
use crate::error::StoreError;
use crate::store::Store;

/// A page that is not full is given after so long.
const BUDGET: Duration = Duration::from_millis(50);
/// Numbers that are looked through at once where no index gives the records in order.
const PIECE: u64 = 2_000;
/// A span of time with at most so many records is narrowed down to its numbers first.
const SPAN: u64 = 20_000;

/// Which records are asked for; nothing means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub kind: Option<String>,
    pub decision: Option<String>,
    pub outcome: Option<String>,
    pub request_id: Option<String>,
    pub subject: Option<String>,
    /// The subject, or the id or the name of a user.
    pub actor: Option<String>,
    pub project: Option<String>,
    pub module: Option<String>,
    pub tool: Option<String>,
    /// Milliseconds since 1970, this one included.
    pub since: Option<u64>,
    /// And this one not.
    pub until: Option<u64>,
    /// A part of any text in the record, whether letters are capital or not.
    pub text: Option<String>,
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

/// Some records that fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    pub rows: Vec<AuditRow>,
    /// Where to go on, in the same direction. A page may have fewer rows than were asked for, or none, and still not be the
    /// last.
    pub next: Option<u64>,
}

impl AuditRow {
    /// The record with its hash as the last member. Without that, and the brace again, it is what was hashed.
    pub fn line(&self) -> String {
        let open = self.record.strip_suffix('}').unwrap_or(&self.record);
        format!("{open},\"hash\":\"{}\"}}", self.hash)
    }
}

impl Store {
    /// As many records as are asked for, if there are so many, however long it takes to find them.
    pub async fn audit(
        &self,
        filter: &AuditFilter,
        mut walk: AuditWalk,
        limit: usize,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let mut rows = Vec::new();
        loop {
            let page = self.audit_page(filter, walk, limit - rows.len()).await?;
            rows.extend(page.rows);
            match page.next.filter(|_| rows.len() < limit) {
                Some(next) => walk = walk.resume_at(next),
                None => return Ok(rows),
            }
        }
    }

    /// The records that are found soon, at most `limit`, and where to go on.
    pub async fn audit_page(
        &self,
        filter: &AuditFilter,
        walk: AuditWalk,
        limit: usize,
    ) -> Result<AuditPage, StoreError> {
        let Some(actor) = &filter.actor else { return self.page(filter, walk, limit).await };
        let mut pages = Vec::new();
        for subject in self.subjects(actor).await? {
            // Both may be named, and then both count.
            if filter.subject.as_ref().is_none_or(|named| *named == subject) {
                let filter = AuditFilter { actor: None, subject: Some(subject), ..filter.clone() };
                pages.push(self.page(&filter, walk, limit).await?);
            }
        }
        Ok(walk.merge(pages, limit))
    }

    /// Under which subjects somebody is recorded.
    async fn subjects(&self, actor: &str) -> Result<Vec<String>, StoreError> {
        let mut subjects = vec![actor.to_owned()];
        if actor.contains('\0') {
            return Ok(subjects);
        }
        let query = sqlx::query("SELECT subject FROM users WHERE name = $1 OR id = $1").bind(actor);
        for row in query.fetch_all(self.reader()).await.map_err(self.failed())? {
            let subject: String = row.try_get(0).map_err(self.failed())?;
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        Ok(subjects)
    }

    async fn page(
        &self,
        filter: &AuditFilter,
        walk: AuditWalk,
        limit: usize,
    ) -> Result<AuditPage, StoreError> {
        let conditions = filter.conditions(self.engine());
        // No record holds one, and PostgreSQL would not take it.
        if conditions.iter().any(Condition::has_nul) || limit == 0 {
            return Ok(AuditPage::default());
        }
        let mut left = self.range(filter, walk).await?;
        let needle = filter.text.as_ref().map(|text| text.to_lowercase());
        // One word stands in its index in the order of the chain.
        let is_direct = conditions.len() <= 1 && conditions.iter().all(Condition::has_index);
        let started = Instant::now();
        let mut page = AuditPage::default();
        while !left.is_empty() {
            let piece = if is_direct { left } else { left.piece(walk, PIECE) };
            let wanted = limit - page.rows.len();
            let found =
                self.select(&Select { conditions: &conditions, range: piece, walk, limit: wanted }).await?;
            let is_cut = found.len() == wanted;
            let edge = found.last().filter(|_| is_cut).map(|row| row.seq);
            left = left.after(walk, edge.map_or(piece, |seq| piece.up_to(walk, seq)));
            page.rows.extend(
                found.into_iter().filter(|row| needle.as_ref().is_none_or(|needle| row.says(needle))),
            );
            if page.rows.len() == limit || (started.elapsed() >= BUDGET && !left.is_empty()) {
                page.next = Some(left.edge(walk));
                break;
            }
        }
        Ok(page)
    }

    /// The numbers that can fit at all.
    async fn range(&self, filter: &AuditFilter, walk: AuditWalk) -> Result<Range, StoreError> {
        let mut connection = self.reader().acquire().await.map_err(self.failed())?;
        let first = end(&mut connection, "first").await.map_err(self.failed())?.seq;
        let last = end(&mut connection, "last").await.map_err(self.failed())?.seq;
        let whole = Range { low: first + 1, high: last + 1 }.from(walk);
        if filter.since.is_none() && filter.until.is_none() {
            return Ok(whole);
        }
        // The times of records are those of their nodes, and in no order: what is in the span is looked up.
        let text = format!(
            "SELECT COUNT(*), MIN(seq), MAX(seq) FROM \
             (SELECT seq FROM audit WHERE at >= $1 AND at < $2 LIMIT {}) AS span",
            SPAN + 1
        );
        let query = sqlx::query(&text).bind(stored(filter.since.unwrap_or(0)));
        let query = query.bind(filter.until.map_or(i64::MAX, stored));
        let row = query.fetch_one(&mut *connection).await.map_err(self.failed())?;
        let read = || -> Result<(i64, Option<i64>, Option<i64>), sqlx::Error> {
            Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
        };
        let (count, min, max) = read().map_err(self.failed())?;
        Ok(match min.zip(max) {
            Some((min, max)) if shown(count) <= SPAN => whole.within(shown(min), shown(max) + 1),
            Some(_) => whole,
            None => Range { low: 0, high: 0 },
        })
    }

    async fn select(&self, select: &Select<'_>) -> Result<Vec<AuditRow>, StoreError> {
        let text = select.text();
        let mut query = sqlx::query(&text);
        for condition in select.conditions {
            query = match condition {
                Condition::Word(_, word) => query.bind(*word),
                Condition::Text(_, pattern) => query.bind(pattern.as_str()),
                Condition::Since(at) | Condition::Until(at) => query.bind(stored(*at)),
            };
        }
        let query = query.bind(stored(select.range.low)).bind(stored(select.range.high));
        let rows = query.fetch_all(self.reader()).await.map_err(self.failed())?;
        rows.iter().map(read).collect::<Result<_, _>>().map_err(self.failed())
    }
}

impl AuditRow {
    /// Whether one of its texts holds another, which is in small letters. The names of its members do not count.
    fn says(&self, needle: &str) -> bool {
        let record =
            Raw::parse(self.record.clone()).ok().and_then(|record| record.object()).unwrap_or_default();
        record.iter().filter_map(|(_, value)| value.text()).any(|text| text.to_lowercase().contains(needle))
    }
}

fn read(row: &AnyRow) -> Result<AuditRow, sqlx::Error> {
    Ok(AuditRow { seq: shown(row.try_get(0)?), record: row.try_get(1)?, hash: row.try_get(2)? })
}
