//! The SQL query of an audit filter: its conditions and its range of sequence numbers.

use std::fmt::Write;

use super::read::{AuditCursor, AuditFilter, AuditPage};
use crate::connect::DatabaseEngine;

/// A condition on records.
pub(super) enum AuditCondition<'a> {
    /// Equality of a column.
    Word(&'static str, &'a str),
    /// A pattern match on the record, with the operator of the database.
    Text(&'static str, String),
    Since(u64),
    Until(u64),
}

/// A half-open range of sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SequenceRange {
    pub(super) low: u64,
    pub(super) high: u64,
}

pub(super) struct AuditQuery<'a> {
    pub(super) conditions: &'a [AuditCondition<'a>],
    pub(super) range: SequenceRange,
    pub(super) walk: AuditCursor,
    pub(super) limit: usize,
}

impl AuditFilter {
    pub(super) fn conditions(&self, engine: DatabaseEngine) -> Vec<AuditCondition<'_>> {
        let words = [
            ("kind", &self.kind),
            ("decision", &self.decision),
            ("outcome", &self.outcome),
            ("request_id", &self.request_id),
            ("subject", &self.subject),
            ("project", &self.project),
            ("module", &self.module),
            ("tool", &self.tool),
        ];
        let words = words.into_iter().filter_map(|(column, word)| Some(AuditCondition::Word(column, word.as_deref()?)));
        let text = self.text.as_deref().filter(|text| !text.is_empty());
        let text = text.map(|text| AuditCondition::Text(engine.like(), pattern(text)));
        let since = self.since.map(AuditCondition::Since);
        words.chain(text).chain(since).chain(self.until.map(AuditCondition::Until)).collect()
    }
}

/// Builds a LIKE pattern for the text as encoded in JSON.
fn pattern(text: &str) -> String {
    let quoted = hikite_core::json::Raw::from(text);
    let json = quoted.as_str();
    let inner = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(&json);
    let mut pattern = String::with_capacity(inner.len() + 2);
    pattern.push('%');
    for char in inner.chars() {
        if matches!(char, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern.push('%');
    pattern
}

impl AuditCondition<'_> {
    pub(super) fn has_nul(&self) -> bool {
        matches!(self, Self::Word(_, word) if word.contains('\0'))
            || matches!(self, Self::Text(_, text) if text.contains('\0'))
    }

    /// Returns `true` if an index returns the records in chain order.
    pub(super) fn has_index(&self) -> bool {
        matches!(self, Self::Word(..))
    }
}

impl AuditQuery<'_> {
    pub(super) fn text(&self) -> String {
        let mut text = "SELECT seq, record, hash FROM audit WHERE".to_owned();
        let mut number = 0;
        for condition in self.conditions {
            number += 1;
            let _ = match condition {
                AuditCondition::Word(column, _) => write!(text, " {column} = ${number} AND"),
                AuditCondition::Text(like, _) => write!(text, " record {like} ${number} ESCAPE '\\' AND"),
                AuditCondition::Since(_) => write!(text, " at >= ${number} AND"),
                AuditCondition::Until(_) => write!(text, " at < ${number} AND"),
            };
        }
        let order = if matches!(self.walk, AuditCursor::Back(_)) { "DESC" } else { "ASC" };
        let _ =
            write!(text, " seq >= ${} AND seq < ${} ORDER BY seq {order} LIMIT {}", number + 1, number + 2, self.limit);
        text
    }
}

impl SequenceRange {
    pub(super) fn is_empty(self) -> bool {
        self.low >= self.high
    }

    /// Restricts the range to what lies ahead of the cursor.
    pub(super) fn from(self, walk: AuditCursor) -> Self {
        match walk {
            AuditCursor::Back(before) => self.within(0, before.unwrap_or(u64::MAX)),
            AuditCursor::On(after) => self.within(after.saturating_add(1), u64::MAX),
        }
    }

    pub(super) fn within(self, low: u64, high: u64) -> Self {
        Self { low: self.low.max(low), high: self.high.min(high) }
    }

    /// Returns the first part of at most `size` numbers, in walking direction.
    pub(super) fn piece(self, walk: AuditCursor, size: u64) -> Self {
        match walk {
            AuditCursor::Back(_) => self.within(self.high.saturating_sub(size), u64::MAX),
            AuditCursor::On(_) => self.within(0, self.low.saturating_add(size)),
        }
    }

    /// Returns the part up to and including a record.
    pub(super) fn up_to(self, walk: AuditCursor, seq: u64) -> Self {
        match walk {
            AuditCursor::Back(_) => self.within(seq, u64::MAX),
            AuditCursor::On(_) => self.within(0, seq + 1),
        }
    }

    /// Returns the rest after a part.
    pub(super) fn after(self, walk: AuditCursor, part: Self) -> Self {
        match walk {
            AuditCursor::Back(_) => self.within(0, part.low),
            AuditCursor::On(_) => self.within(part.high, u64::MAX),
        }
    }

    /// Returns the cursor from which the rest is read.
    pub(super) fn edge(self, walk: AuditCursor) -> u64 {
        match walk {
            AuditCursor::Back(_) => self.high,
            AuditCursor::On(_) => self.low.saturating_sub(1),
        }
    }
}

impl AuditCursor {
    /// Returns the same direction from another record on.
    #[must_use]
    pub fn resume_at(self, next: u64) -> Self {
        match self {
            Self::Back(_) => Self::Back(Some(next)),
            Self::On(_) => Self::On(next),
        }
    }

    /// Merges several pages into one, as far as all of them reach.
    pub(super) fn merge(self, mut pages: Vec<AuditPage>, limit: usize) -> AuditPage {
        if pages.len() < 2 {
            return pages.pop().unwrap_or_default();
        }
        let is_back = matches!(self, Self::Back(_));
        let nexts = pages.iter().filter_map(|page| page.next);
        let mut next = if is_back { nexts.max() } else { nexts.min() };
        let is_known = |seq: u64| next.is_none_or(|next| if is_back { seq >= next } else { seq <= next });
        let mut rows: Vec<_> =
            pages.iter().flat_map(|page| &page.rows).filter(|row| is_known(row.seq)).cloned().collect();
        rows.sort_by_key(|row| if is_back { u64::MAX - row.seq } else { row.seq });
        if rows.len() > limit {
            rows.truncate(limit);
            next = rows.last().map(|row| row.seq);
        }
        AuditPage { rows, next }
    }
}
