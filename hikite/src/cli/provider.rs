//! `hikite provider`: sets the OAuth app that hikite uses with a provider. The client secret is read from stdin and
//! never printed.

use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use hikite_api::{ProviderApp, ProviderObject};
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;

use super::account::{AccountSession, members};
use super::store_session::table;
use super::{GlobalArgs, note, print};

/// Maximum size of a client secret.
const SECRET_BYTES: u64 = 64 * 1024;

#[derive(Debug, Subcommand)]
pub(crate) enum ProviderCommand {
    /// List the providers and show which of them have an app
    List(ProviderOutputArgs),
    /// Set the OAuth app of a provider
    Set(ProviderSetArgs),
    /// Remove the OAuth app of a provider
    Remove(ProviderNameArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ProviderOutputArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProviderSetArgs {
    #[command(flatten)]
    named: ProviderNameArgs,
    /// The client id of your app at the provider
    #[arg(long, value_name = "ID")]
    client_id: String,
    /// Read the client secret from the first line of stdin
    #[arg(long)]
    client_secret_stdin: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProviderNameArgs {
    /// `notion`, `github`, … as shown by `hikite provider list`
    provider: String,
}

impl ProviderCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let session = AccountSession::open(common).await?;
        let outcome = self.execute(&session).await;
        session.close().await;
        outcome.map(|()| ExitCode::SUCCESS)
    }

    async fn execute(self, session: &AccountSession) -> Result<()> {
        match self {
            Self::List(plain) => list(&session.accounts.providers().objects(), &plain),
            Self::Set(set) => {
                let (name, form) = (&set.named.provider, set.form()?);
                session.recorded("provider.set", name, session.accounts.providers().set_app(name, &form)).await?;
                note(&format!("Accounts with `{name}` can now be connected: `hikite account connect {name}`"));
            }
            Self::Remove(ProviderNameArgs { provider }) => {
                let work = session.accounts.providers().remove_app(&provider);
                session.recorded("provider.remove", &provider, work).await?;
                note(&format!("The app of `{provider}` is removed."));
            }
        }
        Ok(())
    }
}

impl ProviderSetArgs {
    fn form(&self) -> Result<Object> {
        let mut app = ProviderApp { client_id: self.client_id.clone(), client_secret: None };
        if self.client_secret_stdin {
            let mut text = String::new();
            std::io::stdin().take(SECRET_BYTES).read_to_string(&mut text).context("cannot read stdin")?;
            let secret = Secret::hidden(text.lines().next().unwrap_or_default().trim());
            app.client_secret = Some(secret.expose().to_owned());
        }
        Ok(members(&app))
    }
}

/// Prints name, title, origin and client id of each provider.
fn list(providers: &[ProviderObject], plain: &ProviderOutputArgs) {
    if plain.json {
        return print(&Raw::of(providers).as_str());
    }
    let row = |provider: &ProviderObject| {
        let place = match (provider.connectable, provider.managed_by_file) {
            (false, _) => "no app",
            (true, true) => "from file",
            (true, false) => "from store",
        };
        let client_id = provider.client_id.clone().unwrap_or_else(|| "-".to_owned());
        vec![provider.name.clone(), provider.title.clone(), place.to_owned(), client_id]
    };
    let rows: Vec<Vec<String>> = providers.iter().map(row).collect();
    print(&table(&rows));
}
