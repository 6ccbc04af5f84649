//! MCP towards clients: sessions, stateless requests, methods and transports.

pub(crate) mod body;
mod call;
mod capability;
pub(crate) mod http;
mod journal;
mod locate;
mod method;
mod open_stream;
mod operation;
mod outbox;
mod pipe;
mod resume;
mod rpc_response;
pub(crate) mod sender;
mod session;
mod session_token;
pub(crate) mod sse;
mod stateless;
mod stdio;
mod stream;
mod table;
mod task;

pub(crate) use journal::JournalBounds;
pub(crate) use open_stream::OpenStreams;
pub(crate) use sse::Channels;
pub(crate) use stateless::{StatelessBackchannel, StatelessSessions};
pub use stdio::serve_stdio;
pub(crate) use table::{SessionTable, random_id};
