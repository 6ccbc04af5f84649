//! Audit record of one search: the caller, the provider, the number of queries and results, and a hash of the queries.

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::Error;
use hikite_core::source::Origin;

use super::entry::{Asked, Entry, Searched, Who};
use super::guard::Guard;
use super::{Audit, OK, word};
use crate::gateway::Gateway;

/// Kind of these records.
pub(super) const SEARCH: &str = "search";

/// The audit guard of one search outside a session. Dropped without a result it records a cancelled search.
#[derive(Debug)]
#[must_use = "dropped at once it records a search that was cancelled"]
pub(crate) struct Searching<'a> {
    guard: Guard<'a>,
}

impl Gateway {
    /// Opens the record of a search and checks the read scope. Also fails if every call must be recorded and no slot is
    /// free.
    pub(crate) async fn audit_search(
        &self,
        (caller, origin): (&Caller, &Origin),
    ) -> Result<Searching<'_>, Error> {
        let place = self.auditor.place(self.limits.call_timeout).await?;
        let entry = Entry::new(Who::Alone(caller.clone()), origin);
        let entry = Entry { asked: Asked::ours(SEARCH, "", ""), allowed: true, ..entry };
        let mut guard = Guard::new(&self.auditor, place, entry);
        caller.must_have(Scopes::READ).inspect_err(|error| {
            guard.outcome(word(error));
            guard.with(|entry| entry.allowed = false);
        })?;
        Ok(Searching { guard })
    }
}

impl Searching<'_> {
    pub(crate) fn found(mut self, provider: &'static str, queries: &[String], results: usize) {
        self.guard.outcome(OK);
        self.guard.searched(provider, queries, results);
    }
}

impl Audit<'_> {
    /// Records the result of a search that arrived as a command.
    pub(crate) fn searched(&mut self, provider: &'static str, queries: &[String], results: usize) {
        self.guard.searched(provider, queries, results);
    }
}

impl Guard<'_> {
    fn searched(&mut self, provider: &'static str, queries: &[String], results: usize) {
        let searched = Box::new(Searched { provider, queries: queries.to_vec(), results });
        self.with(|entry| {
            entry.allowed = true;
            entry.searched = Some(searched);
        });
    }
}
