//! Tool pinning: which tool definitions were approved, and which tools are held back because theirs was not. Decided
//! when a catalog is built, never on the path of a call. Service modules and registered tools are the administrator's
//! own and are not pinned.

mod change;
mod object;
mod pin_record;
mod pin_store;

pub use object::{PinFilter, PinState, PinnedTool};
pub(crate) use pin_store::PinStore;

/// Store kind of pins; the id is a tool's key.
pub(crate) const PIN: &str = "pin";
/// Store kind of approved definitions; the id is a hash.
const DEFINITION: &str = "definition";

#[cfg(test)]
mod tests;
