//! Projects and tokens.

use hikite_core::json::Raw;
use serde_json::json;

use super::TestStore;
use crate::{ProjectRow, StoreError, StoreFault, TokenRow};

fn project(name: &str, created_at: u64) -> ProjectRow {
    ProjectRow { name: name.into(), form: Raw::of(&json!({ "description": name })), created_at }
}

fn token(id: &str, project: &str, created_at: u64) -> TokenRow {
    let form = Raw::of(&json!({ "name": "ci", "scopes": ["read"] }));
    let (id, hash) = (format!("tok_{id}"), format!("{id:0>64}"));
    TokenRow { id, hash, project: project.into(), form, created_at, expires_at: 0 }
}

#[tokio::test]
async fn a_project_is_made_once_and_changed_in_its_place() {
    for place in TestStore::both() {
        let store = place.open().await;
        let first = project("work", 5);
        assert!(store.projects().put(&first).await.expect("put"));
        assert!(!store.projects().put(&project("work", 9)).await.expect("refused"));
        assert_eq!(store.changes().revision().await.expect("read"), 1);
        let changed =
            ProjectRow { form: Raw::parse(r#"{ "optimization":null,"u":"é" }"#).expect("JSON"), ..project("work", 9) };
        assert!(store.projects().change("work", &first.form, &changed.form).await.expect("changed"));
        assert!(store.projects().put(&project("home", 7)).await.expect("put"));
        store.close().await;
        let store = place.open().await;
        let found = store.projects().all().await.expect("read");
        let kept = ProjectRow { created_at: 5, ..changed.clone() };
        assert_eq!(found, [project("home", 7), kept], "by name, as old as it was, after another start");
        assert_eq!(found[1].form.bytes(), changed.form.bytes());
        assert_eq!(store.changes().revision().await.expect("read"), 3);
    }
}

#[tokio::test]
async fn the_tokens_of_a_project_go_with_it() {
    for place in TestStore::both() {
        let store = place.open().await;
        store.projects().put(&project("work", 1)).await.expect("put");
        for (id, of, at) in [("a", "work", 3), ("b", "", 1), ("c", "home", 2)] {
            assert!(store.tokens().put(&token(id, of, at)).await.expect("put"));
        }
        let twin = TokenRow { hash: "f".repeat(64), ..token("a", "home", 9) };
        assert!(!store.tokens().put(&twin).await.expect("refused"), "the id is taken");
        let ids = async |store: &crate::Store| -> Vec<String> {
            store.tokens().all().await.expect("read").into_iter().map(|token| token.id).collect()
        };
        assert_eq!(ids(&store).await, ["tok_b", "tok_c", "tok_a"], "the oldest first");
        assert!(store.projects().remove("work").await.expect("removed"));
        assert!(!store.projects().remove("work").await.expect("gone"));
        assert_eq!(ids(&store).await, ["tok_b", "tok_c"]);
        let (before, after) = (project("home", 9).form, Raw::of(&json!({ "description": "changed" })));
        assert!(!store.projects().change("home", &before, &after).await.expect("refused"), "there is none");
        assert_eq!(ids(&store).await, ["tok_b", "tok_c"]);
        assert!(store.projects().put(&project("home", 10)).await.expect("put"));
        assert_eq!(ids(&store).await, ["tok_b"], "a new one finds none");
        assert!(store.tokens().put(&token("d", "home", 4)).await.expect("put"));
        assert!(store.projects().change("home", &before, &after).await.expect("changed"));
        assert!(!store.projects().change("home", &before, &after).await.expect("refused"), "it has another form");
        assert_eq!(ids(&store).await, ["tok_b", "tok_d"], "a change leaves them");
        assert!(store.projects().remove("home").await.expect("removed"));
        assert!(store.projects().put(&project("home", 10)).await.expect("put"));
        assert!(store.tokens().put(&token("c", "home", 2)).await.expect("put"));
        assert!(store.tokens().remove("tok_c").await.expect("removed"));
        assert!(!store.tokens().remove("tok_c").await.expect("gone"));
        assert_eq!(ids(&store).await, ["tok_b"]);
        assert_eq!(store.changes().revision().await.expect("read"), 12, "only what changed something counts");
        assert_eq!(store.check().await.expect("checked"), [""; 0]);
    }
}

#[tokio::test]
async fn two_tokens_never_have_one_secret() {
    for place in TestStore::both() {
        let store = place.open().await;
        let first = token("a", "", 1);
        assert!(store.tokens().put(&first).await.expect("put"));
        let second = TokenRow { id: "tok_other".into(), ..first };
        assert!(store.tokens().put(&second).await.is_err());
        assert_eq!(store.tokens().all().await.expect("read").len(), 1);
    }
}

#[tokio::test]
async fn a_nul_is_refused_by_both_and_looks_absent() {
    for place in TestStore::both() {
        let store = place.open().await;
        let fault = |outcome: Result<bool, StoreError>| outcome.map_err(|error| error.fault);
        assert_eq!(fault(store.projects().put(&project("a\0b", 1)).await), Err(StoreFault::Nul));
        assert_eq!(fault(store.tokens().put(&token("a", "a\0b", 1)).await), Err(StoreFault::Nul));
        assert_eq!(fault(store.projects().remove("a\0b").await), Ok(false));
        assert_eq!(fault(store.tokens().remove("a\0b").await), Ok(false));
    }
}

#[test]
fn the_hash_of_a_token_is_not_shown() {
    let shown = format!("{:?}", token("a", "", 1));
    assert!(!shown.contains("000a") && shown.contains("tok_a"), "{shown}");
}
