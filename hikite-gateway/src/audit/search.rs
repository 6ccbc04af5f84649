//! The record of one search: who looked for how much with which provider, and a hash of what for.

use std::sync::Arc;

use hikite_core::error::Error;
use hikite_core::source::CallContext;

use super::entry::{Asked, Entry, Searched, Who};
use super::guard::Guard;
use super::{OK, word};
use crate::gateway::Gateway;

/// The guard of one search; dropped unanswered it was cancelled.
#[derive(Debug)]
#[must_use = "dropped at once it records a search that was cancelled"]
pub struct Searching<'a> {
    guard: Guard<'a>,
}

impl Gateway {
    /// Opens the record. Fails where everything must be recorded and there is no place.
    pub async fn audit_search(&self, context: &CallContext) -> Result<Searching<'_>, Error> {
        let place = self.auditor.place(self.limits.call_timeout).await?;
        let entry = Entry::new(Who::In(Arc::clone(&context.session)), &context.origin);
        let entry = Entry { asked: Asked::ours("search", "", ""), allowed: true, ..entry };
        Ok(Searching { guard: Guard::new(&self.auditor, place, entry) })
    }
}

impl Searching<'_> {
    pub fn found(mut self, provider: &'static str, queries: &[String], results: usize) {
        self.guard.outcome(OK);
        let searched = Searched { provider, queries: queries.to_vec(), results };
        self.guard.with(|entry| entry.searched = Some(Box::new(searched)));
    }

    /// It was not let through.
    pub fn refused(mut self, error: &Error) {
        self.guard.outcome(word(error));
        self.guard.with(|entry| entry.allowed = false);
    }
}
