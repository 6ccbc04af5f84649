//! `hikite client`: manages OAuth clients from a terminal. A new secret is printed once, to stdout.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use hikite_core::json::{Object, Raw};
use hikite_identity::{Identity, NewClient};

use super::store_session::{StoreSession, table};
use super::{GlobalArgs, note, print};

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// List all clients
    List(ClientListArgs),
    /// Create a client for a program that does not register itself
    Add(ClientAddArgs),
    /// Approve the redirect addresses of a client
    Approve(ClientIdArgs),
    /// Remove a client with its consents and grants
    Remove(ClientIdArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ClientListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClientAddArgs {
    /// A name to recognize it by
    name: String,
    /// A redirect address; can be repeated
    #[arg(long = "redirect", value_name = "URI")]
    redirects: Vec<String>,
    /// Give it a secret, which is printed only once
    #[arg(long)]
    confidential: bool,
    /// Allow the client credentials grant
    #[arg(long)]
    client_credentials: bool,
    /// The scopes for this grant: `read`, `call`, `admin`, separated by commas [default: read,call]
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    scopes: Vec<String>,
    /// Print the client with its secret as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClientIdArgs {
    /// The id from `hikite client list`
    id: String,
}

impl ClientCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let session = StoreSession::open(common).await?;
        let outcome = match session.identity().await {
            Ok(identity) => self.execute(&session, &identity).await,
            Err(error) => Err(error),
        };
        session.close().await;
        outcome.map(|()| ExitCode::SUCCESS)
    }

    async fn execute(self, session: &StoreSession, identity: &Identity) -> Result<()> {
        match self {
            Self::List(list) => list.print(identity).await,
            Self::Add(add) => add.run(session, identity).await,
            Self::Approve(ClientIdArgs { id }) => {
                session.recorded("client.approve", &id, identity.clients().approve(&id)).await?;
                note(&format!("The client `{id}` is approved."));
                Ok(())
            }
            Self::Remove(ClientIdArgs { id }) => {
                session.recorded("client.delete", &id, identity.clients().remove(&id)).await?;
                note(&format!("The client `{id}` is removed."));
                Ok(())
            }
        }
    }
}

impl ClientListArgs {
    async fn print(&self, identity: &Identity) -> Result<()> {
        let clients = identity.clients().all().await?;
        if self.json {
            let objects: Vec<Raw> = clients.iter().map(|client| client.object().raw()).collect();
            print(&Raw::array(&objects).as_str());
            return Ok(());
        }
        let mut rows = vec![["ID", "STATE", "ORIGIN", "NAME", "REDIRECTS TO"].map(str::to_owned).to_vec()];
        for client in clients {
            let object = client.object();
            let text = |member: &str| object.text(member).unwrap_or_default();
            let redirects = client.redirect_uris.join(" ");
            rows.push(vec![text("id"), text("status"), text("origin"), text("name"), redirects]);
        }
        print(&table(&rows));
        Ok(())
    }
}

impl ClientAddArgs {
    async fn run(self, session: &StoreSession, identity: &Identity) -> Result<()> {
        let mut form = Object::default()
            .with("name", self.name.as_str())
            .with("redirectUris", Raw::of(&self.redirects))
            .with("confidential", Raw::of(&self.confidential))
            .with("clientCredentials", Raw::of(&self.client_credentials));
        if !self.scopes.is_empty() {
            form.set("scopes", Raw::of(&self.scopes));
        }
        let form = NewClient::read(&form)?;
        let (client, secret) = session.recorded("client.create", &self.name, identity.clients().add(form)).await?;
        if self.json {
            let mut object = client.object();
            if let Some(secret) = &secret {
                object.set("secret", secret.expose());
            }
            print(&object.raw().as_str());
            return Ok(());
        }
        print(&client.id);
        if let Some(secret) = secret {
            print(secret.expose());
            note("The client's id and secret. The secret is not shown again.");
        }
        Ok(())
    }
}
