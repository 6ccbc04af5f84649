//! Errors inside this crate. The variant says what happened to a request or a connection, and the code branches on it;
//! the error inside is the one that callers get. Nothing outside the crate sees a variant.

use hikite_core::error::Error;

/// Public error name: the lists of a running server could not be read.
const SCHEMA_FETCH_ERROR: &str = "SchemaFetchError";

#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// The server no longer knows the session, and nothing ran.
    #[error("session lost: {0}")]
    SessionLost(Box<Error>),
    /// The connection closed before the request was sent. Another connection may take it.
    #[error("not sent: {0}")]
    NotSent(Box<Error>),
    /// The server speaks another revision than the request, and nothing ran.
    #[error("revision not supported: {0}")]
    RevisionChanged(Box<Error>),
    /// The server does not support this transport.
    #[error("transport refused: {0}")]
    TransportRefused(Box<Error>),
    /// The server rejects this request, for any reason.
    #[error("request declined: {0}")]
    RequestDeclined(Box<Error>),
    /// The headers do not match the request, which has not run.
    #[error("headers refused: {0}")]
    HeadersRefused(Box<Error>),
    /// The server accepted the request and returned something other than a response.
    #[error("no response: {0}")]
    NoResponse(Box<Error>),
    #[error("unreachable: {0}")]
    Unreachable(Box<Error>),
    /// The process exited before the handshake.
    #[error("exited early: {0}")]
    ExitedEarly(Box<Error>),
    /// A stdio server answered neither handshake within half of its start timeout, and may be stuck on the first one.
    /// Most servers this slow are still being downloaded, which must not be interrupted.
    #[error("handshake unanswered: {0}")]
    HandshakeSilent(Box<Error>),
    /// A stdio server accepted both handshakes.
    #[error("handshake ambiguous: {0}")]
    HandshakeAmbiguous(Box<Error>),
    /// The server runs and its lists could not be read.
    #[error("lists unreadable: {0}")]
    ListsUnreadable(Box<Error>),
    /// The server requires a login, and nothing ran.
    #[error("not authorized: {0}")]
    LoginRequired(Box<Error>),
    /// The server requires a login with these scopes, and nothing ran.
    #[error("insufficient scope, {scopes:?} required: {error}")]
    InsufficientScope { scopes: Vec<String>, error: Box<Error> },
    /// Any failure that nobody here handles in a special way.
    #[error("{0}")]
    Other(Box<Error>),
}

impl UpstreamError {
    /// Returns the error that callers get.
    pub(crate) fn error(&self) -> &Error {
        match self {
            Self::SessionLost(error)
            | Self::NotSent(error)
            | Self::RevisionChanged(error)
            | Self::TransportRefused(error)
            | Self::RequestDeclined(error)
            | Self::HeadersRefused(error)
            | Self::NoResponse(error)
            | Self::Unreachable(error)
            | Self::ExitedEarly(error)
            | Self::HandshakeSilent(error)
            | Self::HandshakeAmbiguous(error)
            | Self::ListsUnreadable(error)
            | Self::LoginRequired(error)
            | Self::InsufficientScope { error, .. }
            | Self::Other(error) => error,
        }
    }

    pub(crate) fn error_mut(&mut self) -> &mut Error {
        match self {
            Self::SessionLost(error)
            | Self::NotSent(error)
            | Self::RevisionChanged(error)
            | Self::TransportRefused(error)
            | Self::RequestDeclined(error)
            | Self::HeadersRefused(error)
            | Self::NoResponse(error)
            | Self::Unreachable(error)
            | Self::ExitedEarly(error)
            | Self::HandshakeSilent(error)
            | Self::HandshakeAmbiguous(error)
            | Self::ListsUnreadable(error)
            | Self::LoginRequired(error)
            | Self::InsufficientScope { error, .. }
            | Self::Other(error) => error,
        }
    }

    /// Returns the error that callers get, without what happened.
    pub(crate) fn into_error(self) -> Box<Error> {
        match self {
            Self::SessionLost(error)
            | Self::NotSent(error)
            | Self::RevisionChanged(error)
            | Self::TransportRefused(error)
            | Self::RequestDeclined(error)
            | Self::HeadersRefused(error)
            | Self::NoResponse(error)
            | Self::Unreachable(error)
            | Self::ExitedEarly(error)
            | Self::HandshakeSilent(error)
            | Self::HandshakeAmbiguous(error)
            | Self::ListsUnreadable(error)
            | Self::LoginRequired(error)
            | Self::InsufficientScope { error, .. }
            | Self::Other(error) => error,
        }
    }

    pub(crate) fn log_text(&self) -> String {
        self.error().log_text()
    }

    /// Returns `true` if the request was refused before anything ran, so that another connection may take it.
    pub(crate) fn ran_nothing(&self) -> bool {
        matches!(self, Self::SessionLost(_) | Self::NotSent(_) | Self::RevisionChanged(_))
    }

    /// Returns `true` if somebody has to log in first: trying again does not help.
    pub(crate) fn needs_login(&self) -> bool {
        matches!(self, Self::LoginRequired(_) | Self::InsufficientScope { .. })
    }

    /// Marks an error of a later step as not safe to retry: earlier steps have already run.
    pub(crate) fn not_retryable(self) -> Self {
        if self.ran_nothing() { Self::Other(self.into_error()) } else { self }
    }

    /// Returns the error of a connection that could not be opened. The fate of its handshake says nothing about the
    /// request that needs the connection; a missing login does.
    pub(crate) fn into_connect_error(self) -> Self {
        if self.needs_login() { self } else { Self::Other(self.into_error()) }
    }

    /// Marks that nothing was sent because there is no connection.
    pub(crate) fn unsent(mut self) -> Self {
        self.error_mut().unsent = true;
        self
    }
}

impl From<Error> for UpstreamError {
    fn from(error: Error) -> Self {
        Self::Other(Box::new(error))
    }
}

/// The one way out of this crate.
impl From<UpstreamError> for Error {
    fn from(error: UpstreamError) -> Self {
        match error {
            UpstreamError::ListsUnreadable(error) => error.named(SCHEMA_FETCH_ERROR),
            other => *other.into_error(),
        }
    }
}

#[cfg(test)]
mod tests {
    use hikite_core::error::ErrorKind;

    use super::*;

    fn failure() -> Box<Error> {
        Box::new(Error::new(ErrorKind::UpstreamUnavailable, "no"))
    }

    #[test]
    fn only_lists_that_cannot_be_read_have_a_name_outside() {
        let name = |error: UpstreamError| Error::from(error).name;
        assert_eq!(name(UpstreamError::ListsUnreadable(failure())), Some("SchemaFetchError"));
        for inside in [UpstreamError::SessionLost, UpstreamError::TransportRefused, UpstreamError::Other] {
            assert_eq!(name(inside(failure())), None);
        }
    }

    #[test]
    fn a_step_that_follows_another_is_not_retried() {
        assert!(UpstreamError::NotSent(failure()).ran_nothing());
        assert!(!UpstreamError::NotSent(failure()).not_retryable().ran_nothing());
        let refused = UpstreamError::HeadersRefused(failure()).not_retryable();
        assert!(matches!(refused, UpstreamError::HeadersRefused(_)));
    }

    #[test]
    fn of_a_failed_handshake_only_a_missing_login_is_told() {
        let lost = UpstreamError::SessionLost(failure()).into_connect_error();
        assert!(matches!(lost, UpstreamError::Other(_)) && !lost.ran_nothing());
        let scopes = vec!["a".to_owned()];
        let lacking = UpstreamError::InsufficientScope { scopes, error: failure() }.into_connect_error();
        assert!(matches!(&lacking, UpstreamError::InsufficientScope { scopes, .. } if scopes == &["a"]));
    }
}
