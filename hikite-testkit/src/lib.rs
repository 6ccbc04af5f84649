//! Test support that no release contains: an upstream MCP server that behaves or misbehaves as told, a mock HTTP
//! service, a TCP proxy that breaks connections, the program as a process with clients, a real PostgreSQL, mock account
//! and authorization servers, an OTLP receiver, and the published protocol schemas that every message in a test is
//! validated against. The program itself uses nothing from here.

pub mod api;
pub mod authorization_server;
pub mod collector;
pub mod credential_store;
pub mod fault;
pub mod fixture;
pub mod gateway;
pub mod postgres;
pub mod provider;
pub mod schema;
