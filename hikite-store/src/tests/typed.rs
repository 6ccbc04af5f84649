//! The typed tables, and the table of the first release that mirrors them.

use serde_json::{Value, json};
use sqlx::Executor;

use super::old_node::{OldNode, OldRow};
use super::users::user;
use super::{TestStore, rows};
use crate::{GrantRow, OwnedRecord, OwnerCheck, PinRow, Record, Records, Store};

/// Puts, changes and takes a row, as one node alone.
async fn go_through<R: Record + PartialEq + std::fmt::Debug>(table: Records<'_, R>, row: R, next: R) {
    assert!(table.put(&row).await.expect("put"));
    assert!(!table.put(&row).await.expect("refused"), "the id is taken");
    assert_eq!(table.get(row.id(), 9).await.expect("read"), Some(row.clone()));
    assert_eq!(table.get(&format!("{}\0", row.id()), 9).await.expect("read"), None);
    assert_eq!(table.all(9).await.expect("read"), std::slice::from_ref(&row));
    assert!(table.change(&next).await.expect("changed"));
    assert!(!table.change(&row).await.expect("refused"), "it has another version");
    let found = table.get(row.id(), 9).await.expect("read").expect("there");
    assert!(found != row && found.version() == 2, "{found:?}");
    assert_eq!(table.take(row.id(), 9).await.expect("taken"), Some(found));
    assert_eq!(table.take(row.id(), 9).await.expect("gone"), None);
}

#[tokio::test]
async fn a_row_of_each_table_is_put_changed_and_taken() {
    for place in TestStore::both() {
        let store = place.open().await;
        assert!(store.users().put(&user("1", "alice"), None).await.expect("put"));
        let mut login = rows::login("l", "usr_1");
        login.expires_at += 1;
        go_through(store.logins(), rows::login("l", "usr_1"), login).await;
        let mut passkey = rows::passkey("k", "usr_1");
        passkey.counter = 0;
        go_through(store.passkeys(), rows::passkey("k", "usr_1"), passkey).await;
        let mut client = rows::client("c");
        (client.secret_hash, client.grant_id) = (None, None);
        go_through(store.clients(), rows::client("c"), client).await;
        let mut consent = rows::consent("n", "usr_1");
        consent.scopes.clear();
        go_through(store.consents(), rows::consent("n", "usr_1"), consent).await;
        let mut grant = rows::grant("g", "usr_1");
        grant.last = None;
        go_through(store.grants(), rows::grant("g", "usr_1"), grant).await;
        let own = GrantRow { subject: None, ..rows::grant("own", "") };
        go_through(store.grants(), own.clone(), GrantRow { generation: 4, ..own }).await;
        let mut account = rows::account("a", "anybody");
        account.details.clear();
        go_through(store.accounts(), rows::account("a", "anybody"), account).await;
        let (pin, _) = rows::pin("t");
        go_through(store.pins(), pin.clone(), PinRow { blocked: true, ..pin }).await;
        assert_eq!(store.check().await.expect("checked"), [""; 0]);
    }
}

#[tokio::test]
async fn a_row_expires_or_belongs_to_a_user() {
    for place in TestStore::both() {
        let store = place.open().await;
        assert!(store.users().put(&user("1", "alice"), None).await.expect("put"));
        let mut late = rows::login("late", "usr_1");
        late.expires_at = 10;
        assert!(store.logins().put_owned(&late, OwnerCheck::User).await.expect("put"));
        assert!(store.logins().get("late", 9).await.expect("read").is_some());
        assert_eq!(store.logins().get("late", 10).await.expect("read"), None);
        assert_eq!(store.logins().take("late", 10).await.expect("read"), None);
        assert_eq!(store.delete_expired(10).await.expect("swept"), 1);
        assert!(!store.grants().put_owned(&rows::grant("g", "nobody"), OwnerCheck::User).await.expect("refused"));
        assert!(store.grants().put(&rows::grant("g", "nobody")).await.is_err(), "no such user");
        for (id, client) in [("g1", "c"), ("g2", "c"), ("g3", "d")] {
            let grant = GrantRow { client: client.into(), ..rows::grant(id, "usr_1") };
            assert!(store.grants().put(&grant).await.expect("put"));
        }
        assert!(store.consents().put(&rows::consent("n", "usr_1")).await.expect("put"));
        assert_eq!(store.consents().remove_of_client("c").await.expect("removed"), 1);
        assert_eq!(store.grants().remove_of_client("d", Some("usr_2")).await.expect("removed"), [""; 0]);
        let mut gone = store.grants().remove_of_client("c", Some("usr_1")).await.expect("removed");
        gone.sort();
        assert_eq!(gone, ["g1", "g2"]);
        assert_eq!(store.grants().remove_of_client("d", None).await.expect("removed"), ["g3"]);
        let pins = [rows::pin("a"), rows::pin("b"), rows::pin("a")];
        assert_eq!(store.pins().put_new(&pins).await.expect("put"), 4);
        assert_eq!(store.pins().put_new(&pins).await.expect("put"), 0);
    }
}

/// Members as the first release wrote them.
fn old_forms() -> Vec<((&'static str, &'static str), &'static str, Value)> {
    let last = json!({ "access": "a", "scopes": ["read"], "expires_at": 8, "project": null });
    vec![
        (("login", "l"), "usr_1", json!({})),
        (
            ("passkey", "k"),
            "usr_1",
            json!({ "id": "k", "name": "laptop \"1\"", "public_key": "pQEC", "counter": 4_294_967_295_u32 }),
        ),
        (
            ("client", "c"),
            "",
            json!({
                "name": "日本 'q'", "origin": "registered", "redirect_uris": ["http://127.0.0.1/a?b=\"c\"", "x:/y"],
                "approved": ["https://x.example"], "secret": "h", "grant": "grt_1", "looked_up_at": 9,
                "from": "203.0.113.7"
            }),
        ),
        (("consent", "n"), "usr_1", json!({ "client": "c", "scopes": ["read", "call"], "project": "work" })),
        (
            ("grant", "g"),
            "usr_1",
            json!({
                "own": false, "client": "c", "scopes": ["read", "call"], "project": "work", "generation": 3,
                "rotated_at": 7, "key_id": "k", "key": "s", "last": last
            }),
        ),
        (
            ("account", "a"),
            "usr_1",
            json!({
                "provider": "p", "name": "work", "state": "reconnect", "problem": "gone", "verified_at": 6,
                "default": true, "shared": false, "scopes": ["a b"], "email": "a@b.example", "details": { "site": "x" },
                "api": null, "expires_at": 12, "last_refresh": 11, "permissions": { "deny": ["m:t"] }
            }),
        ),
        (("pin", "m:t"), "m", json!({ "hash": "hash of t", "blocked": false, "at": 4 })),
        (("definition", "hash of t"), "", json!({ "name": "t" })),
    ]
}

async fn put_all(store: &Store) {
    assert!(store.users().put(&user("1", "alice"), None).await.expect("put"));
    assert!(store.logins().put(&rows::login("l", "usr_1")).await.expect("put"));
    assert!(store.passkeys().put(&rows::passkey("k", "usr_1")).await.expect("put"));
    assert!(store.clients().put(&rows::client("c")).await.expect("put"));
    assert!(store.consents().put(&rows::consent("n", "usr_1")).await.expect("put"));
    assert!(store.grants().put(&rows::grant("g", "usr_1")).await.expect("put"));
    assert!(store.accounts().put(&rows::account("a", "usr_1")).await.expect("put"));
    assert_eq!(store.pins().put_new(&[rows::pin("t")]).await.expect("put"), 2);
}

#[tokio::test]
async fn a_node_of_the_first_release_sees_each_row_and_its_changes() {
    for place in TestStore::both() {
        let store = place.open().await;
        put_all(&store).await;
        let old = OldNode(&store);
        for (key, owner, form) in old_forms() {
            let row = old.get(key).await.expect("mirrored");
            assert_eq!((row.owner.as_str(), row.form, row.version), (owner, form, 1), "{key:?}");
        }
        let next = GrantRow { generation: 4, last: None, expires_at: 77, ..rows::grant("g", "usr_1") };
        assert!(store.grants().change(&next).await.expect("changed"));
        let OldRow { form, version, expires_at, .. } = old.get(("grant", "g")).await.expect("mirrored");
        assert_eq!((&form["generation"], &form["last"], version, expires_at), (&json!(4), &Value::Null, 2, 77));
        assert!(store.users().remove(&user("1", "alice"), None, None).await.expect("removed"));
        for key in [("login", "l"), ("passkey", "k"), ("consent", "n"), ("grant", "g"), ("account", "a")] {
            assert_eq!(old.get(key).await, None, "{key:?}");
        }
    }
}

#[tokio::test]
async fn rows_of_a_node_of_the_first_release_are_read_as_ours() {
    for place in TestStore::both() {
        let store = place.open().await;
        let old = OldNode(&store);
        for (key, owner, form) in old_forms() {
            assert!(old.put(key, owner, &form.to_string()).await);
        }
        assert_eq!(store.logins().all(9).await.expect("read"), [], "its user has not arrived");
        assert!(store.users().put(&user("1", "alice"), None).await.expect("put"));
        let created = |row: GrantRow| GrantRow { created_at: 7, expires_at: 0, ..row };
        assert_eq!(store.grants().all(9).await.expect("read"), [created(rows::grant("g", "usr_1"))]);
        assert_eq!(store.passkeys().all(9).await.expect("read").len(), 1);
        assert_eq!(store.consents().all(9).await.expect("read")[0].scopes, ["read", "call"]);
        assert_eq!(store.clients().get("c", 9).await.expect("read").expect("there").approved, ["https://x.example"]);
        let account = store.accounts().get("a", 9).await.expect("read").expect("there");
        assert_eq!(crate::AccountRow { created_at: 5, ..account }, rows::account("a", "usr_1"));
        assert_eq!(store.pins().get("m:t", 9).await.expect("read"), Some(PinRow { created_at: 7, ..rows::pin("t").0 }));
        assert!(store.documents().get("definition", "hash of t", 9).await.expect("read").is_some());
        let own = json!({ "client": "c", "scopes": ["read"], "own": true, "generation": 0, "key_id": "", "key": "" });
        assert!(old.put(("grant", "own"), "client:c", &own.to_string()).await);
        let found = store.grants().get("own", 9).await.expect("read").expect("there");
        assert_eq!((found.subject(), found.subject.is_none()), ("", true));
        // A refresh there ends ours, and a revocation there is one here.
        let mut form = old.get(("grant", "g")).await.expect("there").form;
        form["generation"] = json!(9);
        assert!(old.change(("grant", "g"), 1, &form).await);
        let lost = store.grants().change(&created(rows::grant("g", "usr_1"))).await.expect("refused");
        assert!(!lost, "it has another version by now");
        assert_eq!(store.grants().get("g", 9).await.expect("read").expect("there").generation, 9);
        for (key, ..) in old_forms() {
            assert!(old.take(key).await, "{key:?}");
        }
        assert_eq!(store.grants().all(9).await.expect("read").len(), 1, "that of the client");
        assert_eq!(store.logins().all(9).await.expect("read"), []);
        assert_eq!(store.accounts().all(9).await.expect("read"), []);
        assert_eq!(store.pins().all(9).await.expect("read"), []);
        assert_eq!(store.documents().get("definition", "hash of t", 9).await.expect("read"), None);
    }
}

#[tokio::test]
async fn what_is_no_json_or_spells_nul_stops_neither_side() {
    for place in TestStore::both() {
        let store = place.open().await;
        let old = OldNode(&store);
        assert!(old.put(("pin", "m:t"), "m", "garbage").await);
        let pin = store.pins().get("m:t", 9).await.expect("read").expect("there");
        assert!(pin.blocked && pin.hash.is_empty(), "{pin:?}");
        assert!(old.put(("client", "x"), "", "garbage").await);
        let form = r#"{"name":"a\u0000b","redirect_uris":[],"origin":"registered","secret":null,"approved":[]}"#;
        assert!(old.put(("client", "y"), "", form).await);
        let clients = store.clients().all(9).await.expect("read");
        assert_eq!(clients.iter().map(|client| client.name.as_str()).collect::<Vec<_>>(), ["a\u{fffd}b"]);
    }
}

/// Nodes of both versions rotate one grant at the same time. Each change has one winner, and nobody waits forever.
#[tokio::test]
async fn nodes_of_both_versions_change_one_row_in_turn() {
    for place in TestStore::both() {
        let store = place.open().await;
        put_all(&store).await;
        for version in 1..20_u64 {
            let old = OldNode(&store);
            let form = old.get(("grant", "g")).await.expect("there").form;
            let ours = GrantRow { version, generation: 100 + version, ..rows::grant("g", "usr_1") };
            let (theirs, ours) = futures_util::future::join(
                old.change(("grant", "g"), i64::try_from(version).expect("small"), &form),
                async { store.grants().change(&ours).await.expect("changed or not") },
            )
            .await;
            assert_ne!(theirs, ours, "one of them, at version {version}");
            let found = store.grants().get("g", 9).await.expect("read").expect("there");
            let row = old.get(("grant", "g")).await.expect("there");
            assert_eq!((found.version, &row.form["generation"]), (version + 1, &json!(found.generation)));
        }
    }
}

#[tokio::test]
async fn typed_rows_are_copied_with_the_store() {
    for (from, to) in TestStore::both().into_iter().zip(TestStore::both().into_iter().rev()) {
        let (from, to) = (from.open().await, to.open().await);
        put_all(&from).await;
        assert!(from.copy_to(&to).await.expect("copied") > 0);
        for store in [&from, &to] {
            assert_eq!(store.grants().all(9).await.expect("read"), [rows::grant("g", "usr_1")]);
            assert_eq!(store.accounts().all(9).await.expect("read"), [rows::account("a", "usr_1")]);
            assert_eq!(store.clients().all(9).await.expect("read"), [rows::client("c")]);
            assert_eq!(store.users().adopt().await.expect("looked"), 0, "users and their mirror are the same");
            for (key, ..) in old_forms() {
                assert!(OldNode(store).get(key).await.is_some(), "{key:?}");
            }
        }
        assert!(from.logins().take("l", 9).await.expect("taken").is_some());
        from.0.writer().execute("DELETE FROM drawer WHERE kind = 'passkey'").await.expect("deleted");
        from.0.copy_to(&to.0, true).await.expect("replaced");
        assert_eq!(to.logins().all(9).await.expect("read"), []);
        assert_eq!(to.passkeys().all(9).await.expect("read"), []);
        assert_eq!(to.check().await.expect("checked"), [""; 0]);
    }
}
