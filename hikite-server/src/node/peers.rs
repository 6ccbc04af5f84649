//! The other nodes, and what a request to them needs.

use std::sync::Arc;

use hikite_egress::EgressClient;
use hikite_gateway::Nodes;

use super::peer_token::PeerAuthenticator;

pub(crate) struct Peers {
    pub(crate) nodes: Arc<Nodes>,
    pub(super) authenticator: PeerAuthenticator,
    pub(super) client: EgressClient,
    /// Serialises taking over sessions.
    pub(crate) takeover: tokio::sync::Mutex<()>,
}

impl Peers {
    pub(crate) fn new(nodes: Arc<Nodes>, key: [u8; 32], client: EgressClient) -> Self {
        Self { nodes, authenticator: PeerAuthenticator::new(key), client, takeover: tokio::sync::Mutex::default() }
    }
}
