//! The audit from outside the path of a call: started, looked at, verified and ended.

use std::path::PathBuf;
use std::time::Duration;

use hikite_core::error::Error;
use hikite_store::{AuditFilter, AuditPage, AuditWalk, ClockJump, Verified};

use super::durability::AuditState;
use super::queue::{AuditRules, Unwritten};
use crate::clock::machine_clock;
use crate::gateway::Gateway;

/// At the end: for what waits to be written. Running calls had `limits.drain` before.
const LAST: Duration = Duration::from_secs(10);

impl Gateway {
    /// From now on everything is recorded; once, before the first request. What the store has not taken when the program
    /// ends goes into a file in the folder.
    pub fn start_audit(&self, rules: AuditRules, folder: Option<PathBuf>) {
        let names = self.people.names();
        self.auditor.start(self.registry.store().clone(), names, (rules, self.limits.audit_queue), folder);
    }

    /// Writes what waits, for ten seconds at most, and tells what the store did not take.
    pub async fn stop_audit(&self) -> Unwritten {
        self.auditor.stop(LAST).await
    }

    /// How the audit is doing; nothing where it is switched off.
    pub fn audit_state(&self) -> Option<AuditState> {
        self.auditor.state()
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
