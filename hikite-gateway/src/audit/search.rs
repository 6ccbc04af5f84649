//! Audit record of one search: the caller, the provider, the number of queries and results, and a hash of the queries.

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::Error;
use hikite_core::source::CallOrigin;

use super::entry::{AuditActor, AuditEntry, AuditedRequest, SEARCH, SearchSummary};
use super::guard::RecordGuard;
use super::{Audit, Auditor, OK, word};

/// The audit guard of one search outside a session. Dropped without a result it records a cancelled search.
#[derive(Debug)]
#[must_use = "dropped at once it records a search that was cancelled"]
pub(crate) struct SearchAudit<'a> {
    guard: RecordGuard<'a>,
}

impl Auditor {
    /// Opens the record of a search and checks the read scope. Also fails if every call must be recorded and no slot is
    /// free.
    pub(crate) async fn open_search(&self, (caller, origin): (&Caller, &CallOrigin)) -> Result<SearchAudit<'_>, Error> {
        let slot = self.slot().await?;
        let entry = AuditEntry::new(AuditActor::NoSession(caller.clone()), origin);
        let entry = AuditEntry { request: AuditedRequest::internal(SEARCH, "", ""), allowed: true, ..entry };
        let mut guard = RecordGuard::new(self, slot, entry);
        caller.require(Scopes::READ).inspect_err(|error| {
            guard.outcome(word(error));
            guard.with(|entry| entry.allowed = false);
        })?;
        Ok(SearchAudit { guard })
    }
}

impl SearchAudit<'_> {
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

impl RecordGuard<'_> {
    fn searched(&mut self, provider: &'static str, queries: &[String], results: usize) {
        let searched = Box::new(SearchSummary { provider, queries: queries.to_vec(), results });
        self.with(|entry| {
            entry.allowed = true;
            entry.searched = Some(searched);
        });
    }
}
