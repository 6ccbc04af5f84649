//! The change log: what each revision touched, and when it is incomplete.

use hikite_core::json::Raw;
use serde_json::json;
use sqlx::Executor;

use super::{TestStore, key, rows, tool};
use crate::change::LOG_SINCE;
use crate::{ChangeSet, ProjectRow, RowChange, Store, TokenRow, UserRow};

fn project(name: &str) -> ProjectRow {
    ProjectRow { name: name.into(), form: Raw::of(&json!({ "members": ["alice"] })), created_at: 1 }
}

fn token(id: &str, project: &str, subject: &str) -> TokenRow {
    let form = Raw::of(&json!({ "name": "ci", "subject": subject, "scopes": ["read"] }));
    let hash = format!("{id:0>64}");
    TokenRow { id: id.into(), hash, project: project.into(), form, created_at: 1, expires_at: 0 }
}

fn user(name: &str) -> UserRow {
    UserRow {
        id: format!("usr_{name}"),
        name: name.into(),
        subject: format!("usr_{name}"),
        role: "member".into(),
        password: None,
        permissions: None,
        disabled: false,
        project: None,
        created_at: 1,
        version: 1,
    }
}

/// Returns the changes since a revision, as text.
async fn since(store: &Store, known: &mut i64) -> Vec<String> {
    let changes = store.changes().since(*known).await.expect("read");
    assert_eq!(changes.from, *known);
    *known = changes.to;
    let told = |RowChange { kind, id }: &RowChange| format!("{kind} {id}");
    let mut touched: Vec<String> = changes.touched.expect("known").iter().map(told).collect();
    touched.sort();
    touched
}

#[tokio::test]
async fn every_change_says_what_it_touched() {
    for place in TestStore::both() {
        let store = place.open().await;
        let mut known = store.changes().revision().await.expect("read");
        assert_eq!(since(&store, &mut known).await, [""; 0]);
        store.projects().put(&project("work")).await.expect("put");
        assert_eq!(since(&store, &mut known).await, ["project work", "tokens-of-project work"]);
        let form = Raw::of(&json!({ "members": ["bob"] }));
        store.projects().change("work", &project("").form, &form).await.expect("changed");
        store.tokens().put(&token("t1", "work", "usr_bob")).await.expect("put");
        assert_eq!(since(&store, &mut known).await, ["project work", "token t1"]);
        store.users().put(&user("bob"), None).await.expect("put");
        store.accounts().put(&rows::account("a1", "usr_bob")).await.expect("put");
        store.tools().set_switch(&key("x"), false).await.expect("switched");
        store.tools().put(&tool("y", 1), false).await.expect("registered");
        let all = ["account a1", "registered-tool ", "tool-switch ", "users usr_bob"];
        assert_eq!(since(&store, &mut known).await, all);
        // Removing a user also removes and logs what belonged to them.
        let row = store.users().get("bob").await.expect("read").expect("there");
        assert!(store.users().remove(&row, None, None).await.expect("removed"));
        let gone = ["account a1", "project work", "token t1", "users usr_bob"];
        assert_eq!(since(&store, &mut known).await, gone);
        assert!(!store.tokens().remove("t1").await.expect("gone"));
        assert_eq!(since(&store, &mut known).await, [""; 0], "nothing changed");
    }
}

#[tokio::test]
async fn a_change_by_a_node_of_the_version_before_makes_everything_be_read() {
    for place in TestStore::both() {
        let store = place.open().await;
        let known = store.changes().revision().await.expect("read");
        store.projects().put(&project("work")).await.expect("put");
        // A node of the previous version increments the revision without writing to the log.
        let raise = "UPDATE hikite SET value = value + 1 WHERE name = 'revision'";
        store.0.writer().execute(raise).await.expect("raised");
        store.projects().put(&project("home")).await.expect("put");
        let changes = store.changes().since(known).await.expect("read");
        assert_eq!(changes, ChangeSet { from: known, to: known + 3, touched: None });
        let later = store.changes().since(known + 2).await.expect("read");
        assert!(later.continue_from(known + 2) && !later.continue_from(known + 1), "{later:?}");
        assert_eq!(later.ids("project"), Some(vec!["home"]));
        for nowhere in [-1, known + 9] {
            let changes = store.changes().since(nowhere).await.expect("read");
            assert_eq!(changes.touched, None, "from {nowhere}");
        }
    }
}

#[tokio::test]
async fn the_log_comes_with_its_version_and_is_kept_short() {
    let place = TestStore::sqlite();
    let store = Store::open_at(&place.url, LOG_SINCE - 1, None).await.expect("a store");
    store.projects().put(&project("old")).await.expect("put without a log");
    assert_eq!(store.changes().since(0).await.expect("read").touched, None);
    store.close().await;
    let store = place.open().await;
    let first = store.changes().revision().await.expect("read");
    store.projects().put(&project("new")).await.expect("put");
    assert!(store.changes().since(first).await.expect("read").touched.is_some());
    let behind = "UPDATE hikite SET value = value + 4351 - value % 256 WHERE name = 'revision'";
    store.0.writer().execute(behind).await.expect("raised");
    store.projects().put(&project("newer")).await.expect("put");
    let left = sqlx::query("SELECT revision FROM change_log").fetch_all(store.0.reader()).await.expect("read");
    assert_eq!(left.len(), 2, "the last change alone, with its two rows");
}
