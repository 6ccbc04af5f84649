//! Users who are removed or locked out while their account is being connected.

use hikite_store::{Store, UserRow};

use super::super::connection::{BrowserSecret, ConnectionCallback};
use super::*;

fn user(name: &str, subject: &str) -> UserRow {
    UserRow {
        id: format!("usr_{name}"),
        name: name.into(),
        subject: subject.into(),
        role: "member".into(),
        password: None,
        permissions: None,
        disabled: false,
        project: None,
        created_at: 1,
        version: 1,
    }
}

async fn change(store: &Store, next: UserRow) {
    let name = next.name.clone();
    assert!(store.users().change(&[(next, name)]).await.expect("changed"));
}

/// Builds accounts whose provider answers after `done` ran. The subject of alice is her name, as in version 0.1.
async fn accounts_where(done: fn(Store) -> BoxFuture<'static, ()>) -> Arc<AccountStore> {
    let held = Arc::new(Mutex::new(None::<Store>));
    let inner = Arc::clone(&held);
    let play: TokenScript = Box::new(move |_| {
        let store = inner.lock().clone().expect("set");
        Box::pin(async move {
            done(store).await;
            Ok(answer(200, &tokens("canary-new")))
        })
    });
    let (accounts, _) = accounts_with(play).await;
    let store = accounts.secret_store.store().clone();
    for row in [user("alice", "alice"), user("bob", "usr_bob")] {
        assert!(store.users().put(&row, None).await.expect("put"));
    }
    *held.lock() = Some(store);
    accounts
}

async fn connect(accounts: &AccountStore) -> Result<Arc<Account>, Error> {
    let link = accounts.connections().begin("alice", "fake", None).await.expect("a link");
    let browser = BrowserSecret::random().expect("random");
    let link = link.url.expose().split_once("?link=").expect("a link").1.to_owned();
    let url = accounts.connections().redirect_to_provider("fake", &link, &browser).await.expect("left");
    let state = url.expose().split_once("state=").expect("a state").1.split('&').next().unwrap_or_default();
    let returned =
        ConnectionCallback { state: state.to_owned(), code: Some(Secret::hidden("canary-code")), error: None };
    accounts.connections().handle_callback(returned, Some(&browser), None).await.map(|connected| connected.account)
}

/// Returns the number of sealed secrets, keys and accounts.
async fn counts(accounts: &AccountStore) -> (usize, usize, usize) {
    let store = accounts.secret_store.store();
    let secrets = store.vault().secrets().await.expect("read").len();
    let entries = store.accounts().all(0).await.expect("read").len();
    (secrets, store.vault().keys().await.expect("read").len(), entries)
}

#[track_caller]
fn is_refused(outcome: Result<Arc<Account>, Error>) {
    let error = outcome.expect_err("refused");
    assert_eq!(
        (error.kind, &*error.message),
        (ErrorKind::Authorization, "This user is no longer allowed to connect accounts.")
    );
}

#[tokio::test]
async fn whoever_is_removed_while_the_provider_answers_connects_nothing() {
    let accounts = accounts_where(|store| {
        Box::pin(async move {
            assert!(store.users().remove(&user("alice", "alice"), None, None).await.expect("removed"));
        })
    })
    .await;
    is_refused(connect(&accounts).await);
    assert_eq!(counts(&accounts).await, (0, 0, 0));
}

#[tokio::test]
async fn whoever_is_locked_out_while_the_provider_answers_connects_nothing() {
    let accounts = accounts_where(|store| {
        Box::pin(async move { change(&store, UserRow { disabled: true, ..user("alice", "alice") }).await })
    })
    .await;
    is_refused(connect(&accounts).await);
    assert_eq!(counts(&accounts).await, (0, 0, 0));
}

#[tokio::test]
async fn whoever_is_removed_while_they_connect_again_leaves_nothing_behind() {
    let accounts = accounts_where(|store| {
        Box::pin(async move {
            assert!(store.users().remove(&user("alice", "alice"), None, None).await.expect("removed"));
        })
    })
    .await;
    put(&accounts, DEFAULT, 0).await;
    is_refused(connect(&accounts).await);
    assert_eq!(counts(&accounts).await, (0, 0, 0));
}

#[tokio::test]
async fn what_a_successor_took_over_keeps_its_secret() {
    let accounts = accounts_where(|store| {
        Box::pin(async move {
            let (alice, bob) = (user("alice", "alice"), user("bob", "usr_bob"));
            assert!(store.users().remove(&alice, Some(&bob), None).await.expect("removed"));
        })
    })
    .await;
    let account = put(&accounts, DEFAULT, 0).await;
    let before = accounts.secret_store.get(&account.id, "fake", OAUTH).await.expect("opened").expect("there");
    assert!(connect(&accounts).await.is_err());
    let after = accounts.secret_store.get(&account.id, "fake", OAUTH).await.expect("opened").expect("there");
    assert_eq!(after.version, before.version);
    assert_eq!(counts(&accounts).await, (1, 1, 1));
    accounts.read_store().await.expect("read");
    assert_eq!(&*accounts.known.load().by_id(&account.id).expect("there").subject, "usr_bob");
}

#[tokio::test]
async fn whoever_stays_connects_and_connects_again() {
    let accounts = accounts_where(|_| Box::pin(std::future::ready(()))).await;
    let first = connect(&accounts).await.expect("connected");
    let again = connect(&accounts).await.expect("connected");
    assert_eq!((&first.id, counts(&accounts).await), (&again.id, (1, 1, 1)));
}

#[tokio::test]
async fn a_token_made_by_hand_is_kept_for_who_may_still_have_it() {
    let accounts = accounts_where(|_| Box::pin(std::future::ready(()))).await;
    let store = accounts.secret_store.store().clone();
    let form = Object::default().with("provider", "fake").with("token", "canary-token");
    is_refused(accounts.add(&Caller::named("usr_gone"), &form).await);
    change(&store, UserRow { disabled: true, ..user("bob", "usr_bob") }).await;
    is_refused(accounts.add(&Caller::named("usr_bob"), &form).await);
    // Removed after the check that she is a user.
    let holder = accounts.holder("alice").await.expect("a user");
    assert!(store.users().remove(&user("alice", "alice"), None, None).await.expect("removed"));
    let account = Account::new(super::super::id().expect("random"), "alice", "fake", DEFAULT, 1);
    let secret = Secret::hidden("canary-token");
    assert!(accounts.save_account(&account, (super::super::TOKEN, &secret), holder).await.is_err());
    assert_eq!(counts(&accounts).await, (0, 0, 0));
    accounts.add(&Caller::named("token:tok_1"), &form).await.expect("no user");
    accounts.add(&Caller::owner(), &form).await.expect("the owner before there is one");
}
