//! Programs that the store defines. They are created at a terminal only, and start only where somebody approved them.

use anyhow::Result;
use hikite_config::{ServerConfig, TransportConfig};
use hikite_core::error::Error;
use serde_json::Value;

use super::upstream::read_any;
use super::{StoredUpstream, check_name};
use crate::program_approval::code_of;
use crate::runtime::Runtime;

/// A server of the store, for lists at a terminal.
#[derive(Clone, Debug)]
pub(crate) struct StoredServer {
    pub(crate) name: String,
    /// The checked server; `None` if it cannot be read.
    pub(crate) server: Option<ServerConfig>,
    /// Code that approves the program on this machine, where it is not approved.
    pub(crate) code: Option<String>,
}

/// Changes of the store's servers that only commands at a terminal make: requests of the network use `put_upstream`,
/// which refuses programs.
#[derive(Debug)]
pub(crate) struct TerminalServers<'a>(pub(crate) &'a Runtime);

impl TerminalServers<'_> {
    /// Stores a server, and approves it on this machine if it is a program.
    pub(crate) async fn put(&self, name: &str, entry: &Value) -> Result<()> {
        let _turn = self.0.change_lock.lock().await;
        check_name(name)?;
        self.0.is_free_for_upstream(name)?;
        let server = read_any(name, entry)?;
        if is_program(&server) {
            self.0.approvals.add(name, &server.definition_hash)?;
        }
        self.0.store_upstream(name, entry).await?;
        Ok(())
    }

    /// Approves the programs with this code on this machine and returns their names.
    pub(crate) async fn approve(&self, code: &str) -> Result<Vec<StoredServer>> {
        let stored = self.0.stored.lock().clone();
        let wanted = code.replace('-', "").to_uppercase();
        let mut approved = Vec::new();
        for saved in
            stored.upstreams.iter().filter(|saved| saved.code().is_some_and(|own| own.replace('-', "") == wanted))
        {
            let Some(server) = &saved.unapproved else { continue };
            self.0.approvals.add(&server.name, &server.definition_hash)?;
            // A changed version makes the hikite that runs on this store read the entry again.
            self.0.store.documents().change(&saved.entry).await.map_err(Error::from)?;
            approved.push(saved.described());
        }
        Ok(approved)
    }

    /// Removes a server from the store, with its approval on this machine.
    pub(crate) async fn remove(&self, name: &str) -> Result<()> {
        self.0.remove_upstream(name).await?;
        self.0.approvals.remove(name)
    }

    /// Returns the servers of the store.
    pub(crate) fn list(&self) -> Vec<StoredServer> {
        let stored = self.0.stored.lock().clone();
        stored.upstreams.iter().map(|saved| saved.described()).collect()
    }
}

impl Runtime {
    /// Returns `true` if an entry that was read before need not be read again.
    pub(super) fn is_current(&self, saved: &StoredUpstream) -> bool {
        let waits = |server: &ServerConfig| !self.approvals.allows(&server.name, &server.definition_hash);
        saved.server.is_some() || saved.unapproved.as_ref().is_some_and(waits)
    }

    /// Returns `true` unless the server is a program that is not approved on this machine; logs how to approve it.
    pub(super) fn is_approved(&self, server: &ServerConfig) -> bool {
        if !is_program(server) || self.approvals.allows(&server.name, &server.definition_hash) {
            return true;
        }
        tracing::warn!(
            "the program `{}` from the store is not approved on this machine: run `hikite server approve {}`",
            server.name,
            code_of(&server.definition_hash)
        );
        false
    }
}

impl StoredUpstream {
    fn code(&self) -> Option<String> {
        self.unapproved.as_ref().map(|server| code_of(&server.definition_hash))
    }

    fn described(&self) -> StoredServer {
        StoredServer {
            name: self.entry.id.clone(),
            server: self.server.clone().or_else(|| self.unapproved.clone()),
            code: self.code(),
        }
    }
}

fn is_program(server: &ServerConfig) -> bool {
    matches!(server.transport, TransportConfig::Stdio { .. })
}
