//! `hikite client`: manages OAuth clients from a terminal. A new secret is printed once, to stdout.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use hikite_core::json::{Object, Raw};
use hikite_gateway::Identity;
use hikite_gateway::identity::ClientForm;

use super::people::{Desk, table};
use super::{Common, note, print};

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// List all clients
    List(List),
    /// Make a client, for programs that do not register themselves
    Add(Add),
    /// Let a client lead back to where it says
    Approve(Id),
    /// Take a client away, with everything users allowed it
    Remove(Id),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// What you will know it by
    name: String,
    /// Where it is answered; may be given several times
    #[arg(long = "redirect", value_name = "URI")]
    redirects: Vec<String>,
    /// It keeps a secret, which is printed this once
    #[arg(long)]
    confidential: bool,
    /// It may come for itself, with its secret alone
    #[arg(long)]
    client_credentials: bool,
    /// What it may do then: `read`, `call`, `admin`; several with commas [default: read,call]
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    scopes: Vec<String>,
    /// Print the client with its secret as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Id {
    /// Its id, as `hikite client list` shows it
    id: String,
}

impl ClientCommand {
    pub(crate) async fn run(self, common: &Common) -> Result<ExitCode> {
        let desk = Desk::open(common).await?;
        let outcome = match desk.identity().await {
            Ok(identity) => self.do_it(&desk, &identity).await,
            Err(error) => Err(error),
        };
        desk.close().await;
        outcome.map(|()| ExitCode::SUCCESS)
    }

    async fn do_it(self, desk: &Desk, identity: &Identity) -> Result<()> {
        match self {
            Self::List(list) => list.print(identity).await,
            Self::Add(add) => add.run(desk, identity).await,
            Self::Approve(Id { id }) => {
                desk.recorded("client.approve", &id, identity.approve_client(&id)).await?;
                note(&format!("the client `{id}` may be used"));
                Ok(())
            }
            Self::Remove(Id { id }) => {
                desk.recorded("client.delete", &id, identity.remove_client(&id)).await?;
                note(&format!("the client `{id}` is gone"));
                Ok(())
            }
        }
    }
}

impl List {
    async fn print(&self, identity: &Identity) -> Result<()> {
        let clients = identity.clients().await?;
        if self.json {
            let objects: Vec<Raw> = clients.iter().map(|client| client.object().raw()).collect();
            print(&Raw::array(&objects).as_str());
            return Ok(());
        }
        let mut rows = vec![["ID", "STATE", "ORIGIN", "NAME", "LEADS TO"].map(str::to_owned).to_vec()];
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

impl Add {
    async fn run(self, desk: &Desk, identity: &Identity) -> Result<()> {
        let mut form = Object::default()
            .with("name", self.name.as_str())
            .with("redirectUris", Raw::of(&self.redirects))
            .with("confidential", Raw::of(&self.confidential))
            .with("clientCredentials", Raw::of(&self.client_credentials));
        if !self.scopes.is_empty() {
            form.set("scopes", Raw::of(&self.scopes));
        }
        let form = ClientForm::read(&form)?;
        let (client, secret) = desk.recorded("client.create", &self.name, identity.add_client(form)).await?;
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
            note("its id, and its secret, which is not shown again");
        }
        Ok(())
    }
}
