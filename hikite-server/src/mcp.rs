//! MCP towards clients: sessions, the methods they may call, and the transports that carry them.

mod call;
pub(crate) mod http;
mod method;
mod outbox;
mod pipe;
mod session;
pub(crate) mod sse;
mod stdio;
mod stream;
mod table;

pub(crate) use sse::Channels;
pub use stdio::serve_stdio;
pub(crate) use table::Sessions;
