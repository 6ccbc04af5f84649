//! `hikite account`: manages service accounts from a terminal, whose user acts as the owner. Secrets are neither
//! printed nor accepted as arguments.

mod connect;

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use hikite_core::caller::Caller;
use hikite_core::credential::Exchanger;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;
use hikite_egress::Client;
use hikite_gateway::{
    Account, AccountSettings, AccountStanding, Accounts, DEFAULT_ACCOUNT, People, record_admin,
};
use hikite_store::Store;

use super::people::{at_terminal, table};
use super::{Common, note, print, server_login};
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::exchange::Configured;
use crate::house::of_the_file;
use crate::master::Places;
use crate::progress;
use crate::providers::providers;
use crate::verify::Prober;

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// List all accounts, without their secrets
    List(Plain),
    /// Connect an account in the browser, through the hikite that runs
    Connect(connect::Connect),
    /// Add an account with a token that you made at the service
    Add(Add),
    /// Ask the service whether it takes an account's key
    Verify(Verify),
    /// Take an account and its secrets away
    Remove(Named),
    /// Make an account the one that is meant where several could be
    Default(Named),
    /// Say which tools may be called with an account
    Mask(Mask),
    /// Let everybody use an account, or nobody else any more
    Share(Share),
}

#[derive(Debug, Args)]
pub(crate) struct Plain {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// With whom: `notion`, `github`, …
    provider: String,
    /// What it is called in calls
    #[arg(long, value_name = "NAME", default_value = DEFAULT_ACCOUNT)]
    name: String,
    /// The token is on the first line of stdin
    #[arg(long, required = true)]
    token_stdin: bool,
    /// Whose token it is, where the service wants both
    #[arg(long)]
    email: Option<String>,
    /// The host of the account's site, such as `example.atlassian.net`
    #[arg(long)]
    site: Option<String>,
    /// An address in place of the service's own
    #[arg(long, value_name = "URL")]
    api: Option<String>,
    #[command(flatten)]
    plain: Plain,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Its id, or what it is called
    account: String,
    /// With whom, where several are called the same
    #[arg(long)]
    provider: Option<String>,
    #[command(flatten)]
    plain: Plain,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Its id, or what it is called [default: all accounts]
    account: Option<String>,
    /// With whom, where several are called the same
    #[arg(long)]
    provider: Option<String>,
    #[command(flatten)]
    plain: Plain,
}

#[derive(Debug, Args)]
pub(crate) struct Mask {
    #[command(flatten)]
    named: Named,
    /// A tool that may be called: `module`, `module:tool`, a glob of either, `risk:read` [default: all]
    #[arg(long, value_name = "WHAT")]
    allow: Vec<String>,
    /// A tool that may not, whatever is allowed
    #[arg(long, value_name = "WHAT")]
    deny: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Share {
    #[command(flatten)]
    named: Named,
    /// Nobody else any more
    #[arg(long)]
    off: bool,
}

/// The accounts in the store, for commands that need no running gateway.
pub(super) struct Desk {
    config: Config,
    store: Store,
    pub(super) accounts: Arc<Accounts>,
    people: People,
    /// Caller for the person at the terminal.
    owner: Caller,
}

impl AccountCommand {
    pub(crate) async fn run(self, common: &Common) -> Result<ExitCode> {
        let command = match self {
            Self::Connect(connect) if server_login::is_server(&common.load()?, connect.to()) => {
                return server_login::connect(common, connect.to()).await;
            }
            Self::Connect(connect) => return connect.run(&common.load()?).await,
            other => other,
        };
        let desk = Desk::open(common).await?;
        let outcome = match command {
            Self::Verify(verify) => verify.run(&desk).await,
            command => command.act(&desk).await.map(|()| ExitCode::SUCCESS),
        };
        desk.close().await;
        outcome
    }

    async fn act(self, desk: &Desk) -> Result<()> {
        let owner = desk.owner.clone();
        match self {
            Self::List(plain) => list(&desk.named(desk.accounts.objects(&owner, true)), &plain),
            Self::Add(add) => {
                let form = add.form()?;
                let work = desk.accounts.add(&owner, &form);
                let account = desk.recorded("account.add", &add.provider, work).await?;
                tell(&account, &add.plain, &added(&account));
            }
            Self::Remove(named) => {
                let account = desk.find(&named)?;
                desk.recorded("account.remove", &account.id, desk.accounts.remove(&account)).await?;
                tell(&account, &named.plain, "is gone, and so are its secrets");
            }
            Self::Default(named) => {
                let form = Object::default().with("default", Raw::of(&true));
                desk.change(&named, form, "is the default").await?;
            }
            Self::Mask(mask) => {
                let mut permissions = Object::default();
                for (member, written) in [("allow", &mask.allow), ("deny", &mask.deny)] {
                    if !written.is_empty() {
                        permissions.set(member, Raw::of(written));
                    }
                }
                let form = Object::default().with("permissions", permissions);
                desk.change(&mask.named, form, "has another mask").await?;
            }
            Self::Share(share) => {
                let form = Object::default().with("shared", Raw::of(&!share.off));
                let what = if share.off { "is nobody else's any more" } else { "is everybody's to use" };
                desk.change(&share.named, form, what).await?;
            }
            Self::Connect(_) | Self::Verify(_) => {}
        }
        Ok(())
    }
}

impl Desk {
    pub(super) async fn open(common: &Common) -> Result<Self> {
        let config = common.load()?;
        if config.store.is_none() {
            crate::token::make_folder(&config.data)?;
        }
        let store = Store::open_keeping(&config.store_url(), &config.data).await?;
        let places = Places::of(&config);
        let safe = places.safe(&store).await?;
        let configured = Arc::<Configured>::default();
        configured.follow(&config.providers);
        let endpoint = Arc::new(Endpoint::new(Client::new()));
        let prober = Arc::new(Prober::of(&config));
        let accounts = Accounts::new(Arc::new(safe), endpoint, configured as Arc<dyn Exchanger>, prober);
        accounts.follow(AccountSettings {
            providers: providers(&config.providers),
            of_the_file: of_the_file(&config.providers),
            public_url: config.server.url(),
            ..AccountSettings::default()
        });
        accounts.read_store().await?;
        let people = People::new(store.clone());
        people.read_store().await?;
        Ok(Self { config, store, accounts, owner: people.owner(), people })
    }

    /// Adds user names and ids to the accounts.
    fn named(&self, accounts: Vec<Raw>) -> Vec<Raw> {
        let with_name = |account: Raw| {
            let Some(object) = account.object() else { return account };
            let user = object.text("subject").and_then(|subject| self.people.name_of(&subject));
            match user {
                Some((id, name)) => object.with("user", &*name).with("userId", &*id).raw(),
                None => account,
            }
        };
        accounts.into_iter().map(with_name).collect()
    }

    fn find(&self, named: &Named) -> Result<Arc<Account>> {
        Ok(self.accounts.find(&self.owner.subject, named.provider.as_deref(), &named.account)?)
    }

    async fn change(&self, named: &Named, form: Object, what: &str) -> Result<()> {
        let account = self.find(named)?;
        let work = self.accounts.change(&account, &form);
        let account = self.recorded("account.change", &account.id, work).await?;
        tell(&account, &named.plain, what);
        Ok(())
    }

    /// Returns the location of the vault's master key.
    pub(super) fn place(&self) -> String {
        Places::of(&self.config).to_string()
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

impl Verify {
    /// Verifies the accounts, and fails if any of them is refused.
    async fn run(self, desk: &Desk) -> Result<ExitCode> {
        let objects = match &self.account {
            Some(account) if account.starts_with("file:") => vec![desk.verify_filed(account).await?],
            Some(account) => {
                let owner = Caller::owner().subject;
                let found = desk.accounts.find(&owner, self.provider.as_deref(), account)?;
                vec![desk.verify(&found).await?]
            }
            None => desk.verify_all(self.provider.as_deref()).await?,
        };
        let is_refused = |object: &Raw| state_of(object) == "reconnect";
        let refused = objects.iter().filter(|object| is_refused(object)).count();
        list(&objects, &self.plain);
        Ok(ExitCode::from(u8::from(refused > 0)))
    }
}

fn state_of(object: &Raw) -> String {
    object.object().and_then(|object| object.text("state")).unwrap_or_default()
}

impl Desk {
    async fn verify(&self, account: &Arc<Account>) -> Result<Raw> {
        let work = self.accounts.verify(account);
        let work = self.recorded("account.verify", &account.id, work);
        Ok(progress::tell_if_long("asking the service", Box::pin(work)).await?.object())
    }

    async fn verify_filed(&self, id: &str) -> Result<Raw> {
        let work = self.recorded("account.verify", id, self.accounts.verify_filed(id));
        Ok(progress::tell_if_long("asking the service", work).await?)
    }

    async fn verify_all(&self, provider: Option<&str>) -> Result<Vec<Raw>> {
        let mut objects = Vec::new();
        for object in self.accounts.objects(&Caller::owner(), true).iter().filter_map(Raw::object) {
            let id = object.text("id").unwrap_or_default();
            if provider.is_some_and(|provider| object.text("provider").as_deref() != Some(provider)) {
                continue;
            }
            objects.push(if id.starts_with("file:") {
                self.verify_filed(&id).await?
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
    match (account.standing, &account.problem) {
        (AccountStanding::Connected, _) => "is connected".to_owned(),
        (_, Some(problem)) => {
            format!("is kept, but not verified yet: {problem}\nhint: try again with `hikite account verify`")
        }
        (_, None) => "is kept, but not verified: no module says how its key is proven".to_owned(),
    }
}

impl Add {
    fn form(&self) -> Result<Object> {
        let mut text = String::new();
        std::io::stdin().take(64 * 1024).read_to_string(&mut text).context("cannot read stdin")?;
        let token = Secret::hidden(text.lines().next().unwrap_or_default().trim());
        let mut form = Object::default()
            .with("provider", self.provider.as_str())
            .with("name", self.name.as_str())
            .with("token", token.expose());
        for (member, value) in [("email", &self.email), ("site", &self.site), ("api", &self.api)] {
            if let Some(value) = value {
                form.set(member, value.as_str());
            }
        }
        Ok(form)
    }
}

fn tell(account: &Account, plain: &Plain, what: &str) {
    if plain.json {
        print(&account.object().as_str());
    } else {
        note(&format!("the account `{}` with `{}` {what}", account.name, account.provider));
    }
}

/// Prints provider, name, state, user and id of each account.
fn list(accounts: &[Raw], plain: &Plain) {
    if plain.json {
        return print(&Raw::array(accounts).as_str());
    }
    let row = |account: &Object| {
        let text = |name: &str| account.text(name).unwrap_or_else(|| "-".into());
        let is = |name: &str| account.get(name).is_some_and(|flag| flag.as_str() == "true");
        let marks = [("default", "default"), ("shared", "shared"), ("managedByFile", "of the file")];
        let marks: Vec<&str> = marks.into_iter().filter(|(name, _)| is(name)).map(|(_, mark)| mark).collect();
        let whose = account.text("user").unwrap_or_else(|| text("subject"));
        vec![text("provider"), text("name"), text("state"), whose, text("id"), marks.join(", ")]
    };
    let rows: Vec<Vec<String>> =
        accounts.iter().filter_map(Raw::object).map(|account| row(&account)).collect();
    if !rows.is_empty() {
        print(&table(&rows));
    }
    for account in accounts.iter().filter_map(Raw::object) {
        if let Some(problem) = account.text("problem") {
            let name = account.text("name").unwrap_or_default();
            note(&format!("{name}: {problem}"));
        }
    }
    note(&format!("{} account{}", rows.len(), if rows.len() == 1 { "" } else { "s" }));
}
