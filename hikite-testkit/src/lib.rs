//! What the tests of hikite need and no release contains: an upstream MCP server that
//! does exactly what it is told, well or badly, and a TCP proxy that breaks connections.
//! Nothing here is used by the program itself.

pub mod fault;
pub mod fixture;
