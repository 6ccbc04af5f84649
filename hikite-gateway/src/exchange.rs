//! Accounts with which services are called: ownership, selection, and a currently valid credential. Accounts are
//! documents in the store, cached in memory; their secrets are only in the secret store. No HTTP: providers are reached
//! through `TokenEndpoint`. Accounts of the config serve where no other does.

mod account;
mod ask;
mod change;
pub(crate) mod choice;
mod connect;
mod directory;
mod invite;
mod mask;
mod owner;
mod provider;
mod refresh;
#[cfg(test)]
mod tests;
mod token;
mod verify;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use hikite_core::caller::Caller;
use hikite_core::credential::{Credential, Exchanger, TokenEndpoint, Verifier};
use hikite_core::error::{Error, Kind};
use hikite_core::hex::hex;
use hikite_core::permission::{self, Permissions};
use hikite_core::source::{BoxFuture, CallContext};
use hikite_store::Changes;
use hikite_vault::random_bytes;
use parking_lot::Mutex;
use tokio_util::task::TaskTracker;

use crate::clock::now_ms;
use crate::safe::Safe;
pub use account::{Account, Standing as AccountStanding};
pub use connect::{Browser, Connected, Link, Returned, Waiting};
use directory::Directory;
pub(crate) use mask::{Masks, SubjectMask};
pub use provider::{App, Provider, TokenAuth};
use refresh::Flight;
use token::Tokens;
use verify::Verified;

/// Kinds of documents in the store.
pub(crate) const ACCOUNT: &str = "account";
pub(crate) const PROVIDER: &str = "provider";
const CONNECTION: &str = "connection";
/// Fields in the secret store.
const OAUTH: &str = "oauth";
const TOKEN: &str = "token";
const CLIENT_SECRET: &str = "client_secret";
/// Id of the account that the config file defines for a provider.
const OF_THE_FILE: &str = "file";
/// Default name of an account.
pub const DEFAULT: &str = "default";

pub struct Accounts {
    me: Weak<Self>,
    safe: Arc<Safe>,
    endpoint: Arc<dyn TokenEndpoint>,
    /// Credential provider for the accounts of the config.
    configured: Arc<dyn Exchanger>,
    verifier: Arc<dyn Verifier>,
    settings: ArcSwap<Settings>,
    known: ArcSwap<Directory>,
    /// Store revision that memory reflects.
    revision: AtomicI64,
    /// Set when accounts read from the store differ from those shown before.
    has_news: AtomicBool,
    /// Serializes changes, so that memory follows the store in order.
    turn: tokio::sync::Mutex<()>,
    held: Mutex<HashMap<Arc<str>, Held>>,
    flights: Mutex<HashMap<Arc<str>, Flight>>,
    links: Mutex<HashMap<(Arc<str>, String), Link>>,
    /// State of the accounts of the config, by provider. Not stored, because their tokens are not ours.
    filed: Mutex<HashMap<String, Verified>>,
    /// Id of this process for leases in the store.
    holder: String,
    pace: Pace,
    tasks: TaskTracker,
}

/// Cached tokens of an account, with the version of the account that they belong to.
#[derive(Clone, Debug)]
struct Held {
    version: u64,
    tokens: Arc<Tokens>,
}

/// Settings of the config.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub providers: Vec<Provider>,
    /// Providers for which the config gives everybody an account, and the permissions of that account.
    pub of_the_file: BTreeMap<String, Arc<Permissions>>,
    /// Base URL for browsers, without a trailing slash.
    pub public_url: String,
    /// Account that a project uses, by project and provider.
    pub rules: HashMap<Arc<str>, BTreeMap<String, String>>,
}

/// Lease of one process on a token refresh, and the polling interval of the others.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub lease: Duration,
    pub look: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { lease: Duration::from_secs(30), look: Duration::from_millis(50) }
    }
}

/// The account that serves a call.
#[derive(Clone, Debug)]
pub(crate) enum Chosen {
    Account(Arc<Account>),
    /// The account of the config file, with its permissions.
    Configured(Arc<Permissions>),
}

impl std::fmt::Debug for Accounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accounts").finish_non_exhaustive()
    }
}

impl Accounts {
    pub fn new(
        safe: Arc<Safe>,
        endpoint: Arc<dyn TokenEndpoint>,
        configured: Arc<dyn Exchanger>,
        verifier: Arc<dyn Verifier>,
    ) -> Arc<Self> {
        Self::paced(safe, endpoint, configured, verifier, Pace::default())
    }

    pub fn paced(
        safe: Arc<Safe>,
        endpoint: Arc<dyn TokenEndpoint>,
        configured: Arc<dyn Exchanger>,
        verifier: Arc<dyn Verifier>,
        pace: Pace,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            safe,
            endpoint,
            configured,
            verifier,
            settings: ArcSwap::default(),
            known: ArcSwap::default(),
            revision: AtomicI64::new(-1),
            has_news: AtomicBool::new(false),
            turn: tokio::sync::Mutex::default(),
            held: Mutex::default(),
            flights: Mutex::default(),
            links: Mutex::default(),
            filed: Mutex::default(),
            holder: id().unwrap_or_default(),
            pace,
            tasks: TaskTracker::new(),
        })
    }

    /// Applies the config.
    pub fn follow(&self, mut settings: Settings) {
        // Links contain the public URL that they were made for.
        self.links.lock().clear();
        self.filed.lock().clear();
        // The rules of projects are set separately; until then the previous ones apply.
        if settings.rules.is_empty() {
            settings.rules.clone_from(&self.settings.load().rules);
        }
        self.settings.store(Arc::new(settings));
    }

    /// Sets the account that each project uses.
    pub(crate) fn follow_rules(&self, rules: &HashMap<Arc<str>, BTreeMap<String, String>>) {
        if self.settings.load().rules != *rules {
            self.settings.rcu(|settings| Settings { rules: rules.clone(), ..Settings::clone(settings) });
        }
    }

    /// Returns `true` if a change read since the last call affects what somebody sees.
    pub(crate) fn take_news(&self) -> bool {
        self.has_news.swap(false, Ordering::AcqRel)
    }

    /// Reads all accounts from the store.
    pub async fn read_store(&self) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        self.read().await
    }

    async fn read(&self) -> Result<(), Error> {
        let changes = self.safe.store().changes_since(self.revision.load(Ordering::Relaxed)).await?;
        self.take_in(&changes).await
    }

    /// Applies changes of the store as far as they concern accounts.
    pub(crate) async fn follow_store(&self, changes: &Changes) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        if changes.continue_from(self.revision.load(Ordering::Relaxed)) {
            return self.take_in(changes).await;
        }
        self.read().await
    }

    async fn take_in(&self, changes: &Changes) -> Result<(), Error> {
        if changes.concern(&[ACCOUNT, PROVIDER]) {
            let next = match changes.ids(ACCOUNT).filter(|_| !changes.concern(&[PROVIDER])) {
                Some(ids) => self.read_some(&ids).await?,
                None => self.read_all().await?,
            };
            self.show(&Arc::new(next));
        }
        self.revision.store(changes.to, Ordering::Relaxed);
        Ok(())
    }

    async fn read_all(&self) -> Result<Directory, Error> {
        let now = now_ms();
        let accounts = self.safe.store().entries(ACCOUNT, None, now).await?;
        let apps = self.safe.store().entries(PROVIDER, None, now).await?;
        Ok(Directory::of(&accounts, &apps))
    }

    async fn read_some(&self, ids: &[&str]) -> Result<Directory, Error> {
        let mut changed = Vec::with_capacity(ids.len());
        for id in ids {
            changed.push((*id, self.safe.store().entry(ACCOUNT, id, now_ms()).await?));
        }
        Ok(self.known.load().with(&changed))
    }

    fn show(&self, next: &Arc<Directory>) {
        let before = self.known.swap(Arc::clone(next));
        let is_same = |id: &Arc<str>, held: &mut Held| {
            next.by_id(id).is_some_and(|account| account.version == held.version)
        };
        self.held.lock().retain(is_same);
        if !before.looks_like(next) {
            self.has_news.store(true, Ordering::Release);
        }
    }

    /// Waits for the tasks that must not be interrupted.
    pub async fn stop(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Returns `true` if browsers reach us over TLS.
    pub fn is_https(&self) -> bool {
        self.settings.load().public_url.starts_with("https://")
    }

    pub fn safe(&self) -> &Arc<Safe> {
        &self.safe
    }

    /// Selects the account that serves a caller: the requested one, else that of its project, else its default. Another
    /// user's account is reported like an absent one.
    pub(crate) fn choose(
        &self,
        caller: &Caller,
        provider: &str,
        asked: Option<&str>,
    ) -> Result<Option<Chosen>, Error> {
        let known = self.known.load();
        let settings = self.settings.load();
        let rule = || settings.rules.get(caller.project.as_ref()?)?.get(provider).map(String::as_str);
        let in_file =
            settings.of_the_file.get(provider).map(|allowed| Chosen::Configured(Arc::clone(allowed)));
        let Some(name) = asked.or_else(rule) else {
            let own = known.default_of(&caller.subject, provider).map(Chosen::Account);
            return Ok(own.or(in_file).or_else(|| known.shared(provider).next().map(Chosen::Account)));
        };
        let own = known.named(&caller.subject, provider, name).map(Chosen::Account);
        let file = || in_file.filter(|_| name == DEFAULT);
        let shared = || known.shared(provider).find(|account| account.name == name).map(Chosen::Account);
        match own.or_else(file).or_else(shared) {
            Some(chosen) => Ok(Some(chosen)),
            None => Err(no_account(provider, name, &self.names(caller, provider))),
        }
    }

    /// Returns the names of the accounts that a caller may choose from.
    pub(crate) fn names(&self, caller: &Caller, provider: &str) -> Vec<String> {
        let known = self.known.load();
        let mut names: Vec<String> =
            known.usable(&caller.subject, provider).map(|a| a.name.clone()).collect();
        let in_file = self.settings.load().of_the_file.contains_key(provider);
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
        if id == OF_THE_FILE {
            return Some(format!("{provider}/{DEFAULT}"));
        }
        let account = self.known.load().by_id(id)?;
        let is_own = account.subject == caller.subject;
        let may = is_own || account.shared || caller.is_admin();
        let of = if is_own { String::new() } else { format!(" ({})", account.subject) };
        may.then(|| format!("{provider}/{}{of}", account.name))
    }

    fn chosen(&self, provider: &str, context: &CallContext) -> Result<Option<Chosen>, Error> {
        let caller = &context.session.caller;
        match context.account.as_deref() {
            Some(OF_THE_FILE) => {
                let allowed = self.settings.load().of_the_file.get(provider).cloned();
                Ok(Some(Chosen::Configured(allowed.unwrap_or_else(permission::nothing))))
            }
            Some(id) => Ok(self.usable(caller, id).map(Chosen::Account)),
            None => self.choose(caller, provider, None),
        }
    }

    async fn credential_for(
        &self,
        provider: &str,
        context: &CallContext,
    ) -> Result<Option<Arc<Credential>>, Error> {
        let mut chosen = self.chosen(provider, context)?;
        if chosen.as_ref().is_none_or(Chosen::is_lost) && self.invite(provider, context).await? {
            chosen = self.choose(&context.session.caller, provider, None)?;
        }
        match chosen {
            Some(Chosen::Configured(_)) => self.configured.credential(provider, context).await,
            Some(Chosen::Account(account)) => {
                let tokens = self.fresh(&account, None).await;
                let tokens = match tokens {
                    Err(error) if error.kind == Kind::AccountRequired => {
                        return Err(self.with_link(error, provider, context).await);
                    }
                    tokens => tokens?,
                };
                Ok(Some(Arc::new(self.shown_as(&account, &tokens))))
            }
            None => match self.link_for(provider, context).await {
                Some(link) => Err(connect_first(provider, &link)),
                None => Ok(None),
            },
        }
    }

    /// Builds the credential for a service. The provider's API URL applies unless the account has its own.
    fn shown_as(&self, account: &Account, tokens: &Tokens) -> Credential {
        let credential = tokens.credential(account);
        let api = || self.provider(&account.provider).and_then(|provider| provider.api);
        Credential { api: credential.api.clone().or_else(api), ..credential }
    }

    async fn credential_after(
        &self,
        provider: &str,
        refused: &Credential,
        context: &CallContext,
    ) -> Result<Option<Arc<Credential>>, Error> {
        match self.chosen(provider, context)? {
            Some(Chosen::Configured(_)) => self.configured.renewed(provider, refused, context).await,
            Some(Chosen::Account(account)) => {
                let tokens = match self.fresh(&account, Some(&refused.secret)).await {
                    Err(error) if error.kind == Kind::AccountRequired => {
                        return Err(self.with_link(error, provider, context).await);
                    }
                    tokens => tokens?,
                };
                let credential = self.shown_as(&account, &tokens);
                Ok((credential != *refused).then(|| Arc::new(credential)))
            }
            None => Ok(None),
        }
    }
}

impl Chosen {
    /// Returns `true` if the account must be connected again.
    fn is_lost(&self) -> bool {
        matches!(self, Self::Account(account) if account.standing == AccountStanding::Reconnect)
    }

    pub(crate) fn id(&self) -> Arc<str> {
        match self {
            Self::Account(account) => Arc::clone(&account.id),
            Self::Configured(_) => OF_THE_FILE.into(),
        }
    }
}

impl Exchanger for Accounts {
    fn knows(&self, provider: &str) -> bool {
        self.configured.knows(provider) || self.known.load().has(provider)
    }

    fn credential<'a>(
        &'a self,
        provider: &'a str,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(self.credential_for(provider, context))
    }

    fn renewed<'a>(
        &'a self,
        provider: &'a str,
        refused: &'a Credential,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(self.credential_after(provider, refused, context))
    }

    fn accepted(&self, provider: &str, credential: &Credential) {
        self.saw_accepted(provider, credential);
    }
}

fn no_account(provider: &str, name: &str, known: &[String]) -> Error {
    let error = Error::new(Kind::Validation, format!("there is no account `{name}` with `{provider}`"));
    if known.is_empty() {
        return error.hint("leave `account` out to be told how to connect one");
    }
    error.hint(format!("there are: {}", known.join(", ")))
}

fn connect_first(provider: &str, link: &Link) -> Error {
    Error::new(Kind::AccountRequired, format!("no account with `{provider}` is connected"))
        .hint(format!("give this address to the user, who connects one there: {}", link.url.expose()))
}

/// Returns 128 random bits in hex.
fn id() -> Result<String, Error> {
    let bytes: [u8; 16] = random_bytes().map_err(|why| Error::new(Kind::Internal, why.to_string()))?;
    Ok(hex(&bytes))
}
