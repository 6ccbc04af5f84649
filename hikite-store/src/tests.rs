//! Tests that run on both engines: a SQLite file and a real PostgreSQL database.

mod audit;
mod change;
mod control;
mod document;
mod failure;
mod list;
mod maintenance;
mod node;
mod old_node;
mod people;
mod rows;
mod search;
mod typed;
mod upgrade;
mod users;
mod vault;

use hikite_core::json::Raw;
use hikite_core::key::ToolKey;
use serde_json::json;
use tempfile::TempDir;

use crate::{RegisteredToolRow, Store, StoreUrl};

/// A store location that is not opened yet.
struct TestStore {
    url: StoreUrl,
    /// Deleted together with the location.
    folder: TempDir,
}

impl TestStore {
    fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { url: StoreUrl::file(folder.path().join("in here/hikite 日本 ?#%.db")), folder }
    }

    fn postgres() -> Self {
        let url = StoreUrl::parse(&hikite_testkit::postgres::database()).expect("an address");
        Self { url, folder: tempfile::tempdir().expect("a folder") }
    }

    fn both() -> Vec<Self> {
        if hikite_testkit::postgres::is_excluded() {
            return vec![Self::sqlite()];
        }
        vec![Self::sqlite(), Self::postgres()]
    }

    async fn open(&self) -> Store {
        Store::open(&self.url).await.expect("a store")
    }
}

fn key(tool: &str) -> ToolKey {
    ToolKey::new("m", tool)
}

fn tool(name: &str, registered_at: u64) -> RegisteredToolRow {
    RegisteredToolRow { key: key(name), form: Raw::of(&json!({ "name": name })), registered_at }
}
