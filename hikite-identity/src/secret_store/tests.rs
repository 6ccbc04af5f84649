//! An attacker with write access to the store can delete secrets, and nothing else.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use hikite_core::error::Error;
use hikite_core::secret::Secret;
use hikite_core::source::BoxFuture;
use hikite_store::{Store, StoreUrl, VaultSecretRow};
use hikite_vault::{KeyRing, MasterKey, Password};

use super::{MasterKeySource, SecretStore};

const AT: (&str, &str, &str) = ("acc_1", "notion", "oauth");

async fn store() -> Store {
    Store::open(&StoreUrl::memory()).await.expect("a store")
}

fn ring() -> KeyRing {
    KeyRing::new(MasterKey::random().expect("random"), Vec::new())
}

fn secret(text: &str) -> Secret {
    Secret::hidden(text)
}

async fn text_at(secret_store: &SecretStore, at: (&str, &str, &str)) -> Result<Option<String>, Error> {
    Ok(secret_store.get(at.0, at.1, at.2).await?.map(|kept| kept.secret.expose().to_owned()))
}

async fn row(store: &Store, at: (&str, &str, &str)) -> VaultSecretRow {
    store.vault().secret(at.0, at.1, at.2).await.expect("read").expect("a row")
}

/// Asserts that the error has a hint and reveals no secret.
#[track_caller]
fn is_refused(outcome: Result<Option<String>, Error>, why: &str) {
    let error = outcome.expect_err(why);
    let shown = format!("{error} {error:?} {}", error.rpc().as_str());
    assert!(shown.contains("cannot be decrypted") && error.hint.is_some(), "{why}: {shown}");
    assert!(!shown.contains("canary"), "{why}: {shown}");
}

#[tokio::test]
async fn what_is_put_in_comes_out_and_only_the_next_version_follows() {
    let secret_store = SecretStore::new(store().await, ring());
    assert!(text_at(&secret_store, AT).await.expect("nothing").is_none());
    assert!(secret_store.put(AT, 0, &secret("canary-1")).await.expect("put"));
    assert!(!secret_store.put(AT, 0, &secret("canary-x")).await.expect("told"), "there is a first one");
    assert!(secret_store.put(AT, 1, &secret("canary-2")).await.expect("put"));
    assert!(!secret_store.put(AT, 1, &secret("canary-x")).await.expect("told"), "another was faster");
    assert_eq!(text_at(&secret_store, AT).await.expect("opened").as_deref(), Some("canary-2"));
    secret_store.remove(AT.0, None).await.expect("removed");
    assert!(text_at(&secret_store, AT).await.expect("nothing").is_none());
}

#[tokio::test]
async fn a_changed_record_is_refused() {
    let store = store().await;
    let secret_store = SecretStore::new(store.clone(), ring());
    secret_store.set(AT, &secret("canary")).await.expect("put");
    let whole = row(&store, AT).await;
    for at in [4, whole.sealed.len() / 2, whole.sealed.len() - 2] {
        let mut sealed = whole.sealed.clone().into_bytes();
        sealed[at] = if sealed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(sealed).expect("ASCII");
        store.vault().remove_secrets(AT.0, Some(AT.1)).await.expect("removed");
        assert!(store.vault().put_secret(&VaultSecretRow { sealed: changed, ..whole.clone() }).await.expect("put"));
        is_refused(text_at(&secret_store, AT).await, "changed");
        assert_eq!(secret_store.check().await.expect("checked")[0].record, "acc_1/notion/oauth");
    }
}

#[tokio::test]
async fn a_record_of_another_place_is_refused() {
    let store = store().await;
    let secret_store = SecretStore::new(store.clone(), ring());
    secret_store.set(AT, &secret("canary")).await.expect("put");
    let whole = row(&store, AT).await;
    for at in [("acc_2", AT.1, AT.2), (AT.0, "github", AT.2), (AT.0, AT.1, "token")] {
        // The account has a data key of its own.
        secret_store.set((at.0, "x", "x"), &secret("own")).await.expect("put");
        let moved = VaultSecretRow { account: at.0.into(), provider: at.1.into(), field: at.2.into(), ..whole.clone() };
        assert!(store.vault().put_secret(&moved).await.expect("put"));
        is_refused(text_at(&secret_store, at).await, "moved");
    }
}

#[tokio::test]
async fn an_old_version_is_refused() {
    let store = store().await;
    let secret_store = SecretStore::new(store.clone(), ring());
    secret_store.set(AT, &secret("canary-1")).await.expect("put");
    let old = row(&store, AT).await;
    secret_store.set(AT, &secret("canary-2")).await.expect("put");
    assert!(store.vault().put_secret(&VaultSecretRow { version: 3, ..old.clone() }).await.expect("put"));
    is_refused(text_at(&secret_store, AT).await, "old, as if it were new");
    store.vault().remove_secrets(AT.0, Some(AT.1)).await.expect("removed");
    assert!(store.vault().put_secret(&old).await.expect("put"));
    is_refused(text_at(&secret_store, AT).await, "old, as it was");
}

#[tokio::test]
async fn an_account_that_is_made_again_elsewhere_is_known() {
    let store = store().await;
    let text = ring().text();
    let [here, there] = [1, 2].map(|_| SecretStore::new(store.clone(), KeyRing::parse(text.expose()).expect("keys")));
    here.set(AT, &secret("canary-1")).await.expect("put");
    here.set(AT, &secret("canary-2")).await.expect("put");
    there.remove(AT.0, None).await.expect("removed");
    there.set(AT, &secret("canary-3")).await.expect("put");
    assert_eq!(text_at(&here, AT).await.expect("opened").as_deref(), Some("canary-3"));
}

#[tokio::test]
async fn another_master_key_opens_nothing_and_says_so() {
    let store = store().await;
    SecretStore::new(store.clone(), ring()).set(AT, &secret("canary")).await.expect("put");
    let stranger = SecretStore::new(store, ring());
    let error = text_at(&stranger, AT).await.expect_err("refused");
    assert!(error.message.contains("a key that is not available"), "{}", error.message);
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("`vault`")));
    assert_eq!(stranger.check().await.expect("checked").len(), 1, "an account is told once");
}

/// A key file whose content tests replace.
#[derive(Debug)]
struct KeyFile(ArcSwapOption<String>);

impl MasterKeySource for KeyFile {
    fn read(&self) -> BoxFuture<'_, Result<KeyRing, Error>> {
        let text = self.0.load_full().expect("keys");
        Box::pin(async move { Ok(KeyRing::parse(&text).expect("keys")) })
    }
}

#[tokio::test]
async fn the_master_key_changes_while_others_work() {
    let store = store().await;
    let (old, new) = (ring().text(), ring().text());
    let key_file = Arc::new(KeyFile(ArcSwapOption::from_pointee(old.expose().to_owned())));
    let secret_store = |text: &str| {
        SecretStore::new(store.clone(), KeyRing::parse(text).expect("keys")).with_keys(Arc::clone(&key_file) as _)
    };
    let (running, idle) = (secret_store(old.expose()), secret_store(old.expose()));
    running.set(AT, &secret("canary")).await.expect("put");
    let both = format!("{}\n{}", new.expose(), old.expose());
    key_file.0.store(Some(Arc::new(both.clone())));
    let at_work = secret_store(&both);
    assert_eq!(at_work.rotate().await.expect("rotated").rewrapped, 1);
    assert_eq!(text_at(&running, AT).await.expect("opened").as_deref(), Some("canary"), "its key is open");
    assert_eq!(text_at(&idle, AT).await.expect("opened").as_deref(), Some("canary"), "it reads the new key");
    // A process that has not seen the rotation creates an account: it still ends up under the new key.
    let late = ("acc_2", "notion", "oauth");
    running.set(late, &secret("canary-late")).await.expect("put");
    key_file.0.store(Some(Arc::new(new.expose().to_owned())));
    let after = secret_store(new.expose());
    assert_eq!(text_at(&after, late).await.expect("opened").as_deref(), Some("canary-late"));
    assert!(after.check().await.expect("checked").is_empty());
    let vault_status = after.vault_status().await.expect("known");
    assert_eq!((vault_status.accounts.len(), vault_status.secrets), (1, 2));
    assert!(vault_status.accounts.contains_key(&vault_status.key));
}

#[tokio::test]
async fn a_copy_goes_into_another_store_under_another_key() {
    let from = SecretStore::new(store().await, ring());
    from.set(AT, &secret("canary")).await.expect("put");
    let copy = from.export(Password::new("a long passphrase"), &[]).await.expect("copied");
    assert!(!copy.contains("canary"));
    let to = SecretStore::new(store().await, ring());
    let wrong = to.import(copy.clone(), Password::new("another"), (&[], false)).await;
    assert!(wrong.expect_err("refused").hint.is_some_and(|hint| hint.contains("passphrase")));
    let done = to.import(copy.clone(), Password::new("a long passphrase"), (&[], false)).await;
    assert_eq!(done.expect("put back").secrets, 1);
    assert_eq!(text_at(&to, AT).await.expect("opened").as_deref(), Some("canary"));
    let again = to.import(copy, Password::new("a long passphrase"), (&[], false)).await;
    assert_eq!(again.expect("told").kept, 1, "what is there stays");
}
