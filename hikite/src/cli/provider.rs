//! `hikite provider`: sets the OAuth app that hikite uses with a provider. The client secret is read from stdin and
//! never printed.

use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;

use super::account::AccountSession;
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
            Self::List(plain) => list(&session.accounts.provider_objects(), &plain),
            Self::Set(set) => {
                let (name, form) = (&set.named.provider, set.form()?);
                session.recorded("provider.set", name, session.accounts.set_app(name, &form)).await?;
                note(&format!("Accounts with `{name}` can now be connected: `hikite account connect {name}`"));
            }
            Self::Remove(ProviderNameArgs { provider }) => {
                let work = session.accounts.remove_app(&provider);
                session.recorded("provider.remove", &provider, work).await?;
                note(&format!("The app of `{provider}` is removed."));
            }
        }
        Ok(())
    }
}

impl ProviderSetArgs {
    fn form(&self) -> Result<Object> {
        let mut form = Object::default().with("client_id", self.client_id.as_str());
        if self.client_secret_stdin {
            let mut text = String::new();
            std::io::stdin().take(SECRET_BYTES).read_to_string(&mut text).context("cannot read stdin")?;
            let secret = Secret::hidden(text.lines().next().unwrap_or_default().trim());
            form.set("client_secret", secret.expose());
        }
        Ok(form)
    }
}

/// Prints name, title, origin and client id of each provider.
fn list(providers: &[Raw], plain: &ProviderOutputArgs) {
    if plain.json {
        return print(&Raw::array(providers).as_str());
    }
    let row = |provider: &Object| {
        let text = |name: &str| provider.text(name).unwrap_or_else(|| "-".into());
        let is = |name: &str| provider.get(name).is_some_and(|flag| flag.as_str() == "true");
        let place = match (is("connectable"), is("managedByFile")) {
            (false, _) => "no app",
            (true, true) => "from file",
            (true, false) => "from store",
        };
        vec![text("name"), text("title"), place.to_owned(), text("clientId")]
    };
    let rows: Vec<Vec<String>> = providers.iter().filter_map(Raw::object).map(|object| row(&object)).collect();
    print(&table(&rows));
}
