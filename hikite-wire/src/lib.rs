//! JSON-RPC and MCP on the wire: envelopes, line framing, server-sent events and protocol revisions. Bodies stay raw,
//! and no decisions are made here.
//!
//! It is ours because the SDKs of MCP model messages as types, and a typed round trip loses the members that it does
//! not know.

pub mod encode;
pub mod handshake;
pub mod header;
pub mod line;
pub mod message;
pub mod revision;
pub mod sse;
pub mod stateless;
