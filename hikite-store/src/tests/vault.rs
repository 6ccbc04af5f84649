//! Sealed rows: stored unchanged, replaced only by the next version.

use super::TestStore;
use crate::{VaultKeyRow, VaultSecretRow};

fn secret(version: u64) -> VaultSecretRow {
    VaultSecretRow {
        account: "work".into(),
        provider: "notion".into(),
        field: "refresh".into(),
        version,
        sealed: format!("v1.{version}"),
    }
}

#[tokio::test]
async fn a_secret_is_replaced_by_its_successor_alone() {
    for place in TestStore::both() {
        let store = place.open().await;
        assert!(store.vault().put_secret(&secret(1)).await.expect("put"));
        assert!(!store.vault().put_secret(&secret(1)).await.expect("refused"), "there is a first");
        assert!(!store.vault().put_secret(&secret(3)).await.expect("refused"), "the second is missing");
        assert!(store.vault().put_secret(&secret(2)).await.expect("put"));
        assert!(!store.vault().put_secret(&secret(2)).await.expect("refused"));
        let found = store.vault().secret("work", "notion", "refresh").await.expect("read");
        assert_eq!(found, Some(secret(2)));
        assert_eq!(store.vault().secret("work", "notion", "access").await.expect("read"), None);
        assert_eq!(store.vault().secrets().await.expect("read"), [secret(2)]);
        assert_eq!(store.check().await.expect("checked"), [""; 0]);
    }
}

#[tokio::test]
async fn an_account_keeps_the_key_it_got_first() {
    for place in TestStore::both() {
        let store = place.open().await;
        let row = |key_id: &str, sealed: &str| VaultKeyRow {
            account: "work".into(),
            key_id: key_id.into(),
            sealed: sealed.into(),
        };
        assert!(store.vault().put_key(&row("k1", "a")).await.expect("put"));
        assert!(!store.vault().put_key(&row("k1", "b")).await.expect("refused"));
        assert!(store.vault().rewrap_key(&row("k2", "c"), "k1").await.expect("rewrapped"));
        assert!(!store.vault().rewrap_key(&row("k2", "d"), "k1").await.expect("refused"));
        assert_eq!(store.vault().keys().await.expect("read"), [row("k2", "c")]);
        assert!(store.vault().put_secret(&secret(1)).await.expect("put"));
        assert!(store.vault().remove_secrets("work", Some("notion")).await.expect("removed"));
        assert!(store.vault().key("work").await.expect("read").is_some());
        assert!(store.vault().remove_secrets("work", None).await.expect("removed"));
        assert_eq!(store.vault().key("work").await.expect("read"), None);
    }
}
