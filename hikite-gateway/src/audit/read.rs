//! Audit operations outside the path of a call: start, read, verify, trim and stop.

use std::path::PathBuf;
use std::time::Duration;

use hikite_core::error::Error;
use hikite_store::{AuditCursor, AuditFilter, AuditPage, AuditVerification, ClockJump};

use super::durability::AuditState;
use super::queue::{AuditRules, UnwrittenRecords};
use crate::clock::machine_clock;
use crate::gateway::Gateway;

/// Wait at shutdown for queued records. Running calls had `limits.drain` before.
const STOP_WAIT_MAX: Duration = Duration::from_secs(10);

impl Gateway {
    /// Starts recording; called once, before the first request. Records that the store has not accepted at shutdown go
    /// to a file in `folder`.
    pub fn start_audit(&self, rules: AuditRules, folder: Option<PathBuf>) {
        let names = self.people.names();
        self.auditor.start(self.registry.store().clone(), names, (rules, self.limits.audit_queue), folder);
    }

    /// Writes queued records for ten seconds at most and returns what the store did not accept.
    pub async fn stop_audit(&self) -> UnwrittenRecords {
        self.auditor.stop(STOP_WAIT_MAX).await
    }

    /// Returns the state of the audit, or `None` if it is disabled.
    pub fn audit_state(&self) -> Option<AuditState> {
        self.auditor.state()
    }

    /// Returns a page of records, including those of a moment ago, backwards from the newest or onwards from a given
    /// one.
    pub async fn audit_page(&self, filter: &AuditFilter, walk: AuditCursor, limit: usize) -> Result<AuditPage, Error> {
        self.auditor.flush().await;
        Ok(self.registry.store().audit_page(filter, walk, limit).await?)
    }

    /// Returns the jump of this machine's clock that suspends trimming by age.
    pub async fn audit_pause(&self) -> Result<Option<ClockJump>, Error> {
        Ok(self.registry.store().clock_jump(&machine_clock()).await?)
    }

    /// Confirms, on the word of an administrator, that the clock is right, and resumes trimming.
    pub async fn resume_trim(&self) -> Result<(), Error> {
        self.registry.store().confirm_clock(&machine_clock()).await?;
        self.auditor.trim_soon();
        Ok(())
    }

    pub async fn verify_audit(&self) -> Result<AuditVerification, Error> {
        self.auditor.flush().await;
        Ok(self.registry.store().verify_audit(None, |_, _| {}).await?)
    }
}
