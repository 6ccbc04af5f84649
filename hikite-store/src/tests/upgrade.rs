//! A store made by the first release, version 0.1.0.

use super::TestStore;
use super::old_node::OldNode;
use crate::{GrantRow, Store, StoreUrl};

/// Made by that program: an OAuth login, a client, a consent, a refreshed grant, accounts, tokens, pins, audit records.
const SQLITE: &[u8] = include_bytes!("../../fixtures/store-0.1.0.db");
const POSTGRES: &str = include_str!("../../fixtures/store-0.1.0.postgres.sql");
const VERSION: i64 = 5;
const ALICE: &str = "alice";
const EDITOR: &str = "hkc_6cc50ee4523f5f1a8302d730";

fn stores() -> Vec<TestStore> {
    let sqlite = TestStore::sqlite();
    let file = sqlite.url.path().expect("a file");
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    std::fs::write(file, SQLITE).expect("written");
    if hikite_testkit::postgres::is_excluded() {
        return vec![sqlite];
    }
    let url = StoreUrl::parse(&hikite_testkit::postgres::database_with(POSTGRES)).expect("an address");
    vec![sqlite, TestStore { url, folder: tempfile::tempdir().expect("a folder") }]
}

#[tokio::test]
async fn a_store_of_the_first_release_is_copied_and_becomes_typed() {
    for place in stores() {
        let store = Store::open_with_backup(&place.url, place.folder.path()).await.expect("migrated");
        assert_eq!(store.found_version(), VERSION);
        let users = store.users().all().await.expect("read");
        assert_eq!(users.iter().map(|user| user.name.as_str()).collect::<Vec<_>>(), ["kana", "alice", "bob"]);
        assert_eq!(
            (store.tokens().all().await.expect("read").len(), store.projects().all().await.expect("read").len()),
            (3, 1)
        );
        let logins = store.logins().all(1).await.expect("read");
        assert_eq!(logins.iter().map(|login| login.subject.as_str()).collect::<Vec<_>>(), ["owner", ALICE]);
        let grants = store.grants().of_subject(ALICE, 1).await.expect("read");
        let [GrantRow { client, generation: 2, last: Some(last), .. }] = &grants[..] else { panic!("{grants:?}") };
        assert_eq!((client.as_str(), last.scopes.len(), grants[0].version), (EDITOR, 2, 2));
        let own: Vec<GrantRow> = store.grants().all(1).await.expect("read");
        assert_eq!(own.iter().filter(|grant| grant.subject.is_none()).count(), 1);
        let clients = store.clients().all(1).await.expect("read");
        assert_eq!(clients.iter().map(|client| client.origin.as_str()).collect::<Vec<_>>(), ["registered", "admin"]);
        assert_eq!(clients[1].grant_id.as_deref(), own.iter().find(|g| g.subject.is_none()).map(|g| g.id.as_str()));
        let consents = store.consents().of_subject(ALICE, 1).await.expect("read");
        assert_eq!((consents.len(), consents[0].client.as_str()), (1, EDITOR));
        let passkeys = store.passkeys().of_subject(ALICE, 1).await.expect("read");
        assert_eq!((passkeys.len(), passkeys[0].name.as_str(), passkeys[0].counter), (1, "laptop", 3));
        let mut accounts: Vec<String> =
            store.accounts().all(1).await.expect("read").into_iter().map(|account| account.name).collect();
        accounts.sort();
        assert_eq!(accounts, ["of-alice", "of-owner", "of-robot"]);
        let pins = store.pins().all(1).await.expect("read");
        let blocked: Vec<&str> = pins.iter().filter(|pin| pin.blocked).map(|pin| pin.id.as_str()).collect();
        assert_eq!((pins.len(), blocked), (2, vec!["local:add"]));
        let echo = pins.iter().find(|pin| pin.id == "local:echo").expect("pinned");
        let definition = store.documents().get("definition", &echo.hash, 1).await.expect("read").expect("there");
        assert_eq!(definition.document.value()["name"], "echo");
        assert!(store.audit().verify(None, |_, _| {}).await.expect("read").broken.is_none());
        assert_eq!(store.check().await.expect("checked"), [""; 0]);
        store.close().await;

        // The copy is a store of the first release.
        let copy = match place.url.path() {
            Some(file) => format!("{}.v5", file.display()).into(),
            None => place.folder.path().join("postgres-store.db.v5"),
        };
        let copy = Store::open_at(&StoreUrl::file(copy), VERSION, None).await.expect("a whole store");
        assert_eq!(copy.found_version(), VERSION);
        assert!(OldNode(&copy).get(("consent", &consents[0].id)).await.is_some());
        copy.close().await;
    }
}
