//! `hikite account`: manages service accounts from a terminal, whose user acts as the owner. Secrets are neither
//! printed nor accepted as arguments.

mod connect;

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use hikite_api as api;
use hikite_config::{Config, providers};
use hikite_core::caller::Caller;
use hikite_core::credential::CredentialProvider;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;
use hikite_egress::EgressClient;
use hikite_gateway::{Account, AccountSettings, AccountStatus, AccountStore, DEFAULT_ACCOUNT, record_admin};
use hikite_identity::People;
use hikite_store::Store;

pub(crate) use self::connect::{AccountConnectArgs, open};
use super::store_session::{at_terminal, table};
use super::{GlobalArgs, note, print, server_login};
use crate::config_credential::ConfigCredentials;
use crate::master_key::MasterKeyLocations;
use crate::progress;
use crate::runtime::from_file;
use crate::token_endpoint::HttpTokenEndpoint;
use crate::verify::CredentialProber;

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// List all accounts, without their secrets
    List(AccountOutputArgs),
    /// Connect an account in the browser with the running hikite
    Connect(AccountConnectArgs),
    /// Add an account with a token from the service
    Add(AccountAddArgs),
    /// Verify an account's credential with the service
    Verify(AccountVerifyArgs),
    /// Remove an account and its secrets
    Remove(AccountNameArgs),
    /// Make an account the default for its provider
    Default(AccountNameArgs),
    /// Set which tools may be called with an account
    Mask(AccountMaskArgs),
    /// Share an account with all users, or stop sharing it
    Share(AccountShareArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AccountOutputArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AccountAddArgs {
    /// The provider: `notion`, `github`, …
    provider: String,
    /// The name of the account in calls
    #[arg(long, value_name = "NAME", default_value = DEFAULT_ACCOUNT)]
    name: String,
    /// Read the token from the first line of stdin
    #[arg(long, required = true)]
    token_stdin: bool,
    /// The e-mail address of the token's owner, if the service needs both
    #[arg(long)]
    email: Option<String>,
    /// The host of the account's site, such as `example.atlassian.net`
    #[arg(long)]
    site: Option<String>,
    /// Another address for the service
    #[arg(long, value_name = "URL")]
    api: Option<String>,
    #[command(flatten)]
    plain: AccountOutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AccountNameArgs {
    /// The id or name of the account
    account: String,
    /// The provider, if several accounts have this name
    #[arg(long)]
    provider: Option<String>,
    #[command(flatten)]
    plain: AccountOutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AccountVerifyArgs {
    /// The id or name of the account [default: all accounts]
    account: Option<String>,
    /// The provider, if several accounts have this name
    #[arg(long)]
    provider: Option<String>,
    #[command(flatten)]
    plain: AccountOutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AccountMaskArgs {
    #[command(flatten)]
    named: AccountNameArgs,
    /// An allowed tool: `module`, `module:tool`, a glob of either, `risk:read` [default: all]
    #[arg(long, value_name = "WHAT")]
    allow: Vec<String>,
    /// A denied tool; overrides `--allow`
    #[arg(long, value_name = "WHAT")]
    deny: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AccountShareArgs {
    #[command(flatten)]
    named: AccountNameArgs,
    /// Stop sharing it
    #[arg(long)]
    off: bool,
}

/// The accounts in the store, for commands that need no running gateway.
pub(super) struct AccountSession {
    config: Config,
    store: Store,
    pub(super) accounts: Arc<AccountStore>,
    people: People,
    /// Caller for the person at the terminal.
    owner: Caller,
}

/// Logs in to a server of the config file or the store, or connects an account with a provider.
pub(crate) async fn connect(args: AccountConnectArgs, common: &GlobalArgs) -> Result<ExitCode> {
    let config = common.load()?;
    if server_login::is_server(&config, args.to()).await? {
        return server_login::connect(&config, args.to(), args.opens_browser()).await;
    }
    args.run(&config).await
}

impl AccountCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let command = match self {
            Self::Connect(args) => return connect(args, common).await,
            other => other,
        };
        let session = AccountSession::open(common).await?;
        let outcome = match command {
            Self::Verify(verify) => verify.run(&session).await,
            command => command.execute(&session).await.map(|()| ExitCode::SUCCESS),
        };
        session.close().await;
        outcome
    }

    async fn execute(self, session: &AccountSession) -> Result<()> {
        let owner = session.owner.clone();
        match self {
            Self::List(plain) => list(&session.named(session.accounts.objects(&owner, true)), &plain),
            Self::Add(add) => {
                let form = add.form()?;
                let work = session.accounts.add(&owner, &form);
                let account = session.recorded("account.add", &add.provider, work).await?;
                tell(&account, &add.plain, &added(&account));
            }
            Self::Remove(named) => {
                let account = session.find(&named)?;
                session.recorded("account.remove", &account.id, session.accounts.remove(&account)).await?;
                tell(&account, &named.plain, "was removed with its secrets");
            }
            Self::Default(named) => {
                let changes = api::AccountChanges { is_default: Some(true), ..api::AccountChanges::default() };
                session.change(&named, &changes, "is now the default").await?;
            }
            Self::Mask(mask) => {
                let mut permissions = Object::default();
                for (member, written) in [("allow", &mask.allow), ("deny", &mask.deny)] {
                    if !written.is_empty() {
                        permissions.set(member, Raw::of(written));
                    }
                }
                let permissions = Some(permissions.raw());
                let changes = api::AccountChanges { permissions, ..api::AccountChanges::default() };
                session.change(&mask.named, &changes, "has a new mask").await?;
            }
            Self::Share(share) => {
                let changes = api::AccountChanges { shared: Some(!share.off), ..api::AccountChanges::default() };
                let what = if share.off { "is no longer shared" } else { "is shared with all users" };
                session.change(&share.named, &changes, what).await?;
            }
            Self::Connect(_) | Self::Verify(_) => {}
        }
        Ok(())
    }
}

impl AccountSession {
    pub(super) async fn open(common: &GlobalArgs) -> Result<Self> {
        let config = common.load()?;
        if config.store.is_none() {
            crate::token::make_folder(&config.data)?;
        }
        let store = Store::open_with_backup(&config.store_url(), &config.data).await?;
        let places = MasterKeyLocations::of(&config);
        let secret_store = places.secret_store(&store).await?;
        let configured = Arc::<ConfigCredentials>::default();
        configured.follow(&config.providers);
        let endpoint = Arc::new(HttpTokenEndpoint::new(EgressClient::new()));
        let prober = Arc::new(CredentialProber::of(&config));
        let accounts =
            AccountStore::new(Arc::new(secret_store), endpoint, configured as Arc<dyn CredentialProvider>, prober);
        accounts.follow(AccountSettings {
            providers: providers(&config.providers),
            from_file: from_file(&config.providers),
            public_url: config.server.url(),
            ..AccountSettings::default()
        });
        accounts.read_store().await?;
        let people = People::new(store.clone());
        people.read_store().await?;
        Ok(Self { config, store, accounts, owner: people.owner(), people })
    }

    /// Adds user names and ids to the accounts.
    fn named(&self, accounts: Vec<api::Account>) -> Vec<api::Account> {
        let with_name = |account: api::Account| account.with_user(|subject| self.people.name_of(subject));
        accounts.into_iter().map(with_name).collect()
    }

    fn find(&self, named: &AccountNameArgs) -> Result<Arc<Account>> {
        Ok(self.accounts.find(&self.owner.subject, named.provider.as_deref(), &named.account)?)
    }

    async fn change(&self, named: &AccountNameArgs, changes: &api::AccountChanges, what: &str) -> Result<()> {
        let account = self.find(named)?;
        let form = members(changes);
        let work = self.accounts.change(&account, &form);
        let account = self.recorded("account.change", &account.id, work).await?;
        tell(&account, &named.plain, what);
        Ok(())
    }

    /// Returns the location of the vault's master key.
    pub(super) fn place(&self) -> String {
        MasterKeyLocations::of(&self.config).to_string()
    }

    pub(super) async fn close(self) {
        self.accounts.stop().await;
        self.store.close().await;
    }

    pub(super) async fn recorded<T>(
        &self,
        action: &'static str,
        what: &str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if !self.config.audit.enabled {
            return work.await;
        }
        let is_account = action.starts_with("account.");
        let origin = at_terminal(if is_account { "hikite account" } else { "hikite provider" });
        record_admin(&self.store, (&self.owner, &origin), action, what, work).await
    }
}

impl AccountVerifyArgs {
    /// Verifies the accounts, and fails if any of them is refused.
    async fn run(self, session: &AccountSession) -> Result<ExitCode> {
        let objects = match &self.account {
            Some(account) if account.starts_with("file:") => vec![session.verify_configured(account).await?],
            Some(account) => {
                let owner = Caller::owner().subject;
                let found = session.accounts.find(&owner, self.provider.as_deref(), account)?;
                vec![session.verify(&found).await?]
            }
            None => session.verify_all(self.provider.as_deref()).await?,
        };
        list(&objects, &self.plain);
        let is_refused = objects.iter().any(|account| account.state == "reconnect");
        Ok(ExitCode::from(u8::from(is_refused)))
    }
}

impl AccountSession {
    async fn verify(&self, account: &Arc<Account>) -> Result<api::Account> {
        let work = self.accounts.credentials().verify(account);
        let work = self.recorded("account.verify", &account.id, work);
        Ok(progress::with_spinner("checking with the service", Box::pin(work)).await?.object())
    }

    async fn verify_configured(&self, id: &str) -> Result<api::Account> {
        let work = self.recorded("account.verify", id, self.accounts.credentials().verify_configured(id));
        Ok(progress::with_spinner("checking with the service", work).await?)
    }

    async fn verify_all(&self, provider: Option<&str>) -> Result<Vec<api::Account>> {
        let mut objects = Vec::new();
        for api::Account { id, provider: own, .. } in self.accounts.objects(&Caller::owner(), true) {
            if provider.is_some_and(|provider| own != provider) {
                continue;
            }
            objects.push(if id.starts_with("file:") {
                self.verify_configured(&id).await?
            } else {
                let account = self.accounts.find(&Caller::owner().subject, None, &id)?;
                self.verify(&account).await?
            });
        }
        Ok(objects)
    }
}

/// Describes the state of a new account, as reported by the provider.
fn added(account: &Account) -> String {
    match (account.status, &account.problem) {
        (AccountStatus::Connected, _) => "is connected".to_owned(),
        (_, Some(problem)) => {
            format!("is saved, but not verified yet: {problem}\nhint: Try again with `hikite account verify`")
        }
        (_, None) => "is saved, but not verified because no module defines how to verify it".to_owned(),
    }
}

impl AccountAddArgs {
    fn form(&self) -> Result<Object> {
        let mut text = String::new();
        std::io::stdin().take(64 * 1024).read_to_string(&mut text).context("cannot read stdin")?;
        let token = Secret::hidden(text.lines().next().unwrap_or_default().trim());
        let account = api::NewAccount {
            provider: self.provider.clone(),
            name: Some(self.name.clone()),
            token: token.expose().to_owned(),
            email: self.email.clone(),
            site: self.site.clone(),
            api: self.api.clone(),
        };
        Ok(members(&account))
    }
}

/// Returns the members of a request.
pub(super) fn members(request: &impl serde::Serialize) -> Object {
    Raw::of(request).object().unwrap_or_default()
}

fn tell(account: &Account, plain: &AccountOutputArgs, what: &str) {
    if plain.json {
        print(&Raw::of(&account.object()).as_str());
    } else {
        note(&format!("The account `{}` with `{}` {what}.", account.name, account.provider));
    }
}

/// Prints provider, name, state, user and id of each account.
fn list(accounts: &[api::Account], plain: &AccountOutputArgs) {
    if plain.json {
        return print(&Raw::of(accounts).as_str());
    }
    let row = |account: &api::Account| {
        let is_default = account.stored.as_ref().is_some_and(|stored| stored.is_default);
        let marks = [(is_default, "default"), (account.shared, "shared"), (account.managed_by_file, "from file")];
        let marks: Vec<&str> = marks.into_iter().filter_map(|(is_so, mark)| is_so.then_some(mark)).collect();
        let subject = || account.stored.as_ref().map_or_else(|| "-".to_owned(), |stored| stored.subject.clone());
        let (provider, name) = (account.provider.clone(), account.name.clone());
        let whose = account.user.clone().unwrap_or_else(subject);
        vec![provider, name, account.state.clone(), whose, account.id.clone(), marks.join(", ")]
    };
    let rows: Vec<Vec<String>> = accounts.iter().map(row).collect();
    if !rows.is_empty() {
        print(&table(&rows));
    }
    for account in accounts {
        if let Some(problem) = &account.problem {
            note(&format!("{}: {problem}", account.name));
        }
    }
    note(&format!("{} account{}", rows.len(), if rows.len() == 1 { "" } else { "s" }));
}
