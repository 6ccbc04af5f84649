//! Pins: which definitions of tools were approved, and what is held back because it is not among them. It is decided when
//! a catalog is made, never on the path of a call. Module files and registered tools are the owner's own words and are
//! not pinned.

mod book;
mod change;
mod keep;
mod object;

pub(crate) use book::Book;
pub use object::{PinFilter, PinState, Waiting};

/// The drawer of pins; an id is a tool's key.
pub(crate) const PIN: &str = "pin";
/// The drawer of definitions that were approved at some time; an id is a hash.
const DEFINITION: &str = "definition";

#[cfg(test)]
mod tests;
