//! Vectors and the search memory.

use hikite_core::search::encoder::Vector;

use super::{TestStore, key};
use crate::SearchMemoryRow;

fn pair(project: &str, query: &str, tool: &str, weight: f32) -> SearchMemoryRow {
    SearchMemoryRow {
        project: project.into(),
        query: query.into(),
        key: key(tool),
        text: (weight > 1.0).then(|| "in words".to_owned()),
        terms: vec![1, u64::MAX],
        model: "m1".into(),
        vector: Some(Vector::of(&[1.0, -0.5])),
        weight,
        used_at: 9,
    }
}

#[tokio::test]
async fn vectors_are_found_by_model_and_content() {
    for place in TestStore::both() {
        let store = place.open().await;
        let vectors: Vec<(String, Vector)> =
            (0..450_u16).map(|at| (format!("c{at}"), Vector::of(&[f32::from(at), 1.0]))).collect();
        store.search().put_vectors("one", &vectors, 1).await.expect("put");
        store.search().put_vectors("one", &[("c0".into(), Vector::of(&[9.0, 9.0]))], 2).await.expect("put");
        store.search().put_vectors("one", &[], 2).await.expect("nothing");
        let contents: Vec<String> = (0..500).map(|at| format!("c{at}")).collect();
        let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
        let found = store.search().vectors("one", &contents, 3 * 86_400_000).await.expect("read");
        assert_eq!((found.len(), found.get("c0")), (450, Some(&vectors[0].1)));
        assert!(store.search().vectors("two", &contents, 1).await.expect("read").is_empty());
        assert!(store.search().vectors("one", &[], 1).await.expect("read").is_empty());
        assert_eq!(store.check().await.expect("checked"), [""; 0]);
    }
}

#[tokio::test]
async fn what_is_remembered_gets_stronger_and_is_let_go_of() {
    for place in TestStore::both() {
        let store = place.open().await;
        let (one, two) = (pair("p", "q1", "a", 1.0), pair("", "q2", "b", 2.5));
        store.search().remember(&[one.clone(), two.clone()], &[]).await.expect("written");
        let stronger = SearchMemoryRow { weight: 1.5, used_at: 20, ..one.clone() };
        store.search().remember(std::slice::from_ref(&stronger), &[]).await.expect("written");
        assert_eq!(store.changes().revision().await.expect("read"), 0, "nobody has to read it at once");
        assert_eq!(store.search().remembered(Some("p")).await.expect("read"), [stronger]);
        assert_eq!(store.search().remembered(Some("")).await.expect("read"), std::slice::from_ref(&two));
        assert_eq!(store.search().remembered(None).await.expect("read").len(), 2);
        let gone = (two.project.clone(), two.query.clone(), two.key.clone());
        store.search().remember(&[], &[gone]).await.expect("written");
        assert_eq!(store.search().remembered(Some("")).await.expect("read"), []);
        assert_eq!(store.search().forget(Some("other")).await.expect("forgotten"), 0);
        assert_eq!(store.changes().revision().await.expect("read"), 0);
        assert_eq!(store.search().forget(None).await.expect("forgotten"), 1);
        assert_eq!(store.changes().revision().await.expect("read"), 1, "others have to forget, too");
        let nul = SearchMemoryRow { text: Some("a\0b".into()), ..two };
        store.search().remember(&[nul], &[]).await.expect("written");
        assert_eq!(store.check().await.expect("checked"), [""; 0]);
    }
}
