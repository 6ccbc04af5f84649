//! The client-facing side: HTTP and stdio in front of the gateway. The only crate that uses axum; it decides who a
//! caller is, not what that caller may do.

mod accept;
mod app;
mod arrival;
mod auth;
mod brake;
mod bucket;
mod challenge;
mod connect;
mod connection;
mod departure;
mod document;
mod door;
mod health;
mod mcp;
mod metrics;
mod node;
mod oauth;
mod observe;
mod origin;
mod person;
#[cfg(test)]
mod probe;
mod project;
mod proxy;
mod rate;
mod readiness;
mod refusal;
pub mod request_id;
mod rest;
mod router;
mod staleness;
mod tls;
mod waiting;

pub use accept::serve;
pub use app::{App, Settings};
pub use auth::Auth;
pub use mcp::serve_stdio;
pub use oauth::{Cimd, Oauth};
pub use origin::Origins;
pub use proxy::Proxies;
pub use tls::{Tls, TlsFault};
pub use waiting::serve_until;
