//! The gateway core: translates client requests into commands, decides whether they may run, and executes every call
//! on one path. Knows no HTTP, no SQL and no upstream protocol; it reaches sources through `core::source`.

mod access;
mod accounts;
mod admission;
mod audit;
mod batch;
mod cache;
mod call_result;
mod call_settings;
mod command;
mod config_admin;
mod continuation;
mod conversation;
mod deadline;
mod describe;
mod dispatch;
mod execute;
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
pub mod meter;
mod node;
pub mod off_worker;
mod overlay;
mod overrides;
mod overview;
mod pin;
mod preview;
#[cfg(test)]
mod probe;
mod random;
mod registered_source;
mod registry;
mod render;
mod rendered_view;
mod request;
mod resource_link;
pub mod scope;
mod search;
mod session;
pub mod share;
mod snapshot;
mod status;
mod surface;
mod suspended_call;
mod swap;
mod task;
mod token_savings;
mod tool_registry;
pub mod trace;
mod view_cache;
mod viewer;
mod wait;

pub use accounts::{
    Account, AccountProvider, AccountSettings, AccountStatus, AccountStore, BrowserSecret, ConnectedAccount,
    ConnectionCallback, ConnectionLink, DEFAULT as DEFAULT_ACCOUNT, OAuthApp, PendingConnection, RefreshTiming,
    TokenAuth, selection::with_account,
};
pub use admission::Throttle;
pub use audit::{
    AuditRules, AuditState, AuthEvent, Durability, QueueFullPolicy, UNWRITTEN, UNWRITTEN_FILE, UnwrittenRecords,
    record_admin,
};
pub use batch::{Batch, BatchReport, Observer, SilentObserver, TaskCompletion};
pub use call_result::CallResult;
pub use command::{CallOptions, Command, Detail, Dialect, ModuleQuery, ToolTarget};
pub use config_admin::{ConfigAdmin, PutResult};
pub use continuation::{ContinuationToken, TokenBinding};
pub use freshness::Freshness;
pub use gateway::{Gateway, GatewayRules};
pub use handle::ResultPart;
pub use hikite_identity::{
    self as identity, FederatedIdentity, Federation, FederationCallback, GATEWAY_ACCOUNT, Identity, IdentityProviders,
    IssuerRule, Issuers, LoginRule, MasterKeySource, Optimization, Passkeys, People, PersonalToken, Project,
    RETIRED_KEYS, RestoreSummary, RetiredKey, RotationSummary, SecretStore, StoredSecret, VaultFinding, VaultStatus,
};
pub use hikite_store::clock::{machine_clock, now_ms};
pub use hikite_store::{AuditCursor, AuditFilter, AuditPage, AuditRow, AuditVerification, TrimEvidence};
pub use list::ListPage;
pub use node::{Nodes, Owner, Peer};
pub use pin::{PinFilter, PinState, PinnedTool as WaitingPin};
pub use registry::{RegistryStore, read as read_tool};
pub use render::OutputOptions;
pub use request::{named, without_query};
pub use search::{MemorySettings, SearchSettings, Strategy, ToolQuery, decayed};
pub use session::{Delivery, Inbox, SessionRegistration};
pub use snapshot::UserPermissions;
pub use surface::{Surface, Surfaces, ToolFilter, ToolListPage};
pub use suspended_call::{CallStep, PendingInput, RunningCall, SuspendedCalls};
pub use viewer::Viewer;

// Paths from before identity was a crate of its own.
use hikite_identity::{self as people, self as project, self as secret_store};
use hikite_store::clock;

/// Store kinds of account documents.
pub const ACCOUNT_KINDS: [&str; 2] = [accounts::ACCOUNT, accounts::PROVIDER];
