//! The audit from outside the path of a call: started, looked at, verified and ended.

use hikite_core::error::Error;
use hikite_store::{AuditFilter, AuditPage, AuditWalk, ClockJump, Verified};

use super::queue::AuditRules;
use crate::clock::machine_clock;
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
    ) -> Result<AuditPage, Error> {
        self.auditor.flush().await;
        Ok(self.registry.store().audit_page(filter, walk, limit).await?)
    }

    /// The jump of this machine's clock that keeps records from being removed for their age.
    pub async fn audit_pause(&self) -> Result<Option<ClockJump>, Error> {
        Ok(self.registry.store().clock_jump(&machine_clock()).await?)
    }

    /// A person says that the clock is right: what is too old goes again, soon.
    pub async fn resume_trim(&self) -> Result<(), Error> {
        self.registry.store().confirm_clock(&machine_clock()).await?;
        self.auditor.trim_soon();
        Ok(())
    }

    pub async fn verify_audit(&self) -> Result<Verified, Error> {
        self.auditor.flush().await;
        Ok(self.registry.store().verify_audit(None, |_, _| {}).await?)
    }
}
