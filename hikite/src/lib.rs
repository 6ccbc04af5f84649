//! hikite: a self-hosted gateway between MCP clients and all tools of a person or team. This crate assembles the
//! parts: command line, config, start, reload and stop.

mod access;
pub mod cli;
pub mod config;
mod dump;
mod embed;
mod endpoint;
mod evaluation;
mod exchange;
mod exposure;
mod fetch;
mod house;
mod log;
mod logins;
mod master;
mod measure;
mod nearby;
mod progress;
mod providers;
mod reload;
mod report;
mod running;
mod search;
mod services;
mod sieve;
mod telemetry;
mod token;
mod verify;

pub use embed::{Builder, Hikite, function};
pub use endpoint::Endpoint;
pub use hikite_gateway::{CallOptions, ToolFilter};
pub use house::House;
