//! Goes through the whole chain: every number, every hash, and every column that repeats what a record says. Names
//! the first record that is not as it was written.

use futures_util::TryStreamExt;
use hikite_core::audit::{Broken, COLUMNS, Chain};
use hikite_core::json::Object;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::control::shown;
use crate::error::{Fault, StoreError};
use crate::store::Store;
use crate::table::AUDIT;

/// So often it is told how far it is.
const TELL_EVERY: u64 = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Where the chain begins: the last record that was taken away, or nothing.
    pub first: Chain,
    /// How far it was followed.
    pub last: Chain,
    pub broken: Option<Broken>,
}

impl Verified {
    /// Records that are there and as they were written.
    pub fn records(&self) -> u64 {
        self.last.seq.saturating_sub(self.first.seq)
    }
}

impl Store {
    /// `anchor` is a record whose hash was written down elsewhere. `tell` hears how many of how many were looked at.
    pub async fn verify_audit(
        &self,
        anchor: Option<&Chain>,
        tell: impl Fn(u64, u64) + Send,
    ) -> Result<Verified, StoreError> {
        let mut transaction = self.snapshot().await?;
        let verified = self.follow(&mut transaction, anchor, tell).await?;
        transaction.rollback().await.map_err(self.failed())?;
        Ok(verified)
    }

    async fn follow(
        &self,
        connection: &mut AnyConnection,
        anchor: Option<&Chain>,
        tell: impl Fn(u64, u64) + Send,
    ) -> Result<Verified, StoreError> {
        let [first, last] = match ends(connection).await {
            Ok(ends) => ends,
            Err(error) => return Ok(nothing(self.damage(error)?)),
        };
        let mut chain = first.clone();
        let broken =
            |chain: Chain, broken| Verified { first: first.clone(), last: chain, broken: Some(broken) };
        let select = format!("{} ORDER BY seq", AUDIT.select());
        let mut rows = sqlx::query(&select).fetch(connection);
        loop {
            let row = match rows.try_next().await {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) => {
                    let problem = self.damage(error)?;
                    return Ok(broken(chain.clone(), Broken::new(chain.seq + 1, problem)));
                }
            };
            if let Err(found) = follow_row(&mut chain, &row) {
                return Ok(broken(chain, found));
            }
            if anchor.is_some_and(|anchor| anchor.seq == chain.seq && anchor.hash != chain.hash) {
                let problem = "it has another hash than was written down";
                return Ok(broken(chain.clone(), Broken::new(chain.seq, problem)));
            }
            if (chain.seq - first.seq).is_multiple_of(TELL_EVERY) {
                tell(chain.seq - first.seq, last.seq.saturating_sub(first.seq));
            }
        }
        let found = end(&chain, &last).or_else(|| beyond(&first, &chain, anchor));
        Ok(Verified { first, last: chain, broken: found })
    }

    /// What cannot be read is a finding; what keeps us from the store is not.
    fn damage(&self, error: sqlx::Error) -> Result<String, StoreError> {
        if matches!(error, sqlx::Error::RowNotFound) {
            return Ok("the row that says where the chain begins or ends is missing".into());
        }
        let error = self.failed()(error);
        if matches!(error.fault, Fault::Failed | Fault::Damaged) {
            return Ok("it cannot be read".into());
        }
        Err(error)
    }
}

async fn ends(connection: &mut AnyConnection) -> Result<[Chain; 2], sqlx::Error> {
    let mut ends = [Chain::new(0, ""), Chain::new(0, "")];
    for (name, end) in ["first", "last"].into_iter().zip(&mut ends) {
        let query = sqlx::query("SELECT seq, hash FROM audit_end WHERE name = $1").bind(name);
        let row = query.fetch_one(&mut *connection).await?;
        *end = Chain::new(shown(row.try_get(0)?), row.try_get::<String, _>(1)?);
    }
    Ok(ends)
}

fn nothing(problem: String) -> Verified {
    let chain = Chain::new(0, "");
    Verified { first: chain.clone(), last: chain, broken: Some(Broken::new(0, problem)) }
}

fn follow_row(chain: &mut Chain, row: &AnyRow) -> Result<(), Broken> {
    let next = chain.seq + 1;
    let unreadable = |_| Broken::new(next, "it cannot be read");
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
    Ok(())
}

fn text(members: &Object, name: &str) -> String {
    members.text(name).unwrap_or_default()
}

fn disagrees(seq: u64, column: &str) -> Broken {
    Broken::new(seq, format!("its column `{column}` does not say what the record says"))
}

/// What is wrong with where the chain is said to end.
fn end(chain: &Chain, last: &Chain) -> Option<Broken> {
    if chain == last {
        return None;
    }
    let problem = if chain.seq < last.seq {
        format!("it is missing, and the chain goes on to record {}", last.seq)
    } else {
        format!("the chain is said to end with record {} and another hash", last.seq)
    };
    Some(Broken::new(if chain.seq < last.seq { chain.seq + 1 } else { chain.seq }, problem))
}

/// A record that was written down must be there, or have been taken away in order.
fn beyond(first: &Chain, chain: &Chain, anchor: Option<&Chain>) -> Option<Broken> {
    let anchor = anchor?;
    let wrong_begin = anchor.seq == first.seq && anchor.hash != first.hash;
    (wrong_begin || anchor.seq > chain.seq)
        .then(|| Broken::new(anchor.seq, "it was written down, and the chain does not have it"))
}
