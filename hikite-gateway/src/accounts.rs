//! Accounts with which services are called: ownership, selection, and a currently valid credential. Accounts are
//! documents in the store, cached in memory; their secrets are only in the secret store. No HTTP: providers are reached
//! through `TokenEndpoint`. Accounts of the config serve where no other does.

mod account;
mod change;
mod connection;
mod index;
mod invitation;
mod mask;
mod owner;
mod provider;
mod refresh;
pub(crate) mod selection;
#[cfg(test)]
mod tests;
mod token;
mod token_request;
mod verify;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use hikite_core::caller::Caller;
use hikite_core::credential::{Credential, CredentialProvider, TokenEndpoint, Verifier};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::hex::hex;
use hikite_core::permission::{self, Permissions};
use hikite_core::source::{BoxFuture, CallContext};
use hikite_store::{AccountRow, ChangeSet, Record};
use hikite_vault::random_bytes;
use parking_lot::Mutex;
use tokio_util::task::TaskTracker;

pub use account::{Account, AccountStatus};
pub use connection::{
    AccountConnections, BrowserSecret, ConnectedAccount, ConnectionCallback, ConnectionLink, PendingConnection,
};
use hikite_identity::SecretStore;
use hikite_store::clock::now_ms;
use index::AccountIndex;
pub(crate) use invitation::how_to_connect;
pub(crate) use mask::{AccountMasks, SubjectMask};
pub use provider::{AccountProvider, OAuthApp, ProviderRegistry, TokenAuth};
pub use refresh::AccountCredentials;
use refresh::SharedRefresh;
use token::AccountTokens;
use verify::ConfiguredStatus;

/// Kinds of documents in the store.
pub(crate) const PROVIDER: &str = "provider";
const CONNECTION: &str = "connection";
/// Fields in the secret store.
const OAUTH: &str = "oauth";
const TOKEN: &str = "token";
const CLIENT_SECRET: &str = "client_secret";
/// Id of the account that the config file defines for a provider.
const FROM_FILE: &str = "file";
/// Default name of an account.
pub const DEFAULT: &str = "default";

pub struct AccountStore {
    me: Weak<Self>,
    secret_store: Arc<SecretStore>,
    endpoint: Arc<dyn TokenEndpoint>,
    /// Credential provider for the accounts of the config.
    configured: Arc<dyn CredentialProvider>,
    verifier: Arc<dyn Verifier>,
    settings: ArcSwap<AccountSettings>,
    known: ArcSwap<AccountIndex>,
    /// Store revision that memory reflects.
    revision: AtomicI64,
    /// Set when accounts read from the store differ from those shown before.
    has_changes: AtomicBool,
    /// Serializes changes, so that memory follows the store in order.
    change_lock: tokio::sync::Mutex<()>,
    held: Mutex<HashMap<Arc<str>, CachedAccountTokens>>,
    refreshes: Mutex<HashMap<Arc<str>, SharedRefresh>>,
    links: Mutex<HashMap<(Arc<str>, String), ConnectionLink>>,
    /// State of the accounts of the config, by provider. Not stored, because their tokens are not ours.
    configured_states: Mutex<HashMap<String, ConfiguredStatus>>,
    /// Id of this process for leases in the store.
    holder: String,
    timing: RefreshTiming,
    tasks: TaskTracker,
}

/// Cached tokens of an account, with the version of the account that they belong to.
#[derive(Clone, Debug)]
struct CachedAccountTokens {
    version: u64,
    tokens: Arc<AccountTokens>,
}

/// Settings of the config.
#[derive(Clone, Debug, Default)]
pub struct AccountSettings {
    pub providers: Vec<AccountProvider>,
    /// Providers for which the config gives everybody an account, and the permissions of that account.
    pub from_file: BTreeMap<String, Arc<Permissions>>,
    /// Base URL for browsers, without a trailing slash.
    pub public_url: String,
    /// Account that a project uses, by project and provider.
    pub rules: HashMap<Arc<str>, BTreeMap<String, String>>,
}

/// Lease of one process on a token refresh, and the polling interval of the others.
#[derive(Clone, Copy, Debug)]
pub struct RefreshTiming {
    pub lease: Duration,
    pub poll_interval: Duration,
}

impl Default for RefreshTiming {
    fn default() -> Self {
        Self { lease: Duration::from_secs(30), poll_interval: Duration::from_millis(50) }
    }
}

/// The account that serves a call.
#[derive(Clone, Debug)]
pub(crate) enum SelectedAccount {
    Account(Arc<Account>),
    /// The account of the config file, with its permissions.
    Configured(Arc<Permissions>),
}

impl std::fmt::Debug for AccountStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountStore").finish_non_exhaustive()
    }
}

impl AccountStore {
    pub fn new(
        secret_store: Arc<SecretStore>,
        endpoint: Arc<dyn TokenEndpoint>,
        configured: Arc<dyn CredentialProvider>,
        verifier: Arc<dyn Verifier>,
    ) -> Arc<Self> {
        Self::with_timing(secret_store, endpoint, configured, verifier, RefreshTiming::default())
    }

    pub fn with_timing(
        secret_store: Arc<SecretStore>,
        endpoint: Arc<dyn TokenEndpoint>,
        configured: Arc<dyn CredentialProvider>,
        verifier: Arc<dyn Verifier>,
        timing: RefreshTiming,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            secret_store,
            endpoint,
            configured,
            verifier,
            settings: ArcSwap::default(),
            known: ArcSwap::default(),
            revision: AtomicI64::new(-1),
            has_changes: AtomicBool::new(false),
            change_lock: tokio::sync::Mutex::default(),
            held: Mutex::default(),
            refreshes: Mutex::default(),
            links: Mutex::default(),
            configured_states: Mutex::default(),
            holder: id().unwrap_or_default(),
            timing,
            tasks: TaskTracker::new(),
        })
    }

    /// Applies the config.
    pub fn follow(&self, mut settings: AccountSettings) {
        // Links contain the public URL that they were made for.
        self.links.lock().clear();
        self.configured_states.lock().clear();
        // The rules of projects are set separately; until then the previous ones apply.
        if settings.rules.is_empty() {
            settings.rules.clone_from(&self.settings.load().rules);
        }
        self.settings.store(Arc::new(settings));
    }

    /// Sets the account that each project uses.
    pub(crate) fn set_account_rules(&self, rules: &HashMap<Arc<str>, BTreeMap<String, String>>) {
        if self.settings.load().rules != *rules {
            self.settings.rcu(|settings| AccountSettings { rules: rules.clone(), ..AccountSettings::clone(settings) });
        }
    }

    /// Returns `true` if a change read since the last call affects what somebody sees.
    pub(crate) fn take_changes(&self) -> bool {
        self.has_changes.swap(false, Ordering::AcqRel)
    }

    /// Reads all accounts from the store.
    pub async fn read_store(&self) -> Result<(), Error> {
        let _change = self.change_lock.lock().await;
        self.read().await
    }

    async fn read(&self) -> Result<(), Error> {
        let changes = self.secret_store.store().changes().since(self.revision.load(Ordering::Relaxed)).await?;
        self.apply_changes(&changes).await
    }

    /// Applies changes of the store as far as they concern accounts.
    pub(crate) async fn follow_store(&self, changes: &ChangeSet) -> Result<(), Error> {
        let _change = self.change_lock.lock().await;
        if changes.continue_from(self.revision.load(Ordering::Relaxed)) {
            return self.apply_changes(changes).await;
        }
        self.read().await
    }

    async fn apply_changes(&self, changes: &ChangeSet) -> Result<(), Error> {
        if changes.concern(&[AccountRow::KIND, PROVIDER]) {
            let next = match changes.ids(AccountRow::KIND).filter(|_| !changes.concern(&[PROVIDER])) {
                Some(ids) => self.read_some(&ids).await?,
                None => self.read_all().await?,
            };
            self.show(&Arc::new(next));
        }
        self.revision.store(changes.to, Ordering::Relaxed);
        Ok(())
    }

    async fn read_all(&self) -> Result<AccountIndex, Error> {
        let now = now_ms();
        let accounts = self.secret_store.store().accounts().all(now).await?;
        let apps = self.secret_store.store().documents().all(PROVIDER, None, now).await?;
        Ok(AccountIndex::of(&accounts, &apps))
    }

    async fn read_some(&self, ids: &[&str]) -> Result<AccountIndex, Error> {
        let mut changed = Vec::with_capacity(ids.len());
        for id in ids {
            changed.push((*id, self.secret_store.store().accounts().get(id, now_ms()).await?));
        }
        Ok(self.known.load().with(&changed))
    }

    fn show(&self, next: &Arc<AccountIndex>) {
        let before = self.known.swap(Arc::clone(next));
        let is_same = |id: &Arc<str>, held: &mut CachedAccountTokens| {
            next.by_id(id).is_some_and(|account| account.version == held.version)
        };
        self.held.lock().retain(is_same);
        if !before.shows_same_tools(next) {
            self.has_changes.store(true, Ordering::Release);
        }
    }

    /// Waits for the tasks that must not be interrupted.
    pub async fn stop(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Returns the base URL at which browsers reach hikite.
    pub fn public_url(&self) -> String {
        self.settings.load().public_url.clone()
    }

    pub fn secret_store(&self) -> &Arc<SecretStore> {
        &self.secret_store
    }

    /// Selects the account that serves a caller: the requested one, else that of its project, else its default. Another
    /// user's account is reported like an absent one.
    pub(crate) fn choose(
        &self,
        caller: &Caller,
        provider: &str,
        requested: Option<&str>,
    ) -> Result<Option<SelectedAccount>, Error> {
        let known = self.known.load();
        let settings = self.settings.load();
        let rule = || settings.rules.get(caller.project.as_ref()?)?.get(provider).map(String::as_str);
        let in_file = settings.from_file.get(provider).map(|allowed| SelectedAccount::Configured(Arc::clone(allowed)));
        let Some(name) = requested.or_else(rule) else {
            let own = known.default_of(&caller.subject, provider).map(SelectedAccount::Account);
            return Ok(own.or(in_file).or_else(|| known.shared(provider).next().map(SelectedAccount::Account)));
        };
        let own = known.named(&caller.subject, provider, name).map(SelectedAccount::Account);
        let file = || in_file.filter(|_| name == DEFAULT);
        let shared = || known.shared(provider).find(|account| account.name == name).map(SelectedAccount::Account);
        match own.or_else(file).or_else(shared) {
            Some(chosen) => Ok(Some(chosen)),
            None => Err(no_account(provider, name, &self.names(caller, provider))),
        }
    }

    /// Returns the names of the accounts that a caller may choose from.
    pub(crate) fn names(&self, caller: &Caller, provider: &str) -> Vec<String> {
        let known = self.known.load();
        let mut names: Vec<String> = known.usable(&caller.subject, provider).map(|a| a.name.clone()).collect();
        let in_file = self.settings.load().from_file.contains_key(provider);
        if in_file && !names.iter().any(|name| name == DEFAULT) {
            names.push(DEFAULT.into());
        }
        names.dedup();
        names
    }

    /// Returns the account with this id, if the caller may use it.
    fn usable(&self, caller: &Caller, id: &str) -> Option<Arc<Account>> {
        let account = self.known.load().by_id(id)?;
        (account.subject == caller.subject || account.shared).then_some(account)
    }

    /// Returns the display name of an account, if the caller may know of it.
    pub(crate) fn label(&self, caller: &Caller, provider: &str, id: &str) -> Option<String> {
        if id == FROM_FILE {
            return Some(format!("{provider}/{DEFAULT}"));
        }
        let account = self.known.load().by_id(id)?;
        let is_own = account.subject == caller.subject;
        let may = is_own || account.shared || caller.is_admin();
        let of = if is_own { String::new() } else { format!(" ({})", account.subject) };
        may.then(|| format!("{provider}/{}{of}", account.name))
    }

    pub fn connections(&self) -> AccountConnections<'_> {
        AccountConnections(self)
    }

    pub fn credentials(&self) -> AccountCredentials<'_> {
        AccountCredentials(self)
    }

    pub fn providers(&self) -> ProviderRegistry<'_> {
        ProviderRegistry(self)
    }
}

impl AccountCredentials<'_> {
    fn chosen(self, provider: &str, context: &CallContext) -> Result<Option<SelectedAccount>, Error> {
        let caller = &context.session.caller;
        match context.account.as_deref() {
            Some(FROM_FILE) => {
                let allowed = self.0.settings.load().from_file.get(provider).cloned();
                Ok(Some(SelectedAccount::Configured(allowed.unwrap_or_else(permission::nothing))))
            }
            Some(id) => Ok(self.0.usable(caller, id).map(SelectedAccount::Account)),
            None => self.0.choose(caller, provider, None),
        }
    }

    async fn credential_for(self, provider: &str, context: &CallContext) -> Result<Option<Arc<Credential>>, Error> {
        let mut chosen = self.chosen(provider, context)?;
        if chosen.as_ref().is_none_or(SelectedAccount::needs_reconnect)
            && self.0.connections().invite(provider, context).await?
        {
            chosen = self.0.choose(&context.session.caller, provider, None)?;
        }
        match chosen {
            Some(SelectedAccount::Configured(_)) => self.0.configured.credential(provider, context).await,
            Some(SelectedAccount::Account(account)) => {
                let tokens = self.fresh(&account, None).await;
                let tokens = match tokens {
                    Err(error) if error.kind == ErrorKind::AccountRequired => {
                        return Err(self.0.connections().with_link(error, provider, context).await);
                    }
                    tokens => tokens?,
                };
                Ok(Some(Arc::new(self.build_credential(&account, &tokens))))
            }
            None => match self.0.connections().link_for(&context.session.caller, provider).await {
                Ok(Some(link)) => Err(connect_first(provider, &link)),
                _ => Ok(None),
            },
        }
    }

    /// Builds the credential for a service. The provider's API URL applies unless the account has its own.
    fn build_credential(self, account: &Account, tokens: &AccountTokens) -> Credential {
        let credential = tokens.credential(account);
        let api = || self.0.providers().get(&account.provider).and_then(|provider| provider.api);
        Credential { api: credential.api.clone().or_else(api), ..credential }
    }

    async fn credential_after(
        self,
        provider: &str,
        refused: &Credential,
        context: &CallContext,
    ) -> Result<Option<Arc<Credential>>, Error> {
        match self.chosen(provider, context)? {
            Some(SelectedAccount::Configured(_)) => self.0.configured.renewed(provider, refused, context).await,
            Some(SelectedAccount::Account(account)) => {
                let tokens = match self.fresh(&account, Some(&refused.secret)).await {
                    Err(error) if error.kind == ErrorKind::AccountRequired => {
                        return Err(self.0.connections().with_link(error, provider, context).await);
                    }
                    tokens => tokens?,
                };
                let credential = self.build_credential(&account, &tokens);
                Ok((credential != *refused).then(|| Arc::new(credential)))
            }
            None => Ok(None),
        }
    }
}

impl SelectedAccount {
    /// Returns `true` if the account must be connected again.
    fn needs_reconnect(&self) -> bool {
        matches!(self, Self::Account(account) if account.status == AccountStatus::Reconnect)
    }

    pub(crate) fn id(&self) -> Arc<str> {
        match self {
            Self::Account(account) => Arc::clone(&account.id),
            Self::Configured(_) => FROM_FILE.into(),
        }
    }
}

impl CredentialProvider for AccountStore {
    fn knows(&self, provider: &str) -> bool {
        self.configured.knows(provider) || self.known.load().has(provider)
    }

    fn credential<'a>(
        &'a self,
        provider: &'a str,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(async move { self.credentials().credential_for(provider, context).await })
    }

    fn renewed<'a>(
        &'a self,
        provider: &'a str,
        refused: &'a Credential,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(async move { self.credentials().credential_after(provider, refused, context).await })
    }

    fn accepted(&self, provider: &str, credential: &Credential) {
        self.credentials().mark_accepted(provider, credential);
    }
}

fn no_account(provider: &str, name: &str, known: &[String]) -> Error {
    let error = Error::new(ErrorKind::Validation, format!("There is no account `{name}` with `{provider}`."));
    if known.is_empty() {
        return error.hint("Leave out `account` to get instructions for connecting one.");
    }
    error.hint(format!("Available accounts: {}.", known.join(", ")))
}

fn connect_first(provider: &str, link: &ConnectionLink) -> Error {
    Error::new(ErrorKind::AccountRequired, format!("No account with `{provider}` is connected.")).hint(connect_at(link))
}

fn connect_at(link: &ConnectionLink) -> String {
    format!("Ask the user to connect an account at this address: {}", link.url.expose())
}

/// Returns 128 random bits in hex.
fn id() -> Result<String, Error> {
    let bytes: [u8; 16] = random_bytes().map_err(|why| Error::new(ErrorKind::Internal, why.to_string()))?;
    Ok(hex(&bytes))
}
