//! Errors inside this crate: the error that callers get, and what happened to the request or the connection, which the
//! code branches on. Nothing outside the crate sees the reason.

use hikite_core::error::Error;

/// Public error name: the lists of a running server could not be read.
const SCHEMA_FETCH_ERROR: &str = "SchemaFetchError";

#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}: {error}")]
pub(crate) struct UpstreamError {
    pub(crate) reason: FailureReason,
    /// The error that callers get.
    pub(crate) error: Box<Error>,
}

/// Fate of a request or a connection that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FailureReason {
    /// The server no longer knows the session, and nothing ran.
    #[error("session lost")]
    SessionLost,
    /// The connection closed before the request was sent. Another connection may take it.
    #[error("not sent")]
    NotSent,
    /// The server speaks another revision than the request, and nothing ran.
    #[error("revision not supported")]
    RevisionChanged,
    /// The server does not support this transport.
    #[error("transport refused")]
    TransportRefused,
    /// The server rejects this request, for any reason.
    #[error("request declined")]
    RequestDeclined,
    /// The headers do not match the request, which has not run.
    #[error("headers refused")]
    HeadersRefused,
    /// The server accepted the request and returned something other than a response.
    #[error("no response")]
    NoResponse,
    #[error("unreachable")]
    Unreachable,
    /// The process exited before the handshake.
    #[error("exited early")]
    ExitedEarly,
    /// A stdio server answered neither handshake within half of its start timeout, and may be stuck on the first one.
    /// Most servers this slow are still being downloaded, which must not be interrupted.
    #[error("handshake unanswered")]
    HandshakeSilent,
    /// A stdio server accepted both handshakes.
    #[error("handshake ambiguous")]
    HandshakeAmbiguous,
    /// The server runs and its lists could not be read.
    #[error("lists unreadable")]
    ListsUnreadable,
    /// The server requires a login, and nothing ran.
    #[error("not authorized")]
    LoginRequired,
    /// The server requires a login with these scopes, and nothing ran.
    #[error("insufficient scope, {0:?} required")]
    InsufficientScope(Vec<String>),
    /// Any failure that nobody here handles in a special way.
    #[error("failed")]
    Other,
}

impl UpstreamError {
    pub(crate) fn new(reason: FailureReason, error: impl Into<Box<Error>>) -> Self {
        Self { reason, error: error.into() }
    }

    pub(crate) fn log_text(&self) -> String {
        self.error.log_text()
    }

    /// Returns `true` if the request was refused before anything ran, so that another connection may take it.
    pub(crate) fn ran_nothing(&self) -> bool {
        matches!(self.reason, FailureReason::SessionLost | FailureReason::NotSent | FailureReason::RevisionChanged)
    }

    /// Returns `true` if somebody has to log in first: trying again does not help.
    pub(crate) fn needs_login(&self) -> bool {
        matches!(self.reason, FailureReason::LoginRequired | FailureReason::InsufficientScope(_))
    }

    /// Marks an error of a later step as not safe to retry: earlier steps have already run.
    pub(crate) fn not_retryable(self) -> Self {
        if self.ran_nothing() { Self::new(FailureReason::Other, self.error) } else { self }
    }

    /// Returns the error of a connection that could not be opened. The fate of its handshake says nothing about the
    /// request that needs the connection; a missing login does.
    pub(crate) fn into_connect_error(self) -> Self {
        if self.needs_login() { self } else { Self::new(FailureReason::Other, self.error) }
    }

    /// Marks that nothing was sent because there is no connection.
    pub(crate) fn unsent(mut self) -> Self {
        self.error.unsent = true;
        self
    }
}

impl From<Error> for UpstreamError {
    fn from(error: Error) -> Self {
        Self::new(FailureReason::Other, error)
    }
}

/// The one way out of this crate.
impl From<UpstreamError> for Error {
    fn from(UpstreamError { reason, error }: UpstreamError) -> Self {
        if reason == FailureReason::ListsUnreadable { error.named(SCHEMA_FETCH_ERROR) } else { *error }
    }
}

#[cfg(test)]
mod tests {
    use hikite_core::error::ErrorKind;

    use super::*;

    fn failed(reason: FailureReason) -> UpstreamError {
        UpstreamError::new(reason, Error::new(ErrorKind::UpstreamUnavailable, "no"))
    }

    #[test]
    fn only_lists_that_cannot_be_read_have_a_name_outside() {
        let name = |reason| Error::from(failed(reason)).name;
        assert_eq!(name(FailureReason::ListsUnreadable), Some("SchemaFetchError"));
        for inside in [FailureReason::SessionLost, FailureReason::TransportRefused, FailureReason::Other] {
            assert_eq!(name(inside), None);
        }
    }

    #[test]
    fn a_step_that_follows_another_is_not_retried() {
        assert!(failed(FailureReason::NotSent).ran_nothing());
        assert!(!failed(FailureReason::NotSent).not_retryable().ran_nothing());
        assert_eq!(failed(FailureReason::HeadersRefused).not_retryable().reason, FailureReason::HeadersRefused);
    }

    #[test]
    fn of_a_failed_handshake_only_a_missing_login_is_told() {
        let lost = failed(FailureReason::SessionLost).into_connect_error();
        assert!(lost.reason == FailureReason::Other && !lost.ran_nothing());
        let lacking = failed(FailureReason::InsufficientScope(vec!["a".to_owned()])).into_connect_error();
        assert_eq!(lacking.reason, FailureReason::InsufficientScope(vec!["a".to_owned()]));
    }
}
