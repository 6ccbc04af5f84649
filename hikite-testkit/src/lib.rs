//! What the tests of hikite need and no release contains: an upstream MCP server that
//! does exactly what it is told, well or badly, a TCP proxy that breaks connections, and
//! the program itself as a process with clients in front of it, and the published schemas of the protocol, which
//! every message in a test is held against; and a receiver of traces and metrics.
//! Nothing here is used by the program itself.

pub mod collector;
pub mod fault;
pub mod fixture;
pub mod gateway;
pub mod schema;
