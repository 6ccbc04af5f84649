//! The part of a connection that a transport needs.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::handshake_steps::HandshakeSteps;

#[derive(Clone, Debug)]
pub(crate) struct TransportContext {
    pub(crate) name: Arc<str>,
    /// Cancelled when the connection ends.
    pub(crate) closed: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) handshake_steps: HandshakeSteps,
    /// Maximum size of a response.
    pub(crate) answer_bytes: usize,
}
