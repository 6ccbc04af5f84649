//! A fixture upstream: an MCP server of our own, written against the specification and
//! not against an SDK, so that tests choose what an upstream says and how it misbehaves.
//! It runs inside a test on a loopback port or as the program `fixture-upstream`.
//! It refuses to be lenient where the specification says MUST: a gateway that breaks a
//! session rule shall see a test fail.

mod call;
mod catalog;
mod era;
mod handle;
mod handler;
mod options;
mod outbox;
mod play;
mod rpc;
mod server;
mod session;
mod task;
#[cfg(test)]
mod tests;
mod tool;
mod transport;

pub use catalog::ListFileError;
pub use era::{Era, Revision};
pub use handle::{Fixture, Transport, run_http, run_sse, run_stdio};
pub use options::{Answer, Options};
pub use play::Play;
pub use server::Received;

/// How a line on stderr begins that tells of a message which broke the published schema.
pub const VIOLATION: &str = "fixture-upstream: schema: ";
