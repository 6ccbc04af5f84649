//! The log of changes: which rows each revision touched. A process that follows the store reads those rows alone; where the
//! log has a gap (a node of the version before wrote something, or too much happened since) it reads everything.

use sqlx::{Any, Row, Transaction};

use crate::error::StoreError;
use crate::store::Store;

/// The version of the store that has the log.
pub(crate) const LOG_SINCE: i64 = 9;
/// So many revisions are kept; whoever is further behind reads everything.
const KEPT: i64 = 4096;
/// Old revisions are removed with every so-manieth change.
const TRIM_EVERY: i64 = 256;

/// The kinds of things that change. Those of the drawer go by the names of its own kinds.
pub mod kind {
    pub const PROJECT: &str = "project";
    pub const TOKEN: &str = "token";
    /// All tokens of the project that the id names.
    pub const TOKENS_OF_PROJECT: &str = "tokens-of-project";
    pub const USER: &str = "users";
    pub const TOOL: &str = "registered-tool";
    pub const SWITCH: &str = "tool-switch";
    pub const VAULT: &str = "vault";
    pub const MEMORY: &str = "memory";
}

/// Something that was changed, made or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: String,
    /// Empty where all of the kind may have changed.
    pub id: String,
}

/// All that happened between two revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The revision after which this begins.
    pub from: i64,
    /// The revision with which it ends.
    pub to: i64,
    /// `None` if that is not known: everything may have changed.
    pub touched: Option<Vec<Change>>,
}

impl Changes {
    /// The ids of a kind that changed; `None` if all of them may have.
    pub fn ids(&self, kind: &str) -> Option<Vec<&str>> {
        let touched = self.touched.as_ref()?.iter().filter(|change| change.kind == kind);
        let mut ids: Vec<&str> = touched.map(|change| change.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        (ids.first() != Some(&"")).then_some(ids)
    }

    /// True if something of one of these kinds may have changed.
    pub fn concern(&self, kinds: &[&str]) -> bool {
        let is_one = |change: &Change| kinds.contains(&change.kind.as_str());
        self.touched.as_ref().is_none_or(|touched| touched.iter().any(is_one))
    }

    /// True if they say all that happened since a revision.
    pub fn continue_from(&self, revision: i64) -> bool {
        self.touched.is_some() && self.from <= revision
    }
}

impl Store {
    /// All that happened since a revision that is known; with a negative one, everything.
    pub async fn changes_since(&self, known: i64) -> Result<Changes, StoreError> {
        let to = self.revision().await?;
        let nothing = Changes { from: known, to, touched: Some(Vec::new()) };
        if known == to {
            return Ok(nothing);
        }
        let span = to - known;
        if known < 0 || !(0..=KEPT).contains(&span) || self.version() < LOG_SINCE {
            return Ok(Changes { touched: None, ..nothing });
        }
        let text = "SELECT revision, kind, id FROM change_log WHERE revision > $1 AND revision <= $2 ORDER BY revision";
        let query = sqlx::query(text).bind(known).bind(to);
        let rows = query.fetch_all(self.reader()).await.map_err(self.failed())?;
        let (mut last, mut revisions, mut touched) = (known, 0, Vec::with_capacity(rows.len()));
        for row in &rows {
            let (revision, kind, id): (i64, String, String) =
                (|| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)))().map_err(self.failed())?;
            revisions += i64::from(revision != last);
            last = revision;
            touched.push(Change { kind, id });
        }
        Ok(Changes { touched: (revisions == span).then_some(touched), ..nothing })
    }

    /// Raises the revision in a transaction and notes what it touched. Nothing noted makes everybody read everything.
    pub(crate) async fn raise_revision(
        &self,
        transaction: &mut Transaction<'_, Any>,
        touched: &[(&str, &str)],
    ) -> Result<(), StoreError> {
        let text = "UPDATE hikite SET value = value + 1 WHERE name = 'revision' RETURNING value";
        let row = sqlx::query(text).fetch_one(&mut **transaction).await.map_err(self.failed())?;
        if self.version() < LOG_SINCE {
            return Ok(());
        }
        let revision: i64 = row.try_get(0).map_err(self.failed())?;
        for (kind, id) in touched {
            let text =
                "INSERT INTO change_log (revision, kind, id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
            let query = sqlx::query(text).bind(revision).bind(*kind).bind(*id);
            query.execute(&mut **transaction).await.map_err(self.failed())?;
        }
        if revision % TRIM_EVERY == 0 {
            let query = sqlx::query("DELETE FROM change_log WHERE revision <= $1").bind(revision - KEPT);
            query.execute(&mut **transaction).await.map_err(self.failed())?;
        }
        Ok(())
    }
}
