//! Shared by benchmarks, profiles and fault tests: programs to start, clients, load and tables.

pub(crate) mod callgrind;
pub(crate) mod client;
pub(crate) mod load;
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod procfs;
pub(crate) mod release;
pub(crate) mod rest;
pub(crate) mod table;
pub(crate) mod upstream;

/// Number of tools of each upstream.
pub(crate) const TOOLS: usize = 10;
