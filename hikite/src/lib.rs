//! hikite: a self-hosted gateway between MCP clients and all tools of a person or team. This crate assembles the
//! parts: command line, config, start, reload and stop.

pub mod cli;
mod config_credential;
mod core_dump;
mod embed;
mod exposure;
mod fetch;
mod instance;
mod jq_process;
mod local_client;
mod log;
mod master_key;
mod program_approval;
mod progress;
mod reload;
mod report;
mod runtime;
mod search;
mod services;
mod telemetry;
mod token;
mod token_endpoint;
mod upstream_login;
mod upstream_oauth;
mod verify;

pub use embed::{Builder, Hikite, function};
pub use hikite_config as config;
pub use hikite_gateway::{CallOptions, ToolFilter};
pub use runtime::Runtime;
pub use token_endpoint::HttpTokenEndpoint;
