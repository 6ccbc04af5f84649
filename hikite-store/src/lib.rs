//! Persistence in SQLite or PostgreSQL. The only crate that uses SQL. One set of queries serves both, and no table name
//! leaves this crate.

mod account;
mod audit;
mod audit_head;
mod backup;
mod change;
mod check;
mod client;
pub mod clock;
mod columns;
mod connect;
mod consent;
mod control;
mod copy;
mod damage;
mod database;
mod document;
mod error;
mod expiry;
mod first_seen;
mod grant;
mod lease;
mod list;
mod login;
mod memory;
mod migrate;
mod node;
mod notification;
mod owner;
mod passkey;
mod pin;
mod pools;
mod project;
mod record;
mod restore;
mod schema;
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

pub use account::AccountRow;
pub use audit::{
    AuditBatch, AuditCursor, AuditFilter, AuditLog, AuditPage, AuditRow, AuditVerification, Retention, TrimEvidence,
    TrimOutcome,
};
pub use change::{ChangeLog, ChangeSet, RowChange, kind as change_kind};
pub use client::ClientRow;
pub use clock::{Boot, ClockJump, MachineClock, StoreClock};
pub use consent::ConsentRow;
pub use control::{RegisteredToolRow, ToolTable};
pub use damage::{damage_hint, known_damage};
pub use document::{DocumentRow, Documents};
pub use error::{StoreError, StoreFault};
pub use grant::{GrantRotation, GrantRow};
pub use lease::{Lease, LeaseTable};
pub use list::StoreListCache;
pub use login::LoginRow;
pub use memory::{SearchMemoryRow, SearchTables};
pub use migrate::NEWEST;
pub use node::{NOBODY, NodeRow, NodeTable};
pub use owner::OwnerCheck;
pub use passkey::PasskeyRow;
pub use pin::PinRow;
pub use project::{ProjectRow, ProjectTable};
pub use record::{OwnedRecord, Record, Records};
pub use restore::{check_unused, install};
pub use store::Store;
pub use token::{TokenRow, TokenTable};
pub use url::{StoreUrl, StoreUrlError};
pub use user::{AccessKind, UserRow, UserTable};
pub use vault::{VaultKeyRow, VaultSecretRow, VaultTable};
