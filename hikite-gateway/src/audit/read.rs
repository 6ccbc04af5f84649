//! The audit from outside the path of a call: started, looked at, verified and ended.

use hikite_core::error::Error;
use hikite_store::{AuditFilter, AuditRow, AuditWalk, Verified};

use super::queue::AuditRules;
use crate::gateway::Gateway;

impl Gateway {
    /// From now on everything is recorded; once, before the first request.
    pub fn start_audit(&self, rules: AuditRules) {
        let names = self.people.names();
        self.auditor.start(self.registry.store().clone(), names, (rules, self.limits.audit_queue));
    }

    /// Writes what waits, as long as `limits.drain` at most.
    pub async fn stop_audit(&self) {
        self.auditor.stop(self.limits.drain).await;
    }

    /// Records with what was done a moment ago, from the newest back or from one on.
    pub async fn audit_page(
        &self,
        filter: &AuditFilter,
        walk: AuditWalk,
        limit: usize,
    ) -> Result<Vec<AuditRow>, Error> {
        self.auditor.flush().await;
        Ok(self.registry.store().audit(filter, walk, limit).await?)
    }

    pub async fn verify_audit(&self) -> Result<Verified, Error> {
        self.auditor.flush().await;
        Ok(self.registry.store().verify_audit(None, |_, _| {}).await?)
    }
}
