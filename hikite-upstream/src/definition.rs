//! Definition of one upstream server: a validated entry of `mcpServers`.

use std::path::PathBuf;
use std::sync::Arc;

use hikite_core::json::Object;
use hikite_core::secret::Secret;
use http::{HeaderMap, Uri};

use crate::oauth::Access;

#[derive(Clone, Debug)]
pub struct Definition {
    pub name: Arc<str>,
    pub transport: Transport,
    pub share: Share,
    /// OAuth settings. `None` for stdio servers and for credentials in `headers`.
    pub access: Option<Access>,
    /// Description of the connection target without secrets, for administrators.
    pub place: Object,
    /// Hash of everything that may change the server's lists. Key of the list cache.
    pub hash: String,
}

#[derive(Clone, Debug)]
pub enum Transport {
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

impl Transport {
    pub fn is_stdio(&self) -> bool {
        matches!(self, Self::Stdio { .. })
    }
}

/// Policy for sharing one connection among sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// Shared, except that a session that can answer questions gets its own connection to a server that asks them.
    #[default]
    Auto,
    Always,
    Never,
}
