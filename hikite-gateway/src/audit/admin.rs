//! Audit records of administrative changes: tools, projects, tokens.

use hikite_core::caller::Caller;
use hikite_core::error::Error;
use hikite_core::source::CallOrigin;
use hikite_store::{AuditBatch, Store};
use tokio::time::Instant;

use super::entry::{AuditActor, AuditEntry, AuditedRequest, ClientNameCache};
use super::guard::RecordGuard;
use super::{Auditor, OK, word};
use hikite_store::clock::now_ms;

impl Auditor {
    /// Runs the work and records it. `action` is an identifier like `tool.register`; `what` names the affected object.
    pub async fn record_admin<T>(
        &self,
        (caller, origin): (&Caller, &CallOrigin),
        action: &'static str,
        what: &str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let slot = self.slot().await?;
        let entry = entry((caller, origin), action, what);
        let mut guard = RecordGuard::new(self, slot, entry);
        let outcome = work.await;
        guard.outcome(outcome.as_ref().map_or_else(word, |_| OK));
        drop(guard);
        self.release(outcome).await
    }
}

/// Runs and records an administrative change with a store but no gateway. The record is written before this returns.
pub async fn record_admin<T>(
    store: &Store,
    actor: (&Caller, &CallOrigin),
    action: &'static str,
    what: &str,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let mut entry = entry(actor, action, what);
    let outcome = work.await;
    entry.outcome = outcome.as_ref().map_or_else(word, |_| OK);
    entry.elapsed = entry.started.elapsed();
    let mut record = entry.record((now_ms(), Instant::now()), &mut ClientNameCache::default());
    if let Some(user) = store.users().all().await?.into_iter().find(|user| user.subject == record.subject) {
        (record.user_id, record.user) = (user.id, user.name);
    }
    store.audit().append(&mut AuditBatch::new(vec![record])).await?;
    outcome
}

fn entry((caller, origin): (&Caller, &CallOrigin), action: &'static str, what: &str) -> AuditEntry {
    let entry = AuditEntry::new(AuditActor::NoSession(caller.clone()), origin);
    AuditEntry { request: AuditedRequest::internal("admin", action, what), allowed: true, ..entry }
}
