//! One account: its owner, its provider and its permissions. Its secrets are in the secret store, never here.

use std::collections::BTreeMap;
use std::sync::Arc;

use hikite_api::StoredAccount;
use hikite_core::error::Error;
use hikite_core::permission::Permissions;
use hikite_core::time::rfc3339;
use hikite_core::violation::{self, Violation};
use hikite_store::AccountRow;

const NAME_CHARS: usize = 64;

#[derive(Clone, Debug)]
pub struct Account {
    pub id: Arc<str>,
    pub subject: Arc<str>,
    pub provider: Arc<str>,
    pub name: String,
    pub status: AccountStatus,
    /// Reason why the credential is unverified or refused, in the vendor's words.
    pub problem: Option<String>,
    /// Time at which the vendor last accepted the credential; zero for never.
    pub verified_at: u64,
    /// `true` for the account used where several would do.
    pub is_default: bool,
    /// `true` if everybody may use it.
    pub shared: bool,
    pub scopes: Vec<String>,
    /// User that a token belongs to, for services that need both.
    pub email: Option<String>,
    pub details: BTreeMap<String, String>,
    pub api: Option<String>,
    /// Expiry of the current token; zero for never. Milliseconds since the Unix epoch, like all times.
    pub expires_at: u64,
    pub last_refresh: u64,
    /// Tools that may be called with this account.
    pub permissions: Arc<Permissions>,
    pub created_at: u64,
    pub version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStatus {
    /// The vendor accepted the credential.
    Connected,
    /// The credential has not been tried yet.
    Unverified,
    /// The provider no longer accepts the token: the account must be connected again.
    Reconnect,
}

impl AccountStatus {
    pub fn word(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Unverified => "unverified",
            Self::Reconnect => "reconnect",
        }
    }

    fn of(word: &str) -> Self {
        match word {
            "reconnect" => Self::Reconnect,
            "unverified" => Self::Unverified,
            _ => Self::Connected,
        }
    }
}

impl Account {
    /// Builds a new, unverified account.
    pub(super) fn new(id: String, subject: &str, provider: &str, name: &str, now: u64) -> Self {
        Self {
            id: id.into(),
            subject: subject.into(),
            provider: provider.into(),
            name: name.to_owned(),
            status: AccountStatus::Unverified,
            problem: None,
            verified_at: 0,
            is_default: false,
            shared: false,
            scopes: Vec::new(),
            email: None,
            details: BTreeMap::new(),
            api: None,
            expires_at: 0,
            last_refresh: 0,
            permissions: Arc::default(),
            created_at: now,
            version: 1,
        }
    }

    /// Reads an account from the store. Unreadable permissions allow nothing.
    pub(super) fn of(row: &AccountRow) -> Self {
        let permissions = crate::off_worker::run_blocking(|| Permissions::read(&row.permissions));
        Self {
            id: row.id.as_str().into(),
            subject: row.subject.as_str().into(),
            provider: row.provider.as_str().into(),
            name: row.name.clone(),
            status: AccountStatus::of(&row.status),
            problem: row.problem.clone(),
            verified_at: row.verified_at,
            is_default: row.is_default,
            shared: row.shared,
            scopes: row.scopes.clone(),
            email: row.email.clone(),
            details: row.details.clone(),
            api: row.api.clone(),
            expires_at: row.token_expires_at,
            last_refresh: row.last_refresh,
            permissions: permissions.map_or_else(|_| hikite_core::permission::nothing(), Arc::new),
            created_at: row.created_at,
            version: row.version,
        }
    }

    pub(super) fn row(&self) -> AccountRow {
        AccountRow {
            id: self.id.to_string(),
            subject: self.subject.to_string(),
            provider: self.provider.to_string(),
            name: self.name.clone(),
            status: self.status.word().to_owned(),
            problem: self.problem.clone(),
            verified_at: self.verified_at,
            is_default: self.is_default,
            shared: self.shared,
            scopes: self.scopes.clone(),
            email: self.email.clone(),
            details: self.details.clone(),
            api: self.api.clone(),
            token_expires_at: self.expires_at,
            last_refresh: self.last_refresh,
            permissions: self.permissions.form(),
            version: self.version,
            created_at: self.created_at,
        }
    }

    /// Returns the account as the API shows it.
    pub fn object(&self) -> hikite_api::Account {
        hikite_api::Account {
            id: self.id.to_string(),
            name: self.name.clone(),
            provider: self.provider.to_string(),
            state: self.status.word().to_owned(),
            problem: self.problem.clone(),
            verified_at: time(self.verified_at),
            shared: self.shared,
            permissions: self.permissions.form(),
            managed_by_file: false,
            user: None,
            user_id: None,
            stored: Some(StoredAccount {
                subject: self.subject.to_string(),
                is_default: self.is_default,
                scopes: self.scopes.clone(),
                details: self.details.clone(),
                expires_at: time(self.expires_at),
                last_refresh: time(self.last_refresh),
                created_at: time(self.created_at),
            }),
        }
    }
}

/// Formats a time; zero is none.
pub(super) fn time(at: u64) -> Option<String> {
    (at > 0).then(|| rfc3339(at))
}

/// Checks the name of an account. Models use it in their calls.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let fine = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+');
    if (1..=NAME_CHARS).contains(&name.chars().count()) && name.chars().all(fine) {
        return Ok(());
    }
    let message =
        format!("An account name may contain letters, digits and `-_.@+`, and at most {NAME_CHARS} characters.");
    Err(violation::error(&[Violation::new("/name", message)]))
}
