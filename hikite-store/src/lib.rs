//! Persistence in SQLite or PostgreSQL. The only crate that uses SQL. One set of queries serves both, and no table name
//! leaves this crate.

mod audit;
mod backup;
mod change;
mod check;
mod clock;
mod connect;
mod control;
mod copy;
mod damage;
mod drawer;
mod error;
mod lease;
mod list;
mod memory;
mod migrate;
mod news;
mod node;
mod pools;
mod project;
mod restore;
mod seen;
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
    AuditBatch, AuditFilter, AuditPage, AuditRow, AuditWalk, Retention, TrimTrace, Trimmed, Verified,
};
pub use change::{Change, Changes, kind as change_kind};
pub use clock::{Boot, ClockJump, MachineClock};
pub use control::Registered;
pub use drawer::Entry;
pub use error::{Fault, StoreError};
pub use lease::Lease;
pub use list::StoreListCache;
pub use memory::Remembered;
pub use migrate::NEWEST;
pub use node::{NOBODY, NodeRow};
pub use project::ProjectRow;
pub use store::Store;
pub use token::TokenRow;
pub use url::{BadUrl, StoreUrl};
pub use user::{Holder, UserRow};
pub use vault::{VaultKeyRow, VaultSecretRow};
