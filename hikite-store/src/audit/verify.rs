//! Verifies the whole audit chain: every number, every hash, and every column that repeats a member of a record.
//! Reports the first record that was altered. A chain that was shortened must contain the matching trim record.

use futures_util::TryStreamExt;
use hikite_core::audit::{AuditChain, COLUMNS, ChainBreak, TRIM};
use hikite_core::json::Object;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use super::AuditLog;
use super::trim;
use crate::columns::AUDIT;
use crate::error::{StoreError, StoreFault};
use crate::schema::{shown, stored};

/// Records between two progress reports.
const PROGRESS_INTERVAL: u64 = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditVerification {
    /// The start of the chain: the last removed record, or zero.
    pub first: AuditChain,
    /// The last verified record.
    pub last: AuditChain,
    /// Evidence for the removal of earlier records; `None` if none were removed.
    pub trim: Option<TrimEvidence>,
    pub broken: Option<ChainBreak>,
}

/// Evidence that records were removed properly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrimEvidence {
    /// The trim record `seq` covers everything up to `covers`.
    Record { seq: u64, covers: AuditChain },
    /// Removed by a version that left no trim record.
    Before,
}

impl AuditVerification {
    /// Returns the number of intact records.
    pub fn records(&self) -> u64 {
        self.last.seq.saturating_sub(self.first.seq)
    }
}

impl AuditLog<'_> {
    /// Verifies the chain. `anchor` is a record whose hash was noted elsewhere; the callback receives the progress and
    /// the total.
    pub async fn verify(
        &self,
        anchor: Option<&AuditChain>,
        report: impl Fn(u64, u64) + Send,
    ) -> Result<AuditVerification, StoreError> {
        let mut transaction = self.0.snapshot().await?;
        let verified = self.follow(&mut transaction, (0, anchor), report).await?;
        transaction.rollback().await.map_err(self.0.failed())?;
        Ok(verified)
    }

    /// Verifies only the newest records, up to the end of the chain.
    pub(crate) async fn verify_newest(&self, records: u64) -> Result<Option<ChainBreak>, StoreError> {
        let mut transaction = self.0.snapshot().await?;
        let last = trim::end(&mut transaction, "last").await.map_err(self.0.failed())?;
        let from = last.seq.saturating_sub(records);
        let verified = self.follow(&mut transaction, (from, None), |_, _| {}).await?;
        transaction.rollback().await.map_err(self.0.failed())?;
        Ok(verified.broken)
    }

    /// Verifies the chain from the record after `from`, or from its beginning if that is later.
    async fn follow(
        &self,
        connection: &mut AnyConnection,
        (from, anchor): (u64, Option<&AuditChain>),
        report: impl Fn(u64, u64) + Send,
    ) -> Result<AuditVerification, StoreError> {
        let ([mut first, last], evidence) = match (ends(connection).await, ChainEvidence::read(connection).await) {
            (Ok(ends), Ok(evidence)) => (ends, evidence),
            (Err(error), _) | (_, Err(error)) => return Ok(unreadable_chain(self.damage(error)?)),
        };
        let is_whole = from <= first.seq;
        if !is_whole {
            // The starting hash within the chain must be trusted.
            let query = sqlx::query("SELECT hash FROM audit WHERE seq = $1").bind(stored(from));
            let row = query.fetch_optional(&mut *connection).await.map_err(self.0.failed())?;
            let Some(hash) = row.and_then(|row| row.try_get::<String, _>(0).ok()) else {
                return Ok(unreadable_at(from, "the record is missing or cannot be read"));
            };
            first = AuditChain::new(from, hash);
        }
        let (mut chain, mut trim) = (first.clone(), None);
        let broken = |chain: AuditChain, broken| AuditVerification {
            first: first.clone(),
            last: chain,
            trim: None,
            broken: Some(broken),
        };
        let select = format!("{} WHERE seq > {} ORDER BY seq", AUDIT.select(), if is_whole { 0 } else { from });
        let mut rows = sqlx::query(&select).fetch(connection);
        loop {
            let row = match rows.try_next().await {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) => {
                    let problem = self.damage(error)?;
                    return Ok(broken(chain.clone(), ChainBreak::new(chain.seq + 1, problem)));
                }
            };
            match follow_row(&mut chain, &row) {
                Err(found) => return Ok(broken(chain, found)),
                Ok(covers) => trim = covers.map(|covers| (chain.seq, covers)).or(trim),
            }
            if anchor.is_some_and(|anchor| anchor.seq == chain.seq && anchor.hash != chain.hash) {
                let problem = "the hash differs from the one noted earlier";
                return Ok(broken(chain.clone(), ChainBreak::new(chain.seq, problem)));
            }
            if (chain.seq - first.seq).is_multiple_of(PROGRESS_INTERVAL) {
                report(chain.seq - first.seq, last.seq.saturating_sub(first.seq));
            }
        }
        let mut found = end(&chain, &last).or_else(|| anchor_problem(&first, &chain, anchor));
        if !is_whole {
            return Ok(AuditVerification { first, last: chain, trim: None, broken: found });
        }
        let trim = trim.map(|(seq, covers)| TrimEvidence::Record { seq, covers });
        let trace = evidence.of(&first, trim).map_err(|broken| found.get_or_insert(broken).clone());
        let found = found.or_else(|| evidence.truncation(&chain));
        Ok(AuditVerification { first, last: chain, trim: trace.ok().flatten(), broken: found })
    }

    /// Turns a read error into a finding; connection errors are returned as errors.
    fn damage(&self, error: sqlx::Error) -> Result<String, StoreError> {
        if matches!(error, sqlx::Error::RowNotFound) {
            return Ok("the row with the start or the end of the chain is missing".into());
        }
        let error = self.0.failed()(error);
        if matches!(error.fault, StoreFault::Failed | StoreFault::Damaged) {
            return Ok("the record cannot be read".into());
        }
        Err(error)
    }
}

async fn ends(connection: &mut AnyConnection) -> Result<[AuditChain; 2], sqlx::Error> {
    let mut ends = [AuditChain::new(0, ""), AuditChain::new(0, "")];
    for (name, end) in ["first", "last"].into_iter().zip(&mut ends) {
        let query = sqlx::query("SELECT seq, hash FROM audit_end WHERE name = $1").bind(name);
        let row = query.fetch_one(&mut *connection).await?;
        *end = AuditChain::new(shown(row.try_get(0)?), row.try_get::<String, _>(1)?);
    }
    Ok(ends)
}

/// Stored evidence of the chain's history.
struct ChainEvidence {
    /// Start of the chain when trims began to leave records.
    first_v6: AuditChain,
    /// The highest number that a mark names.
    marked: u64,
}

impl ChainEvidence {
    async fn read(connection: &mut AnyConnection) -> Result<Self, sqlx::Error> {
        let row = sqlx::query("SELECT MAX(seq) FROM audit_mark").fetch_one(&mut *connection).await?;
        let marked = row.try_get::<Option<i64>, _>(0)?.map_or(0, shown);
        Ok(Self { first_v6: trim::end(connection, "first_v6").await?, marked })
    }

    /// Returns the evidence for the removal of the records before `first`.
    fn of(&self, first: &AuditChain, trim: Option<TrimEvidence>) -> Result<Option<TrimEvidence>, ChainBreak> {
        if first.seq == 0 {
            return Ok(None);
        }
        match trim {
            Some(TrimEvidence::Record { seq, covers }) if covers.seq >= first.seq => {
                if covers.seq == first.seq && covers.hash != first.hash {
                    let problem = format!("the chain starts after record {} with another hash", first.seq);
                    return Err(ChainBreak::new(seq, problem));
                }
                Ok(Some(TrimEvidence::Record { seq, covers }))
            }
            _ if *first == self.first_v6 => Ok(Some(TrimEvidence::Before)),
            _ => {
                let problem = format!("the records up to {} were removed, but no trim record says so", first.seq);
                Err(ChainBreak::new(first.seq, problem))
            }
        }
    }

    /// Reports a chain that ends before a record that once existed.
    fn truncation(&self, chain: &AuditChain) -> Option<ChainBreak> {
        let problem = "the record existed before, but the chain ends earlier";
        (self.marked > chain.seq).then(|| ChainBreak::new(self.marked, problem))
    }
}

fn unreadable_chain(problem: String) -> AuditVerification {
    unreadable_at(0, problem)
}

fn unreadable_at(seq: u64, problem: impl Into<String>) -> AuditVerification {
    let chain = AuditChain::new(0, "");
    AuditVerification { first: chain.clone(), last: chain, trim: None, broken: Some(ChainBreak::new(seq, problem)) }
}

/// Verifies one record. Returns the covered end if it is a trim record.
fn follow_row(chain: &mut AuditChain, row: &AnyRow) -> Result<Option<AuditChain>, ChainBreak> {
    let next = chain.seq + 1;
    let unreadable = |_| ChainBreak::new(next, "the record cannot be read");
    let seq: i64 = row.try_get("seq").map_err(unreadable)?;
    let (record, hash): (String, String) =
        (row.try_get("record").map_err(unreadable)?, row.try_get("hash").map_err(unreadable)?);
    let mut after = chain.clone();
    let members = after.follow(shown(seq), &record, &hash)?;
    let at: i64 = row.try_get("at").map_err(unreadable)?;
    if members.get("at").and_then(|at| at.decode::<i64>().ok()) != Some(at) {
        return Err(disagrees(next, "at"));
    }
    for (column, member) in COLUMNS {
        let value: String = row.try_get(column).map_err(unreadable)?;
        if value != text(&members, member) {
            return Err(disagrees(next, column));
        }
    }
    *chain = after;
    let covers = (text(&members, "kind") == TRIM).then(|| {
        let upto = members.get("trimmedTo").and_then(|seq| seq.decode().ok()).unwrap_or_default();
        AuditChain::new(upto, text(&members, "trimmedHash"))
    });
    Ok(covers)
}

fn text(members: &Object, name: &str) -> String {
    members.text(name).unwrap_or_default()
}

fn disagrees(seq: u64, column: &str) -> ChainBreak {
    ChainBreak::new(seq, format!("the column `{column}` does not match the record"))
}

/// Compares the verified end of the chain with the recorded one.
fn end(chain: &AuditChain, last: &AuditChain) -> Option<ChainBreak> {
    if chain == last {
        return None;
    }
    let problem = if chain.seq < last.seq {
        format!("the record is missing, and the chain continues with record {}", last.seq)
    } else {
        format!("the chain should end with record {} and another hash", last.seq)
    };
    Some(ChainBreak::new(if chain.seq < last.seq { chain.seq + 1 } else { chain.seq }, problem))
}

/// Checks that the anchor is in the chain or was removed properly.
fn anchor_problem(first: &AuditChain, chain: &AuditChain, anchor: Option<&AuditChain>) -> Option<ChainBreak> {
    let anchor = anchor?;
    let wrong_begin = anchor.seq == first.seq && anchor.hash != first.hash;
    (wrong_begin || anchor.seq > chain.seq)
        .then(|| ChainBreak::new(anchor.seq, "the record was noted earlier, but the chain does not contain it"))
}
