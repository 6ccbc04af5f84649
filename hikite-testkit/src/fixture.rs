//! A fixture upstream: an MCP server written against the specification instead of an SDK, so that tests choose what an
//! upstream says and how it misbehaves. It runs inside a test on a loopback port or as the program `fixture-upstream`.
//! It refuses to be lenient where the specification says MUST, so that a gateway that breaks a session rule fails a
//! test.

mod call;
mod catalog;
mod era;
mod handle;
mod handler;
mod imitation;
mod options;
mod outbox;
mod question;
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
pub use handle::{Fixture, FixtureTransport, run_http, run_sse, run_stdio};
pub use imitation::ImitatedService;
pub use options::{FixtureOptions, PostResponseFormat};
pub use server::ReceivedMessage;

/// Prefix of a stderr line that reports a message which violates the published schema.
pub const VIOLATION: &str = "fixture-upstream: schema: ";
