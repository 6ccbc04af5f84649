//! Drop guard that hands an audit entry to the writer exactly once, however its holder ends.

use hikite_core::error::Kind;
use hikite_core::key::ToolKey;

use super::CANCELLED;
use super::entry::Entry;
use super::queue::{Auditor, Place};

#[derive(Debug)]
pub(super) struct Guard<'a> {
    /// `None` if the invocation is recorded elsewhere or not at all.
    to: Option<(&'a Auditor, Place)>,
    /// `None` after the entry was handed over.
    entry: Option<Box<Entry>>,
    ended: bool,
}

impl<'a> Guard<'a> {
    pub(super) fn new(auditor: &'a Auditor, place: Place, entry: Entry) -> Self {
        Self { to: Some((auditor, place)), entry: Some(Box::new(entry)), ended: false }
    }

    pub(super) fn aside(entry: Entry) -> Self {
        Self { to: None, entry: Some(Box::new(entry)), ended: false }
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.to.is_some()
    }

    pub(super) fn with(&mut self, change: impl FnOnce(&mut Entry)) {
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
                entry.outcome = Kind::Internal.face().code;
            }
        });
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.end();
        if let (Some((auditor, place)), Some(entry)) = (self.to.take(), self.entry.take()) {
            auditor.put(place, entry);
        }
    }
}
