//! The gateway core: translates client requests into commands, decides whether they may run, and executes every call
//! on one path. Knows no HTTP, no SQL and no upstream protocol; it reaches sources through `core::source`.

pub mod aside;
mod audit;
mod batch;
mod cache;
mod clock;
mod command;
mod conversation;
mod deadline;
mod dispatch;
mod entrance;
mod exchange;
mod execute;
#[cfg(test)]
mod fake;
mod federation;
mod freshness;
mod gate;
mod gateway;
mod generation;
mod handle;
mod health;
#[cfg(test)]
mod hidden;
pub mod identity;
mod issuer;
mod link;
mod list;
pub mod meter;
mod node;
mod open;
mod overlay;
mod overview;
mod parking;
mod passkey;
mod people;
mod pin;
mod present;
mod preview;
#[cfg(test)]
mod probe;
mod project;
mod random;
mod registered;
mod registry;
mod request;
mod roster;
mod safe;
mod saving;
pub mod scope;
mod search;
mod session;
pub mod share;
mod shown;
mod snapshot;
mod status;
mod surface;
mod swap;
mod task;
mod terms;
mod text;
mod ticket;
pub mod trace;
mod viewer;
mod views;
mod wait;
mod workshop;

pub use audit::{
    AuditRules, AuditState, Deed, Durability, UNWRITTEN, UNWRITTEN_FILE, Unwritten, WhenFull, record_admin,
};
pub use batch::{Batch, Ending, Observer, Report, Silent};
pub use clock::{machine_clock, now_ms};
pub use command::{CallOptions, Command, Detail, Dialect, Opening, Target};
pub use entrance::Entrances;
pub use exchange::{
    Account, AccountStanding, Accounts, App, Browser, Connected, DEFAULT as DEFAULT_ACCOUNT, Link, Pace,
    Provider, Returned, Settings as AccountSettings, TokenAuth, Waiting, choice::with_account,
};
pub use federation::{Comeback, Federation, LoginRule, Stranger};
pub use freshness::Freshness;
pub use gate::Throttle;
pub use gateway::{Gateway, Rules};
pub use handle::Part;
pub use hikite_store::{AuditFilter, AuditPage, AuditRow, AuditWalk, TrimTrace, Verified};
pub use identity::Identity;
pub use issuer::{IssuerRule, Issuers};
pub use list::Page;
pub use node::{Nodes, Owner, Peer};
pub use parking::{Asked, Parking, Running, Step};
pub use passkey::Passkeys;
pub use people::{People, Token};
pub use pin::{PinFilter, PinState, Waiting as WaitingPin};
pub use present::Wanted;
pub use project::{Optimization, Project};
pub use registry::{Registry, read as read_tool};
pub use request::{named, without_query};
pub use safe::{Finding, HOUSE, Kept, Keys, RETIRED_KEYS, Restored, RetiredKey, Rotated, Safe, Standing};
pub use search::{Inquiry, MemorySettings, SearchSettings, Strategy, faded};
pub use session::{Delivery, Inbox, Joined};
pub use snapshot::UserMasks;
pub use surface::{Found, Surface, Surfaces, ToolFilter};
pub use ticket::{Purpose, Ticket};
pub use viewer::Viewer;
pub use workshop::{Put, Workshop};

/// Store kinds of account documents.
pub const ACCOUNT_KINDS: [&str; 2] = [exchange::ACCOUNT, exchange::PROVIDER];
