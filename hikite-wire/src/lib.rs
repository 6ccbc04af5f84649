//! JSON-RPC and MCP on the wire: envelopes, line framing, server-sent events and protocol revisions. Bodies stay raw,
//! and no decisions are made here.

pub mod encode;
pub mod handshake;
pub mod header;
pub mod line;
pub mod message;
pub mod revision;
pub mod sse;
pub mod stateless;
