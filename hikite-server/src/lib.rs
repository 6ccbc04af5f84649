//! The client-facing side: HTTP and stdio in front of the gateway. The only crate that uses axum; it decides who a
//! caller is, not what that caller may do.

mod accept;
mod app;
mod auth;
mod browser_auth;
mod bucket;
mod challenge;
mod client_metadata;
mod connect;
mod connection;
mod error_response;
mod guard;
mod health;
mod login_throttle;
mod mcp;
mod metrics;
mod node;
mod oauth;
mod observe;
mod origin;
mod project;
mod proxy;
mod rate;
mod readiness;
mod request_context;
pub mod request_id;
mod rest;
mod revocation;
mod router;
mod settings;
mod staleness;
mod startup;
#[cfg(test)]
mod test_app;
mod tls;

pub use accept::serve;
pub use app::App;
pub use mcp::serve_stdio;
pub use origin::Origins;
pub use proxy::TrustedProxies;
pub use settings::{Auth, ClientMetadataMode, OauthSettings, ServerSettings};
pub use startup::serve_until;
pub use tls::{ServerTls, ServerTlsError};
