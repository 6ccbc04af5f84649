//! Authentication by tokens, entering projects, and expiry.

use std::sync::Arc;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_store::{Store, StoreUrl};
use serde_json::{Value, json};

use super::People;
use crate::identity::UserAuthority;
use crate::project::Project;

async fn store() -> Store {
    Store::open(&StoreUrl::memory()).await.expect("a store")
}

fn form(value: &Value) -> Object {
    Raw::of(value).object().expect("an object")
}

async fn make_token(people: &People, value: Value) -> Result<(String, String), Error> {
    let (token, secret) = people.tokens().create(&form(&value), UserAuthority::Owner).await?;
    let id = token.object().and_then(|token| token.text("id")).expect("an id");
    Ok((id, secret.expose().to_owned()))
}

async fn make_project(people: &People, name: &str, value: Value) {
    people.projects().create(name, &form(&value)).await.expect("made");
}

#[tokio::test]
async fn a_secret_opens_until_its_token_is_taken_back() {
    let people = People::new(store().await);
    make_project(&people, "work", json!({})).await;
    let (id, secret) = make_token(&people, json!({ "name": "ci", "project": "work" })).await.expect("made");
    let caller = people.bearer(&secret).expect("known");
    assert_eq!(&*caller.subject, format!("token:{id}"));
    assert_eq!((caller.project.as_deref(), caller.scopes), (Some("work"), Scopes::DEFAULT));
    assert_eq!(caller.token.as_deref(), Some(id.as_str()));
    for wrong in ["", "hk_", &id, &secret[..secret.len() - 1], &format!("{secret}x"), &secret.to_uppercase()] {
        assert_eq!(people.bearer(wrong), None, "{wrong}");
    }
    assert!(people.is_still_valid(&caller));
    people.tokens().revoke(&id).await.expect("revoked");
    assert_eq!((people.bearer(&secret), people.is_still_valid(&caller)), (None, false));
    assert_eq!(people.tokens().revoke(&id).await.map_err(|error| error.kind), Err(ErrorKind::NotFound));
    assert!(people.is_still_valid(&Caller::owner()));
}

#[tokio::test]
async fn a_secret_stands_nowhere() {
    let store = store().await;
    let people = People::new(store.clone());
    let (_, secret) = make_token(&people, json!({ "name": "ci" })).await.expect("made");
    let rows = store.tokens().all().await.expect("read");
    assert!(!format!("{rows:?} {:?}", rows[0].hash).contains(&secret[3..]));
    let shown = Raw::array(&people.tokens().objects());
    assert!(!shown.as_str().contains(&secret[3..]) && !shown.as_str().contains(&rows[0].hash), "{shown:?}");
}

#[tokio::test]
async fn who_expired_or_lost_its_project_is_nobody() {
    let store = store().await;
    let people = People::new(store.clone());
    make_project(&people, "work", json!({ "members": ["alice"] })).await;
    let (_, brief) = make_token(&people, json!({ "name": "a", "expiresIn": 2 })).await.expect("made");
    assert!(people.bearer(&brief).is_some());
    let begin = std::time::Instant::now();
    while people.bearer(&brief).is_some() {
        assert!(begin.elapsed() < std::time::Duration::from_secs(60), "it does not expire");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let of_alice = json!({ "name": "b", "subject": "alice", "project": "work" });
    let (_, secret) = make_token(&people, of_alice).await.expect("made");
    assert!(people.bearer(&secret).is_some());
    people.projects().change("work", &form(&json!({ "members": ["bob"] }))).await.expect("changed");
    assert_eq!(people.bearer(&secret), None, "she does not belong to it any more");
    people.projects().change("work", &form(&json!({ "members": null }))).await.expect("changed");
    assert!(people.bearer(&secret).is_some(), "everybody does");
    people.projects().delete("work").await.expect("deleted");
    make_project(&people, "work", json!({})).await;
    assert_eq!(people.bearer(&secret), None, "it was for another of that name");
}

#[tokio::test]
async fn a_token_for_a_project_is_for_one_of_its_members() {
    let people = People::new(store().await);
    make_project(&people, "work", json!({ "members": ["alice"] })).await;
    for wrong in [
        json!({ "name": "a", "project": "none" }),
        json!({ "name": "a", "project": "work" }),
        json!({ "name": "a", "project": "work", "subject": "bob" }),
    ] {
        let refused = make_token(&people, wrong.clone()).await.expect_err("refused");
        assert_eq!(refused.kind, ErrorKind::Validation, "{wrong}");
    }
}

#[tokio::test]
async fn only_who_may_enter_a_project_finds_one() {
    let people = People::new(store().await);
    make_project(&people, "work", json!({ "members": ["alice"] })).await;
    make_project(&people, "home", json!({})).await;
    let of_token = |project: Option<&str>| Caller {
        project: project.map(Arc::from),
        token: Some("tok_1".into()),
        ..Caller::named("alice")
    };
    let entered = people.enter(&Caller::owner(), "work").expect("the owner may");
    assert_eq!((entered.project.as_deref(), entered.is_admin()), (Some("work"), false));
    assert!(people.enter(&of_token(Some("work")), "work").is_some());
    assert!(people.enter(&of_token(None), "work").is_some(), "it names her");
    for (caller, name) in [
        (Caller::owner(), "none"),
        (of_token(Some("work")), "home"),
        (of_token(None), "home"),
        (Caller::named("bob"), "work"),
        (Caller::owner().within("work".into()), "home"),
    ] {
        assert_eq!(people.enter(&caller, name), None, "{caller:?} {name}");
    }
}

#[tokio::test]
async fn what_the_file_names_is_the_files_alone() {
    let people = People::new(store().await);
    make_project(&people, "work", json!({ "description": "of the store" })).await;
    let project = Project::read("work", &form(&json!({ "description": "of the file" }))).expect("a project");
    people.take(vec![Arc::new(Project { managed_by_file: true, ..project })]);
    let shown = people.projects().object("work").expect("there").value();
    assert_eq!((&shown["description"], &shown["managedByFile"]), (&json!("of the file"), &json!(true)));
    let nothing = Object::default();
    let refused = [
        people.projects().create("work", &nothing).await.map(drop),
        people.projects().change("work", &nothing).await.map(drop),
        people.projects().delete("work").await,
    ];
    for outcome in refused {
        let error = outcome.expect_err("refused");
        assert_eq!(
            (error.kind, &*error.message),
            (ErrorKind::Conflict, "The project `work` is managed by the config file.")
        );
    }
    people.take(Vec::new());
    let shown = people.projects().object("work").expect("there").value();
    assert_eq!(shown["description"], "of the store", "and the store's again without it");
}

#[tokio::test]
async fn what_another_process_writes_is_taken_in() {
    let store = store().await;
    let (here, there) = (People::new(store.clone()), People::new(store));
    make_project(&there, "work", json!({ "optimization": null })).await;
    let (id, secret) = make_token(&there, json!({ "name": "ci", "project": "work" })).await.expect("made");
    assert_eq!(here.bearer(&secret), None);
    assert!(here.read_store().await.expect("read"), "there is another project");
    assert!(here.bearer(&secret).is_some());
    there.tokens().revoke(&id).await.expect("revoked");
    assert!(!here.read_store().await.expect("read"), "the projects are the same");
    assert_eq!(here.bearer(&secret), None);
}

#[tokio::test]
async fn a_change_replaces_what_it_names_and_a_wrong_one_nothing() {
    let people = People::new(store().await);
    make_project(&people, "work", json!({ "description": "d", "optimization": "bm25" })).await;
    let twice = people.projects().create("work", &Object::default()).await.expect_err("taken");
    assert_eq!(twice.kind, ErrorKind::Conflict);
    let wanted = form(&json!({ "optimization": null, "permissions": { "deny": ["m:t"] } }));
    let changed = people.projects().change("work", &wanted).await.expect("changed").value();
    assert_eq!((&changed["description"], &changed["optimization"]), (&json!("d"), &Value::Null));
    assert!(changed.as_object().is_some_and(|project| project.contains_key("optimization")), "off is said");
    let wrong = people.projects().change("work", &form(&json!({ "optimisation": null }))).await;
    assert_eq!(wrong.map_err(|error| error.kind).map(drop), Err(ErrorKind::Validation));
    assert_eq!(people.projects().object("work").expect("there").value(), changed);
    let gone = people.projects().change("wrk", &Object::default()).await.expect_err("there is none");
    assert_eq!((gone.kind, gone.hint.as_deref()), (ErrorKind::NotFound, Some("Did you mean `work`?")));
}

#[tokio::test]
async fn a_change_undoes_nothing_that_another_process_did() {
    let store = store().await;
    let (here, there) = (People::new(store.clone()), People::new(store.clone()));
    let alice = hikite_store::UserRow {
        id: "usr_1".into(),
        name: "alice".into(),
        subject: "usr_1".into(),
        role: "member".into(),
        password: None,
        permissions: None,
        disabled: false,
        project: None,
        created_at: 1,
        version: 1,
    };
    assert!(store.users().put(&alice, None).await.expect("put"));
    make_project(&here, "work", json!({ "members": ["alice", "bob"] })).await;
    assert!(store.users().remove(&alice, None, None).await.expect("removed"));
    let changed = here.projects().change("work", &form(&json!({ "description": "d" }))).await.expect("changed");
    assert_eq!((&changed.value()["members"], &changed.value()["description"]), (&json!(["bob"]), &json!("d")));
    there.read_store().await.expect("read");
    there.projects().delete("work").await.expect("deleted");
    let gone = here.projects().change("work", &form(&json!({ "description": "e" }))).await.expect_err("gone");
    assert_eq!(gone.kind, ErrorKind::NotFound);
    assert_eq!(store.projects().all().await.expect("read"), [], "and stays so");
}

#[tokio::test]
async fn changes_at_once_are_all_kept() {
    let store = store().await;
    let people: Vec<People> = (0..4).map(|_| People::new(store.clone())).collect();
    make_project(&people[0], "work", json!({ "members": ["a"] })).await;
    let changes = [
        json!({ "description": "d" }),
        json!({ "members": ["b"] }),
        json!({ "optimization": null }),
        json!({ "permissions": { "deny": ["m:t"] } }),
    ];
    let all = people.iter().zip(&changes).map(|(people, change)| async move {
        people.projects().change("work", &form(change)).await.expect("changed");
    });
    futures_util::future::join_all(all).await;
    people[0].read_store().await.expect("read");
    let shown = people[0].projects().object("work").expect("there").value();
    assert_eq!((&shown["description"], &shown["members"]), (&json!("d"), &json!(["b"])));
    assert_eq!((&shown["optimization"], &shown["permissions"]["deny"]), (&Value::Null, &json!(["m:t"])));
}

#[tokio::test]
async fn a_grant_that_ends_elsewhere_is_told_to_whoever_has_something_open() {
    let store = Store::open(&StoreUrl::memory()).await.expect("a store");
    let people = People::new(store.clone());
    people.read_store().await.expect("read");
    let document = hikite_store::DocumentRow {
        kind: "code",
        id: "code-1".into(),
        owner: String::new(),
        document: Raw::empty_object(),
        version: 1,
        created_at: 1,
        expires_at: 0,
    };
    let grant = hikite_store::GrantRow {
        id: "grant-1".into(),
        subject: None,
        client: "c".into(),
        scopes: Vec::new(),
        project: None,
        generation: 0,
        rotated_at: 0,
        key_id: String::new(),
        sealed_key: String::new(),
        last: None,
        version: 1,
        created_at: 1,
        expires_at: 0,
    };
    store.documents().put(&document).await.expect("put");
    store.grants().put(&grant).await.expect("put");
    people.read_store().await.expect("read");
    let changes = people.changes();
    assert!(store.documents().take("code", "code-1", 2).await.expect("taken").is_some());
    people.read_store().await.expect("read");
    assert!(!changes.has_changed().expect("open"), "a code ends nothing");
    assert!(store.grants().take("grant-1", 2).await.expect("taken").is_some());
    people.read_store().await.expect("read");
    assert!(changes.has_changed().expect("open"));
}
