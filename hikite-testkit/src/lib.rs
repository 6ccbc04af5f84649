//! What the tests of hikite need and no release contains: an upstream MCP server that does exactly what it is told,
//! well or badly, an HTTP service that does the same, a TCP proxy that breaks connections, the program itself as a
//! process with clients in front of it, a real PostgreSQL, a provider of accounts, a receiver of traces and metrics, and
//! the published schemas of the protocol, which every message in a test is held against. Nothing here is used by the
//! program itself.

pub mod api;
pub mod authority;
pub mod collector;
pub mod fault;
pub mod fixture;
pub mod gateway;
pub mod keep;
pub mod postgres;
pub mod provider;
pub mod schema;
