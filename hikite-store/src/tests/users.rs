//! Users, their mirror for the previous version, and what is removed with them.

use std::path::{Path, PathBuf};

use hikite_core::json::Raw;
use serde_json::{Value, json};

use super::old_node::OldNode;
use super::{TestStore, rows};
use crate::{
    AccessKind, DocumentRow, GrantRow, OwnerCheck, ProjectRow, Store, StoreUrl, TokenRow, UserRow, VaultKeyRow,
    VaultSecretRow,
};

/// The version of the first release, which has no table of users.
const BEFORE: i64 = 5;

pub(super) fn user(id: &str, name: &str) -> UserRow {
    UserRow {
        id: format!("usr_{id}"),
        name: name.into(),
        subject: format!("usr_{id}"),
        role: "member".into(),
        password: Some("a hash".into()),
        permissions: Some(Raw::of(&json!({ "deny": ["m:t"] }))),
        disabled: false,
        project: None,
        created_at: 5,
        version: 1,
    }
}

fn entry(kind: &'static str, id: &str, owner: &str, form: &Value) -> DocumentRow {
    DocumentRow {
        kind,
        id: id.into(),
        owner: owner.into(),
        document: Raw::of(form),
        version: 1,
        created_at: 7,
        expires_at: 0,
    }
}

async fn names(store: &Store) -> Vec<String> {
    store.users().all().await.expect("read").into_iter().map(|user| user.name).collect()
}

/// Returns a user as the previous version sees it.
async fn mirror(store: &Store, name: &str) -> Option<(String, Value, i64)> {
    OldNode(store).get(("user", name)).await.map(|row| (row.owner, row.form, row.version))
}

#[tokio::test]
async fn what_is_changed_is_mirrored_where_the_version_before_looks() {
    for place in TestStore::both() {
        let store = place.open().await;
        assert!(store.users().put(&user("1", "alice"), None).await.expect("put"));
        for taken in [user("1", "bob"), user("2", "alice"), UserRow { subject: "usr_1".into(), ..user("3", "c") }] {
            assert!(!store.users().put(&taken, None).await.expect("refused"), "{taken:?}");
        }
        let (owner, form, version) = mirror(&store, "alice").await.expect("mirrored");
        assert_eq!((owner.as_str(), version), ("usr_1", 1));
        assert_eq!(
            form,
            json!({ "role": "member", "password": "a hash", "permissions": { "deny": ["m:t"] }, "disabled": false })
        );
        store
            .projects()
            .put(&ProjectRow { name: "p".into(), form: Raw::of(&json!({ "members": ["alice", "x"] })), created_at: 1 })
            .await
            .expect("put");
        let renamed = UserRow { name: "alicia".into(), disabled: true, ..user("1", "alice") };
        assert!(store.users().change(&[(renamed.clone(), "alice".into())]).await.expect("changed"));
        assert!(!store.users().change(&[(renamed, "alice".into())]).await.expect("of another version"));
        assert_eq!(mirror(&store, "alice").await, None);
        assert_eq!(
            mirror(&store, "alicia").await.map(|(_, form, version)| (form["disabled"].clone(), version)),
            Some((json!(true), 2))
        );
        assert_eq!(store.projects().all().await.expect("read")[0].form.value()["members"], json!(["alicia", "x"]));
        assert_eq!(store.users().adopt().await.expect("looked"), 0, "both say the same");
        assert!(store.users().put(&user("2", "bob"), None).await.expect("put"));
        let found = store.users().get("usr_1").await.expect("read").expect("there");
        let taken = UserRow { name: "bob".into(), ..found };
        assert!(!store.users().change(&[(taken, "alicia".into())]).await.expect("the name is taken"));
        assert_eq!(names(&store).await, ["alicia", "bob"]);
    }
}

#[tokio::test]
async fn what_a_node_of_the_version_before_does_is_taken_in() {
    for place in TestStore::both() {
        let store = place.open().await;
        let form = json!({ "role": "member", "password": null, "permissions": null });
        let old = OldNode(&store);
        assert!(old.put(("user", "alice"), "alice", &form.to_string()).await);
        assert_eq!(store.users().adopt().await.expect("adopted"), 1);
        let alice = store.users().get("alice").await.expect("read").expect("there");
        assert!(alice.id.starts_with("usr_") && alice.subject == "alice", "{alice:?}");
        let changed = json!({ "role": "admin", "password": "h", "permissions": { "deny": ["x"] }, "disabled": true });
        assert!(old.change(("user", "alice"), 1, &changed).await);
        let lost = UserRow { role: "owner".into(), ..alice.clone() };
        assert!(!store.users().change(&[(lost, "alice".into())]).await.expect("the other was first"));
        assert_eq!(store.users().adopt().await.expect("adopted"), 1);
        let now = store.users().get(&alice.id).await.expect("read").expect("there");
        assert_eq!((now.role.as_str(), now.password.as_deref(), now.disabled), ("admin", Some("h"), true));
        // Renamed here, and another user with the old name there: not the same person.
        assert!(
            store.users().change(&[(UserRow { name: "alicia".into(), ..now }, "alice".into())]).await.expect("changed")
        );
        assert!(old.put(("user", "alice"), "alice", &form.to_string()).await);
        assert_eq!(store.users().adopt().await.expect("adopted"), 1);
        let second = store.users().get("alice").await.expect("read").expect("there");
        assert_ne!(second.subject, "alice");
        assert_eq!(mirror(&store, "alice").await.map(|(owner, _, _)| owner), Some(second.subject));
        let token = TokenRow {
            id: "tok_1".into(),
            hash: "0".repeat(64),
            project: String::new(),
            form: Raw::of(&json!({ "subject": "alice", "name": "t", "scopes": ["read"] })),
            created_at: 1,
            expires_at: 0,
        };
        assert!(store.tokens().put(&token).await.expect("put"));
        assert!(old.take(("user", "alicia")).await);
        assert_eq!(store.users().adopt().await.expect("adopted"), 1);
        assert_eq!(names(&store).await, ["alice"]);
        assert_eq!(store.tokens().all().await.expect("read"), [], "and the token with its user");
        assert_eq!(store.check().await.expect("checked"), [""; 0]);
    }
}

#[tokio::test]
async fn a_user_leaves_with_everything_or_hands_the_accounts_on() {
    for (place, has_heir) in
        TestStore::both().into_iter().zip([false, true]).chain(TestStore::both().into_iter().zip([true, false]))
    {
        let store = place.open().await;
        let (alice, bob) = (user("1", "alice"), user("2", "bob"));
        for one in [&alice, &bob] {
            assert!(store.users().put(one, None).await.expect("put"));
            let account = format!("of-{}", one.name);
            assert!(store.accounts().put(&rows::account(&account, &one.subject)).await.expect("put"));
            assert!(store.logins().put(&rows::login(&account, &one.subject)).await.expect("put"));
            assert!(store.documents().put(&entry("code", &account, &one.subject, &json!({}))).await.expect("put"));
            let key = VaultKeyRow { account: account.clone(), key_id: "k".into(), sealed: "s".into() };
            store.vault().put_key(&key).await.expect("put");
            let secret =
                VaultSecretRow { account, provider: "p".into(), field: "f".into(), version: 1, sealed: "s".into() };
            store.vault().put_secret(&secret).await.expect("put");
        }
        let members = Raw::of(&json!({ "members": ["alice"] }));
        store.projects().put(&ProjectRow { name: "p".into(), form: members, created_at: 1 }).await.expect("put");
        let heir = has_heir.then_some(&bob);
        let removal = entry("removed", "rmv_1", "", &json!({}));
        assert!(store.users().remove(&alice, heir, Some(&removal)).await.expect("removed"));
        assert!(!store.users().remove(&alice, heir, None).await.expect("gone"));
        let accounts = store.accounts().all(9).await.expect("read");
        let facts: Vec<(String, String, String, bool)> =
            accounts.into_iter().map(|row| (row.id, row.subject, row.name, row.is_default)).collect();
        let of_bob = ("of-bob".to_owned(), "usr_2".to_owned(), "work".to_owned(), true);
        let (expected, keys, member) = if has_heir {
            (vec![("of-alice".into(), "usr_2".into(), "work-2".into(), false), of_bob], 2, "bob")
        } else {
            (vec![of_bob], 1, "usr_1")
        };
        assert_eq!(facts, expected);
        assert_eq!(store.vault().keys().await.expect("read").len(), keys);
        assert_eq!(store.vault().secrets().await.expect("read").len(), keys);
        assert_eq!(store.logins().all(9).await.expect("read").len(), 1);
        assert_eq!(store.documents().all("code", None, 9).await.expect("read").len(), 1);
        assert_eq!(OldNode(&store).get(("login", "of-alice")).await, None);
        assert_eq!(store.documents().all("removed", None, 9).await.expect("read").len(), 1);
        assert_eq!(store.projects().all().await.expect("read")[0].form.value()["members"], json!([member]));
        assert_eq!(mirror(&store, "alice").await, None);
        assert_eq!(store.check().await.expect("checked"), [""; 0]);
    }
}

/// Returns the backups in a folder, by name.
fn copies(folder: &Path) -> Vec<PathBuf> {
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = files.map(|entry| entry.expect("a file").path()).collect();
    found.retain(|path| path.to_string_lossy().contains(".v5"));
    found.sort();
    found
}

#[tokio::test]
async fn a_store_of_the_version_before_is_copied_and_everybody_gets_an_id() {
    for place in TestStore::both() {
        let old = Store::open_at(&place.url, BEFORE, None).await.expect("as it was");
        for (name, subject, role) in [("kana", "owner", "owner"), ("alice", "alice", "member")] {
            let form = json!({ "role": role, "password": "h", "permissions": null });
            assert!(OldNode(&old).put(("user", name), subject, &form.to_string()).await);
        }
        let store = Store::open_with_backup(&place.url, place.folder.path()).await.expect("opened");
        assert_eq!((store.found_version(), names(&store).await), (BEFORE, vec!["alice".into(), "kana".into()]));
        let users = store.users().all().await.expect("read");
        assert!(users.iter().all(|user| user.id.starts_with("usr_")), "{users:?}");
        assert_eq!((users[0].subject.as_str(), users[1].subject.as_str()), ("alice", "owner"));
        // An open store and a newly opened one both continue to work.
        assert!(OldNode(&old).get(("user", "alice")).await.is_some());
        let again = Store::open_with_backup(&place.url, place.folder.path()).await.expect("opened");
        assert_eq!(again.users().all().await.expect("read"), users, "the ids stay");
        let mut found = copies(place.folder.path());
        found.extend(copies(&place.folder.path().join("in here")));
        assert_eq!(found.len(), 1, "one copy, of the version that it had: {found:?}");
        let copy = Store::open_at(&StoreUrl::file(&found[0]), BEFORE, None).await.expect("a whole store");
        assert_eq!(copy.found_version(), BEFORE);
        assert!(OldNode(&copy).get(("user", "kana")).await.is_some());
        for store in [old, store, again, copy] {
            store.close().await;
        }
    }
}

#[tokio::test]
async fn what_is_put_in_for_a_user_is_put_in_while_they_are_as_they_must_be() {
    for place in TestStore::both() {
        let store = place.open().await;
        assert!(store.users().put(&user("1", "alice"), None).await.expect("put"));
        let put = async |id: &str, owner: &str, holder: OwnerCheck| {
            store.documents().put_owned(&entry("code", id, owner, &json!({})), holder).await.expect("asked")
        };
        assert!(put("a", "usr_1", OwnerCheck::UserAtVersion(1)).await);
        assert!(!put("a", "usr_1", OwnerCheck::User).await, "it is there");
        assert!(!put("b", "usr_1", OwnerCheck::UserAtVersion(2)).await);
        assert!(put("b", "token:1", OwnerCheck::Anybody).await, "no user");
        assert!(!put("c", "token:1", OwnerCheck::User).await);
        let changed = UserRow { password: Some("another".into()), ..user("1", "alice") };
        assert!(store.users().change(&[(changed.clone(), "alice".into())]).await.expect("changed"));
        assert!(!put("c", "usr_1", OwnerCheck::UserAtVersion(1)).await, "it was another password");
        assert!(put("c", "usr_1", OwnerCheck::User).await);
        let locked = UserRow { disabled: true, version: 2, ..changed };
        assert!(store.users().change(&[(locked.clone(), "alice".into())]).await.expect("changed"));
        for holder in [OwnerCheck::User, OwnerCheck::UserAtVersion(3), OwnerCheck::Anybody] {
            assert!(!put("d", "usr_1", holder).await, "{holder:?}: locked out");
        }
        let used = entry("spent-code", "c", "usr_1", &json!("g"));
        let redeem = async |grant: &GrantRow| store.grants().redeem(("code", "c"), grant, &used).await.expect("asked");
        assert!(!redeem(&rows::grant("g", "usr_1")).await, "locked out");
        assert!(store.documents().get("code", "c", 9).await.expect("read").is_some(), "nothing is used up");
        let back = UserRow { disabled: false, version: 3, ..locked.clone() };
        assert!(store.users().change(&[(back, "alice".into())]).await.expect("changed"));
        assert!(redeem(&rows::grant("g", "usr_1")).await);
        assert!(!redeem(&rows::grant("h", "usr_1")).await, "used up");
        assert_eq!(store.grants().all(9).await.expect("read"), [rows::grant("g", "usr_1")]);
        assert!(store.users().remove(&UserRow { version: 4, ..locked }, None, None).await.expect("removed"));
        assert!(!put("d", "usr_1", OwnerCheck::User).await, "gone");
    }
}

/// Password changes race with logins by the old password. Whatever the order, no login of an old version is left after
/// the change.
#[tokio::test]
async fn no_login_is_left_of_a_password_that_was_changed_meanwhile() {
    for place in TestStore::both() {
        let store = place.open().await;
        assert!(store.users().put(&user("1", "alice"), None).await.expect("put"));
        for version in 1..6 {
            let logins = (0..8).map(|number| {
                let store = store.clone();
                async move {
                    let login = rows::login(&format!("{version}-{number}"), "usr_1");
                    store.logins().put_owned(&login, OwnerCheck::UserAtVersion(version)).await.expect("asked")
                }
            });
            let change = async {
                let row = UserRow { version, ..user("1", "alice") };
                assert!(store.users().change(&[(row, "alice".into())]).await.expect("changed"));
                store.users().remove_access(&[AccessKind::Login], "usr_1", None).await.expect("swept");
            };
            futures_util::future::join(futures_util::future::join_all(logins), change).await;
            assert_eq!(store.logins().of_subject("usr_1", 9).await.expect("read"), [], "{version}");
        }
    }
}
