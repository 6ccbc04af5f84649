//! Connections to upstream MCP servers over stdio, streamable HTTP and legacy SSE: started when needed, watched,
//! stopped when idle, started again with a growing pause; their lists kept across restarts. Who may call what
//! is decided elsewhere.

mod backoff;
mod cache;
mod connection;
mod definition;
mod guard;
mod http;
mod inbound;
mod level;
mod lister;
mod outbound;
mod pending;
mod process;
mod refresh;
mod slot;
mod spawner;
mod sse;
mod stderr;
mod stdio;
mod upstream;

pub use cache::FileListCache;
pub use definition::{Definition, Share, Transport};
pub use guard::guard;
pub use spawner::Spawner;
pub use upstream::{Environment, Upstream};
