//! Tool pinning: which tool definitions were approved, and which tools are held back because theirs was not. Decided
//! when a catalog is built, never on the path of a call. Service modules and registered tools are the administrator's
//! own and are not pinned.

mod pin_store;

pub(crate) use pin_store::{PinStore, ToolPin};

#[cfg(test)]
mod tests;
