//! Audit operations outside the path of a call: read, verify, trim and stop.

use std::time::Duration;

use hikite_core::error::Error;
use hikite_store::{AuditCursor, AuditFilter, AuditPage, AuditVerification, ClockJump};

use super::{Auditor, UnwrittenRecords};
use hikite_store::clock::machine_clock;

/// Wait at shutdown for queued records. Running calls had `limits.drain` before.
const STOP_WAIT_MAX: Duration = Duration::from_secs(10);

impl Auditor {
    /// Writes queued records for ten seconds at most and returns what the store did not accept.
    pub async fn stop(&self) -> UnwrittenRecords {
        self.stop_within(STOP_WAIT_MAX).await
    }

    /// Returns a page of records, including those of a moment ago, backwards from the newest or onwards from a given
    /// one.
    pub async fn page(&self, filter: &AuditFilter, walk: AuditCursor, limit: usize) -> Result<AuditPage, Error> {
        self.flush().await;
        Ok(self.store.audit().page(filter, walk, limit).await?)
    }

    /// Returns the jump of this machine's clock that suspends trimming by age.
    pub async fn clock_jump(&self) -> Result<Option<ClockJump>, Error> {
        Ok(self.store.clock().jump(&machine_clock()).await?)
    }

    /// Confirms, on the word of an administrator, that the clock is right, and resumes trimming.
    pub async fn resume_trim(&self) -> Result<(), Error> {
        self.store.clock().confirm(&machine_clock()).await?;
        self.trim_soon();
        Ok(())
    }

    pub async fn verify(&self) -> Result<AuditVerification, Error> {
        self.flush().await;
        Ok(self.store.audit().verify(None, |_, _| {}).await?)
    }
}
