//! Drop guard that hands an audit entry to the writer exactly once, however its holder ends.

use hikite_core::error::ErrorKind;
use hikite_core::key::ToolKey;

use super::CANCELLED;
use super::entry::AuditEntry;
use super::queue::{Auditor, QueueSlot};

#[derive(Debug)]
pub(super) struct RecordGuard<'a> {
    /// `None` if the invocation is recorded elsewhere or not at all.
    to: Option<(&'a Auditor, QueueSlot)>,
    /// `None` after the entry was handed over.
    entry: Option<Box<AuditEntry>>,
    ended: bool,
}

impl<'a> RecordGuard<'a> {
    pub(super) fn new(auditor: &'a Auditor, slot: QueueSlot, entry: AuditEntry) -> Self {
        Self { to: Some((auditor, slot)), entry: Some(Box::new(entry)), ended: false }
    }

    pub(super) fn unrecorded(entry: AuditEntry) -> Self {
        Self { to: None, entry: Some(Box::new(entry)), ended: false }
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.to.is_some()
    }

    pub(super) fn with(&mut self, change: impl FnOnce(&mut AuditEntry)) {
        if let Some(entry) = &mut self.entry {
            change(entry);
        }
    }

    pub(super) fn surface(&self) -> &'static str {
        self.entry.as_ref().map_or("", |entry| entry.surface)
    }

    pub(super) fn tool(&self) -> Option<ToolKey> {
        let entry = self.entry.as_ref()?;
        Some(ToolKey { module: entry.module.clone()?, tool: entry.tool.clone()? })
    }

    pub(super) fn outcome(&mut self, outcome: &'static str) {
        self.with(|entry| entry.outcome = outcome);
    }

    /// Stops the clock. An entry without an outcome was cancelled or ended by a panic.
    pub(super) fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.with(|entry| {
            entry.elapsed = entry.started.elapsed();
            if entry.outcome == CANCELLED && std::thread::panicking() {
                entry.outcome = ErrorKind::Internal.definition().code;
            }
        });
    }
}

impl Drop for RecordGuard<'_> {
    fn drop(&mut self) {
        self.end();
        if let (Some((auditor, slot)), Some(entry)) = (self.to.take(), self.entry.take()) {
            auditor.put(slot, entry);
        }
    }
}
