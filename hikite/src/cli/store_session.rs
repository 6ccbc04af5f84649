//! Projects, tokens, users and clients in the store, for commands that need no running gateway. A hikite that runs on
//! the same store picks up the changes.

use std::sync::Arc;

use anyhow::Result;
use hikite_config::Config;
use hikite_core::error::Error;
use hikite_core::json::Raw;
use hikite_core::source::CallOrigin;
use hikite_gateway::record_admin;
use hikite_identity::{Identity, People, SecretStore};
use hikite_store::Store;
use serde_json::json;

use super::GlobalArgs;
use crate::master_key::MasterKeyLocations;
use crate::token;

pub(super) struct StoreSession {
    pub(super) config: Config,
    pub(super) people: People,
    store: Store,
}

impl StoreSession {
    pub(super) async fn open(common: &GlobalArgs) -> Result<Self> {
        let config = common.load()?;
        if config.store.is_none() {
            token::make_folder(&config.data)?;
        }
        let store = Store::open_with_backup(&config.store_url(), &config.data).await?;
        let people = People::new(store.clone());
        people.take(config.projects.clone());
        people.read_store().await?;
        Ok(Self { config, people, store })
    }

    /// Formats a user for the audit log, as name and id.
    pub(super) fn described(identity: &Identity, named: &str) -> String {
        match identity.users().get(named) {
            Ok(user) => format!("{} ({})", user.name, user.id),
            Err(_) => named.to_owned(),
        }
    }

    /// Opens the users and clients of the store.
    pub(super) async fn identity(&self) -> Result<Identity> {
        let keys = MasterKeyLocations::of(&self.config).open(&self.store).await?;
        let secret_store = SecretStore::new(self.store.clone(), keys);
        let identity = Identity::new(Arc::new(secret_store));
        identity.read_store().await?;
        Ok(identity)
    }

    /// Runs the work and records it in the audit log, with the owner as actor.
    pub(super) async fn recorded<T>(
        &self,
        action: &'static str,
        what: &str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if !self.config.audit.enabled {
            return work.await;
        }
        let command = match action.split('.').next() {
            Some("token") => "hikite token",
            Some("user") => "hikite user",
            Some("client") => "hikite client",
            _ => "hikite project",
        };
        let origin = at_terminal(command);
        record_admin(&self.store, (&self.people.owner(), &origin), action, what, work).await
    }

    pub(super) async fn close(self) {
        self.store.close().await;
    }
}

/// Returns the origin of a terminal command for the audit log.
pub(super) fn at_terminal(command: &str) -> CallOrigin {
    CallOrigin { client: Some(Raw::from(json!({ "name": command }))), ..CallOrigin::default() }
}

/// Formats rows as aligned columns.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or_default()).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
