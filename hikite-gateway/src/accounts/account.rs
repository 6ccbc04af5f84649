//! One account: its owner, its provider and its permissions. Its secrets are in the secret store, never here.

use std::collections::BTreeMap;
use std::sync::Arc;

use hikite_api::StoredAccount;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::permission::Permissions;
use hikite_core::time::rfc3339;
use hikite_core::violation::{self, Violation};
use hikite_store::DocumentRow;

use super::ACCOUNT;

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
    pub(super) fn of(entry: &DocumentRow) -> Option<Self> {
        let form = entry.form.object()?;
        let number = |name: &str| form.get(name).and_then(|at| at.decode().ok()).unwrap_or_default();
        let flag = |name: &str| form.get(name).and_then(|flag| flag.decode().ok()).unwrap_or_default();
        let permissions =
            match form.get("permissions").map(|form| crate::off_worker::run_blocking(|| Permissions::read(form))) {
                None => Arc::default(),
                Some(Ok(permissions)) => Arc::new(permissions),
                Some(Err(_)) => hikite_core::permission::nothing(),
            };
        let status = match form.text("state").as_deref() {
            Some("reconnect") => AccountStatus::Reconnect,
            Some("unverified") => AccountStatus::Unverified,
            _ => AccountStatus::Connected,
        };
        Some(Self {
            id: entry.id.as_str().into(),
            subject: entry.owner.as_str().into(),
            provider: form.text("provider")?.into(),
            name: form.text("name")?,
            status,
            problem: form.text("problem"),
            verified_at: number("verified_at"),
            is_default: flag("default"),
            shared: flag("shared"),
            scopes: form.get("scopes").and_then(|list| list.decode().ok()).unwrap_or_default(),
            email: form.text("email"),
            details: form.get("details").and_then(|map| map.decode().ok()).unwrap_or_default(),
            api: form.text("api"),
            expires_at: number("expires_at"),
            last_refresh: number("last_refresh"),
            permissions,
            created_at: entry.created_at,
            version: entry.version,
        })
    }

    pub(super) fn entry(&self) -> DocumentRow {
        let mut form = Object::default()
            .with("provider", &*self.provider)
            .with("name", self.name.as_str())
            .with("state", self.status.word())
            .with("default", Raw::of(&self.is_default))
            .with("shared", Raw::of(&self.shared))
            .with("scopes", Raw::of(&self.scopes))
            .with("details", Raw::of(&self.details))
            .with("expires_at", Raw::of(&self.expires_at))
            .with("last_refresh", Raw::of(&self.last_refresh))
            .with("verified_at", Raw::of(&self.verified_at))
            .with("permissions", self.permissions.form());
        for (name, value) in [("email", &self.email), ("api", &self.api), ("problem", &self.problem)] {
            if let Some(value) = value {
                form.set(name, value.as_str());
            }
        }
        DocumentRow {
            kind: ACCOUNT,
            id: self.id.to_string(),
            owner: self.subject.to_string(),
            form: form.raw(),
            version: self.version,
            created_at: self.created_at,
            expires_at: 0,
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
