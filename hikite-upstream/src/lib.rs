//! Connections to upstream MCP servers over stdio, streamable HTTP and legacy SSE: started on demand, monitored,
//! stopped when idle, restarted with backoff, with their lists cached across restarts. Authorization of callers happens
//! elsewhere.

mod annotation;
mod authorized_client;
mod backoff;
mod call;
mod capability;
mod clock;
mod connect;
mod connection;
mod count_guard;
mod crash;
mod definition;
mod error;
mod fetch;
mod files;
mod guard;
mod handshake_steps;
mod http;
mod level;
mod list_change;
mod list_reader;
mod lists;
mod login;
mod oauth;
mod outbound;
mod pending;
mod process;
mod ready;
mod refresh;
mod reread_pace;
mod retry_after;
mod revision;
mod rounds;
mod set_level;
mod slot;
mod slots;
mod source;
mod spawner;
mod sse;
mod stateless;
mod stderr;
mod stdio;
mod tasks;
mod trace_context;
mod transport;
mod upstream;

pub use definition::{ConnectionSharing, UpstreamDefinition, UpstreamTransport};
pub use files::raise_file_limit;
pub use guard::guard;
pub use oauth::{ClientMetadataDocument, ConfiguredClient, GrantType, OAuthSettings};
pub use source::Upstream;
pub use spawner::{ProcessLimits, Spawner};
pub use upstream::Environment;
