//! How one upstream server is reached: an entry of `mcpServers`, checked.

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
    /// How it is logged in to; nothing for programs, and where the credentials stand in the headers.
    pub access: Option<Access>,
    /// How it is reached, without secrets, for the owner's eyes.
    pub place: Object,
    /// Changes with anything that may change what the server offers; the key of its cached lists.
    pub hash: String,
}

#[derive(Clone, Debug)]
pub enum Transport {
    Stdio {
        command: String,
        args: Vec<String>,
        env: Vec<(String, Secret)>,
        cwd: Option<PathBuf>,
        /// Whether the server sees our whole environment instead of the few variables programs need to run.
        inherit_env: bool,
    },
    /// Streamable HTTP. A server that refuses it is tried as legacy SSE. Header values are marked sensitive.
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

/// Whether sessions share one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// Shared, except that a session that can be asked gets its own connection to a server that asks.
    #[default]
    Auto,
    Always,
    Never,
}
