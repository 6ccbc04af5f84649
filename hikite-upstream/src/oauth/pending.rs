//! Pending logins, keyed by their random `state`. Each can be taken once and expires.

use std::collections::HashMap;
use std::time::Duration;

use hikite_core::secret::Secret;
use tokio::time::Instant;

use super::client::OAuthClient;
use super::metadata::ServerDocument;

/// Time that a person has to log in.
const TIME: Duration = Duration::from_secs(600);
/// Maximum number of pending logins. The oldest is dropped.
const LOGINS_MAX: usize = 32;

/// A pending login: everything that the response is checked against.
#[derive(Clone, Debug)]
pub(super) struct PendingLogin {
    pub(super) server: ServerDocument,
    pub(super) client: OAuthClient,
    pub(super) resource: String,
    pub(super) redirect: String,
    pub(super) scopes: Vec<String>,
    pub(super) verifier: Secret,
}

#[derive(Debug, Default)]
pub(super) struct PendingLogins(HashMap<String, (Instant, PendingLogin)>);

impl PendingLogins {
    pub(super) fn put(&mut self, state: String, login: PendingLogin, now: Instant) {
        self.0.retain(|_, (begun, _)| now.duration_since(*begun) < TIME);
        let oldest = self.0.iter().min_by_key(|(_, (begun, _))| *begun).map(|(state, _)| state.clone());
        if let Some(oldest) = oldest.filter(|_| self.0.len() >= LOGINS_MAX) {
            self.0.remove(&oldest);
        }
        self.0.insert(state, (now, login));
    }

    pub(super) fn has(&self, state: &str, now: Instant) -> bool {
        self.0.get(state).is_some_and(|(begun, _)| now.duration_since(*begun) < TIME)
    }

    /// Removes and returns a login that has not expired.
    pub(super) fn take(&mut self, state: &str, now: Instant) -> Option<PendingLogin> {
        let (begun, login) = self.0.remove(state)?;
        (now.duration_since(begun) < TIME).then_some(login)
    }
}
