//! Connections to upstream MCP servers over stdio, streamable HTTP and legacy SSE: started on demand, monitored,
//! stopped when idle, restarted with backoff, with their lists cached across restarts. Authorization of callers happens
//! elsewhere.

mod annotation;
mod backoff;
mod call;
mod carry;
mod claim;
mod clock;
mod connection;
mod crash;
mod definition;
mod entry;
mod era;
mod files;
mod greeting;
mod guard;
mod http;
mod inbound;
mod level;
mod listen;
mod lister;
mod login;
mod oauth;
mod offer;
mod open;
mod outbound;
mod outgrow;
mod patience;
mod pending;
mod process;
mod refresh;
mod retire;
mod rounds;
mod settling;
mod slot;
mod spawner;
mod sse;
mod stateless;
mod stderr;
mod stdio;
mod subscribe;
mod tasks;
mod upstream;

pub use definition::{Definition, Share, Transport};
pub use files::raise_file_limit;
pub use guard::guard;
pub use oauth::{Access, Document, Fixed, Grant};
pub use spawner::{ProcessLimits, Spawner};
pub use upstream::{Environment, Upstream};
