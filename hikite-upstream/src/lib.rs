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
mod crash;
mod definition;
mod error;
mod files;
mod guard;
mod handshake;
mod handshake_steps;
mod http;
mod inbound;
mod level;
mod list_change;
mod list_reader;
mod listen;
mod login;
mod oauth;
mod outbound;
mod pending;
mod process;
mod refresh;
mod request_meta;
mod retire;
mod retry_after;
mod revision;
mod rounds;
mod slot;
mod spawner;
mod sse;
mod stateless;
mod stderr;
mod stdio;
mod subscribe;
mod tasks;
mod trace_context;
mod upstream;

pub use definition::{ConnectionSharing, UpstreamDefinition, UpstreamTransport};
pub use files::raise_file_limit;
pub use guard::guard;
pub use oauth::{ClientMetadataDocument, ConfiguredClient, GrantType, OAuthSettings};
pub use spawner::{ProcessLimits, Spawner};
pub use upstream::{Environment, Upstream};
