//! MCP towards clients: sessions, stateless requests, methods and transports.

mod call;
mod capability;
pub(crate) mod http;
mod journal;
mod method;
mod name;
mod open_stream;
mod operation;
mod outbox;
mod pipe;
mod place;
mod resume;
pub(crate) mod sender;
mod session;
pub(crate) mod sse;
mod stateless;
mod stdio;
mod stream;
mod table;
mod task;

pub(crate) use journal::Bounds;
pub(crate) use open_stream::OpenStreams;
pub(crate) use sse::Channels;
pub(crate) use stateless::{Back, Lanes};
pub use stdio::serve_stdio;
pub(crate) use table::{Sessions, random_id};
