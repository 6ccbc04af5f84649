//! What the benchmarks, the profiles and the fault table share: programs to start, clients in front of them, load and tables.

pub(crate) mod callgrind;
pub(crate) mod client;
pub(crate) mod load;
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod release;
pub(crate) mod rest;
pub(crate) mod table;
pub(crate) mod upstream;
pub(crate) mod vital;

/// Tools that each upstream has.
pub(crate) const TOOLS: usize = 10;
