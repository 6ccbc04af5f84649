//! `hikite connect`: writes hikite into the config file of a client, with a login by OAuth where the client has it and
//! a token where not.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use hikite_config::{AuthSection, CLIENTS, ClientTransport, Config, McpClient, Problems};
use hikite_core::caller::OWNER;
use hikite_core::json::Object;
use hikite_core::secret::Secret;
use hikite_identity::UserAuthority;
use serde_json::{Value, json};

use super::connect_file::{ClientFile, Confirmation};
use super::store_session::StoreSession;
use super::{GlobalArgs, note, program};

#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// The client: claude-code, claude-desktop, cursor, vscode, codex, windsurf, zed or gemini-cli
    #[arg(value_parser = connectable)]
    client: &'static McpClient,
    #[command(flatten)]
    entry: EntryArgs,
    #[command(flatten)]
    confirmation: Confirmation,
    /// Restore the client's file as it was before, and revoke the token
    #[arg(long)]
    undo: bool,
}

/// Flags that choose the entry.
#[derive(Debug, Default, Args)]
pub(super) struct EntryArgs {
    /// Give the client a token even if it can log in by OAuth
    #[arg(long, conflicts_with = "stdio")]
    token: bool,
    /// Let the client start `hikite stdio` instead of using a running `hikite serve`
    #[arg(long)]
    stdio: bool,
    /// The address of hikite [default: from the config]
    #[arg(long, value_name = "URL", conflicts_with = "stdio")]
    url: Option<String>,
}

pub(super) fn connectable(word: &str) -> Result<&'static McpClient, String> {
    let known = CLIENTS.iter().filter(|client| client.can_connect());
    let names: Vec<&str> = known.clone().map(|client| client.name).collect();
    known.clone().find(|client| client.name == word).ok_or_else(|| format!("not one of: {}", names.join(", ")))
}

impl ConnectArgs {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let file = ClientFile::open(self.client)?;
        if self.undo {
            undo(&file, self.confirmation, common).await?;
            return Ok(ExitCode::SUCCESS);
        }
        let config = common.load()?;
        let connection = PlannedEntry::plan(file, &self.entry, &config)?;
        let session = if connection.needs_store() { Some(StoreSession::open(common).await?) } else { None };
        let outcome = connection.ask_and_apply(self.confirmation, session.as_ref()).await;
        if let Some(session) = session {
            session.close().await;
        }
        outcome.map(|()| ExitCode::SUCCESS)
    }
}

/// Restores the client's file and revokes the token of hikite's entry.
pub(super) async fn undo(file: &ClientFile, confirmation: Confirmation, common: &GlobalArgs) -> Result<()> {
    let entry = file.entry()?;
    if !file.restore(confirmation)? {
        return Ok(());
    }
    note(&format!("{}: `{}` is restored.", file.client.title, file.shown()));
    revoke_token_of(file.client, entry.as_ref(), common).await
}

/// Revokes the token that `hikite connect` wrote into an entry.
pub(super) async fn revoke_token_of(client: &McpClient, entry: Option<&Value>, common: &GlobalArgs) -> Result<()> {
    let Some(secret) = entry.and_then(|entry| client.token_of(entry)) else { return Ok(()) };
    let session = StoreSession::open(common).await?;
    let outcome = revoke(&session, client, secret).await;
    session.close().await;
    outcome
}

/// Revokes a token if it has the name that `hikite connect` gives.
async fn revoke(session: &StoreSession, client: &McpClient, secret: &str) -> Result<()> {
    let id = session.people.bearer(secret).and_then(|caller| caller.token);
    let token = session.people.tokens().all().into_iter().find(|token| Some(&token.id) == id.as_ref());
    if let Some(token) = token.filter(|token| token.name == client.name) {
        session.recorded("token.revoke", &token.id, session.people.tokens().revoke(&token.id)).await?;
        note(&format!("The token `{}` is revoked.", token.id));
    }
    Ok(())
}

/// A planned entry in the file of a client.
pub(super) struct PlannedEntry {
    pub(super) file: ClientFile,
    target: EntryTarget,
    /// Entry before the change.
    before: Option<Value>,
    /// Paths of the servers that hikite replaces.
    pub(super) removed: Vec<Vec<String>>,
}

enum EntryTarget {
    Program(Value),
    Url { address: String, token: bool },
}

/// Stands for the token in a diff: it is created after the confirmation.
const NEW_TOKEN: &str = "(a new token)";

impl PlannedEntry {
    pub(super) fn plan(file: ClientFile, entry: &EntryArgs, config: &Config) -> Result<Self> {
        let client = file.client;
        let target = match client.transport {
            ClientTransport::Http { oauth, .. } if !entry.stdio => {
                let address = match &entry.url {
                    Some(url) => url.trim_end_matches('/').trim_end_matches("/mcp").to_owned(),
                    None if config.server.listen.port() == 0 && config.server.public_url.is_none() => bail!(
                        "The config leaves the port to the system, so that the address is not known.\nhint: Set \
                         `server.listen` to a fixed port, or use `--url`."
                    ),
                    None => config.server.url(),
                };
                let is_open = config.auth == AuthSection::None;
                let token = !is_open && (entry.token || !oauth || config.oauth.is_none());
                EntryTarget::Url { address: format!("{address}/mcp"), token }
            }
            ClientTransport::Http { kind, .. } => EntryTarget::Program(program_entry(config, kind.is_some())?),
            ClientTransport::Stdio => EntryTarget::Program(program_entry(config, false)?),
            ClientTransport::ImportOnly => bail!("{} cannot be connected.", client.title),
        };
        let before = file.entry()?;
        Ok(Self { file, target, before, removed: Vec::new() })
    }

    /// Returns `true` if a token is created, revoked or checked.
    pub(super) fn needs_store(&self) -> bool {
        matches!(self.target, EntryTarget::Url { token: true, .. }) || self.token_before().is_some()
    }

    pub(super) async fn ask_and_apply(&self, confirmation: Confirmation, session: Option<&StoreSession>) -> Result<()> {
        let client = self.file.client;
        if self.is_done(session) {
            note(&format!("{} is connected already: `{}` is not changed.", client.title, self.file.shown()));
            return Ok(());
        }
        if confirmation.given(&[self.diff()?])? {
            self.apply(session).await?;
        }
        Ok(())
    }

    /// Returns `true` if the file needs no change.
    pub(super) fn is_done(&self, session: Option<&StoreSession>) -> bool {
        let valid = |secret: &&str| session.is_some_and(|session| session.people.bearer(secret).is_some());
        let token = match self.target {
            EntryTarget::Url { token: true, .. } => match self.token_before().filter(valid) {
                Some(token) => Some(token),
                None => return false,
            },
            _ => None,
        };
        self.removed.is_empty() && self.before == Some(self.entry(token))
    }

    /// Returns the change, without the token, which does not exist yet.
    pub(super) fn diff(&self) -> Result<String, Problems> {
        Ok(self.file.diff(&self.file.with(&self.entry(Some(NEW_TOKEN)), &self.removed)?))
    }

    /// Creates the token, writes the file and revokes the token before.
    pub(super) async fn apply(&self, session: Option<&StoreSession>) -> Result<()> {
        let client = self.file.client;
        let token = match (&self.target, session) {
            (EntryTarget::Url { token: true, .. }, Some(session)) => {
                let form = Object::default().with("name", client.name).with("user", OWNER);
                let work = session.people.tokens().create(&form, UserAuthority::Owner);
                Some(session.recorded("token.create", client.name, work).await?.1)
            }
            _ => None,
        };
        let entry = self.entry(token.as_ref().map(Secret::expose));
        let written = self
            .file
            .with(&entry, &self.removed)
            .map_err(Into::into)
            .and_then(|text| self.file.write(&text, token.is_some(), &self.removed));
        // The token that no file holds: the new one after a failure, else the one before.
        let unused = if written.is_err() { token.as_ref().map(Secret::expose) } else { self.token_before() };
        if let (Some(session), Some(unused)) = (session, unused) {
            revoke(session, client, unused).await?;
        }
        written?;
        note(&format!("{} is connected: wrote `{}`.", client.title, self.file.shown()));
        if self.file.text.is_some() {
            note(&format!("The file as it was: `{}`. Restore it with `--undo`.", self.file.backup().display()));
        }
        let logs_in = matches!(self.target, EntryTarget::Url { token: false, .. });
        let is_plain = !matches!(client.transport, ClientTransport::Http { oauth: true, .. });
        let next = if logs_in || is_plain { client.next.to_owned() } else { format!("Restart {}.", client.title) };
        note(&format!("next: {next}"));
        Ok(())
    }

    fn entry(&self, token: Option<&str>) -> Value {
        match &self.target {
            EntryTarget::Program(entry) => entry.clone(),
            EntryTarget::Url { address, token: needs_token } => {
                self.file.client.url_entry(address, token.filter(|_| *needs_token)).unwrap_or_default()
            }
        }
    }

    fn token_before(&self) -> Option<&str> {
        self.before.as_ref().and_then(|entry| self.file.client.token_of(entry))
    }
}

/// Returns the entry that starts hikite. Paths are absolute, because the client chooses the working directory.
fn program_entry(config: &Config, has_type: bool) -> Result<Value> {
    let absolute = |path: &std::path::Path| std::path::absolute(path).context("the path of a file is not valid");
    let mut arguments = vec!["stdio".to_owned()];
    if let Some(file) = &config.file {
        arguments.extend(["--config".to_owned(), absolute(file)?.display().to_string()]);
    }
    arguments.extend(["--data".to_owned(), absolute(&config.data)?.display().to_string()]);
    let mut entry = json!({});
    if has_type {
        entry["type"] = "stdio".into();
    }
    entry["command"] = json!(program()?);
    entry["args"] = json!(arguments);
    Ok(entry)
}
