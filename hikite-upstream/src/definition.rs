//! Definition of one upstream server: a validated entry of `mcpServers`.

use std::path::PathBuf;
use std::sync::Arc;

use hikite_core::json::Object;
use hikite_core::secret::Secret;
use http::{HeaderMap, Uri};

use crate::oauth::OAuthSettings;

#[derive(Clone, Debug)]
pub struct UpstreamDefinition {
    pub name: Arc<str>,
    pub transport: UpstreamTransport,
    pub share: ConnectionSharing,
    /// OAuth settings. `None` for stdio servers and for credentials in `headers`.
    pub access: Option<OAuthSettings>,
    /// Description of the connection target without secrets, for administrators.
    pub place: Object,
    /// Hash of everything that may change the server's lists. Key of the list cache.
    pub hash: String,
}

#[derive(Clone, Debug)]
pub enum UpstreamTransport {
    Stdio {
        command: String,
        args: Vec<String>,
        env: Vec<(String, Secret)>,
        cwd: Option<PathBuf>,
        /// Passes the whole environment instead of the few variables that programs need to run.
        inherit_env: bool,
    },
    /// Streamable HTTP. Falls back to legacy SSE if the server refuses it. Header values are marked sensitive.
    Http {
        url: Uri,
        headers: HeaderMap,
    },
    Sse {
        url: Uri,
        headers: HeaderMap,
    },
}

impl UpstreamTransport {
    pub fn is_stdio(&self) -> bool {
        matches!(self, Self::Stdio { .. })
    }
}

/// Policy for sharing one connection among sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionSharing {
    /// Shared, except that a session that can answer questions gets its own connection to a server that asks them.
    #[default]
    Auto,
    Always,
    Never,
}
