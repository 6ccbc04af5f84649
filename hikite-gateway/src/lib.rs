//! The gateway core: translates client requests into commands, decides whether they may run, and executes every call
//! on one path. Knows no HTTP, no SQL and no upstream protocol; it reaches sources through `core::source`.

mod accounts;
mod admin;
mod admission;
mod answers;
mod audit;
mod batch;
mod builder;
mod cache;
mod call_result;
mod call_settings;
mod catalogs;
mod command;
mod config_admin;
mod continuation;
mod conversation;
mod deadline;
mod describe;
mod discovery;
mod dispatch;
mod execute;
mod executor;
#[cfg(test)]
mod fake;
mod freshness;
mod gateway;
mod generation;
mod handle;
mod health;
#[cfg(test)]
mod hidden;
mod list;
mod lookup;
pub mod meter;
mod node;
pub mod off_worker;
mod overrides;
mod pin;
#[cfg(test)]
mod probe;
mod random;
mod registered_source;
mod registry;
mod rendered_view;
mod request;
mod resource_link;
mod run_tool;
pub mod scope;
mod search;
mod session;
mod sessions;
pub mod share;
mod snapshot;
mod surface;
mod suspended_call;
mod swap;
mod token_count;
mod token_savings;
mod tool_registry;
pub mod trace;
mod view_cache;
mod viewer;

pub use accounts::{
    Account, AccountConnections, AccountCredentials, AccountProvider, AccountSettings, AccountStatus, AccountStore,
    BrowserSecret, ConnectedAccount, ConnectionCallback, ConnectionLink, DEFAULT as DEFAULT_ACCOUNT, OAuthApp,
    PendingConnection, ProviderRegistry, RefreshTiming, TokenAuth, selection::with_account,
};
pub use admin::{
    AccessAdmin, Admin, ModuleAdmin, PinAdmin, PinFilter, PinState, PinnedTool as WaitingPin, Previews, Status,
    StoreSync, ToolAdmin,
};
pub use admission::Throttle;
pub use audit::{
    AuditRules, AuditSettings, AuditState, Auditor, AuthEvent, Durability, QueueFullPolicy, UNWRITTEN, UNWRITTEN_FILE,
    UnwrittenRecords, record_admin,
};
pub use batch::{BatchReport, Batches, Observer, SilentObserver, TaskCompletion};
pub use builder::GatewayBuilder;
pub use call_result::CallResult;
pub use catalogs::{Catalogs, GatewayRules};
pub use command::{
    Batch, CallOptions, Command, Detail, Dialect, ModuleQuery, OutputOptions, ResultPart, ToolQuery, ToolTarget,
};
pub use config_admin::{ConfigAdmin, PutResult};
pub use continuation::{ContinuationToken, TokenBinding};
pub use discovery::{Discovery, FoundTools, ListPage, ToolFilter, ToolListPage};
pub use freshness::Freshness;
pub use gateway::Gateway;
pub use handle::process_of_result;
pub use hikite_store::clock::{machine_clock, now_ms};
pub use hikite_store::{AuditCursor, AuditFilter, AuditPage, AuditRow, AuditVerification, TrimEvidence};
pub use lookup::Lookup;
pub use node::{Nodes, Owner, Peer};
pub use registry::{RegistryStore, read as read_tool};
pub use request::{named, without_query};
pub use search::{CandidateRanking, MemorySettings, Search, SearchSettings, Strategy, decayed};
pub use session::{Delivery, Inbox};
pub use sessions::{SessionRegistration, Sessions};
pub use snapshot::UserPermissions;
pub use surface::{Surface, Surfaces};
pub use suspended_call::{CallStep, PendingInput, RunningCall, SuspendedCalls};
pub use token_savings::TokenSavings;
pub use viewer::Viewer;

/// Store kinds of account documents.
pub const ACCOUNT_KINDS: [&str; 1] = [accounts::PROVIDER];
