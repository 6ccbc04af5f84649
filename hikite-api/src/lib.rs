//! The REST API as types: members of requests and answers, and the operations that use them. The OpenAPI document is
//! generated from them, and the server, the pages and the commands share them. No behaviour: nothing here reads a
//! request or makes a decision.

mod account;
pub mod audit;
pub mod batch;
pub mod call;
pub mod catalog;
mod client;
mod document;
mod error;
mod module;
mod operation;
pub mod pin;
mod project;
mod registration;
mod schema;
mod session;
mod status;
mod token;
pub mod tool;
mod upstream;
mod user;

pub use account::{
    Account, AccountChanges, Accounts, Connection, ConnectionLink, NewAccount, NewConnection, ProviderApp,
    ProviderObject, Providers, StoredAccount,
};
pub use audit::{AuditBreak, AuditPage, AuditRecord, AuditTrim, AuditVerdict};
pub use batch::{
    BatchAnswer, BatchOutcome, BatchPreview, BatchReport, BatchRequest, BatchSummary, BatchTask, BatchTaskError,
    BatchTaskPreview, BatchTaskReport,
};
pub use call::{CallAnswer, CallRequest, CallRequestOptions, CompactInfo};
pub use catalog::{CatalogAnswer, CatalogMatch, CatalogRequest, CatalogTool};
pub use client::{Client, Clients, CreatedClient, NewClient};
pub use document::document;
pub use error::{ErrorAnswer, Fault};
pub use module::{Calls, Categories, Category, CategoryForm, Module, ModuleAccount, Modules};
pub use pin::{Pin, PinApproval, PinChange, PinDetail, Pins};
pub use project::{
    Me, Menu, NewProject, PermissionsAnswer, PermissionsRequest, Project, ProjectForm, ProjectSettings, Projects,
};
pub use registration::{HttpRequest, Parameter, Registration};
pub use session::{Consent, Consents, Login, Logins, Session, Sessions};
pub use status::{AuditStatus, Concern, Health, SavedDay, SavedDaySummary, SavedTokens, Status};
pub use token::{CreatedToken, NewToken, Token, Tokens};
pub use tool::{Example, FoundTool, Pagination, SearchAnswer, SearchFilters, SearchRequest, Tool, ToolPage, ToolTexts};
pub use upstream::{ImportAnswer, ImportEntry, ImportRequest, Upstream, UpstreamEntry, Upstreams};
pub use user::{CreatedUser, Handover, NewUser, OwnPassword, Removal, Removals, User, UserForm, UserSettings, Users};
