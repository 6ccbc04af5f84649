//! Persistence in SQLite or PostgreSQL. The only crate that uses SQL. One set of queries serves both, and no table name
//! leaves this crate.

mod audit;
mod backup;
mod change;
mod check;
pub mod clock;
mod connect;
mod control;
mod copy;
mod damage;
mod document;
mod error;
mod first_seen;
mod lease;
mod list;
mod memory;
mod migrate;
mod node;
mod notification;
mod pools;
mod project;
mod restore;
mod store;
mod table;
mod token;
mod url;
mod user;
mod vault;
mod vector;
mod wal;

#[cfg(test)]
mod tests;

pub use audit::{
    AuditBatch, AuditCursor, AuditFilter, AuditPage, AuditRow, AuditVerification, Retention, TrimEvidence, TrimOutcome,
};
pub use change::{ChangeSet, RowChange, kind as change_kind};
pub use clock::{Boot, ClockJump, MachineClock};
pub use control::RegisteredToolRow;
pub use document::DocumentRow;
pub use error::{StoreError, StoreFault};
pub use lease::Lease;
pub use list::StoreListCache;
pub use memory::SearchMemoryRow;
pub use migrate::NEWEST;
pub use node::{NOBODY, NodeRow};
pub use project::ProjectRow;
pub use store::Store;
pub use token::TokenRow;
pub use url::{StoreUrl, StoreUrlError};
pub use user::{OwnerCheck, UserRow};
pub use vault::{VaultKeyRow, VaultSecretRow};
