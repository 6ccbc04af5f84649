//! Identity of callers: users, their logins and passkeys, the clients that act for them, grants, consents and tokens,
//! trusted issuers and federated logins, and the projects that callers work in. The secrets that identity and accounts
//! need are encrypted in the store. Knows neither HTTP nor the gateway.

mod blocking;
mod federation;
mod identity;
mod identity_provider;
mod issuer;
mod passkey;
mod people;
mod project;
mod secret_store;

pub use blocking::run_blocking;
pub use federation::{FederatedIdentity, Federation, FederationCallback, LoginRule};
pub use identity::{
    ApprovedRequest, BearerLookup, ClientOrigin, ClientQuota, ClientRecord, ClientRegistry, ClientStatus, CodeExchange,
    Consent, Identity, LoginSession, LoginSessions, NewClient, OF_CLIENT, REMOVED_MESSAGE, RedirectUri, RefreshRequest,
    Replay, ResourceTarget, Role, RotationReason, ServerKeys, Successor, TokenError, TokenIssuer, TokenPair,
    TokenTerms, USER_ID, User, UserAuthority, UserRegistry, WellKnownClient, hash, sealing_key, secret, was_removed,
};
pub use identity_provider::IdentityProviders;
pub use issuer::{IssuerRule, Issuers};
pub use passkey::Passkeys;
pub use people::{OF_TOKEN, People, PersonalToken, ProjectRegistry, SubjectNames, TokenRegistry};
pub use project::{Optimization, Project, ProjectMap};
pub use secret_store::{
    GATEWAY_ACCOUNT, MasterKeySource, RETIRED_KEYS, RestoreSummary, RetiredKey, RotationSummary, SecretStore,
    StoredSecret, VaultFinding, VaultStatus,
};
