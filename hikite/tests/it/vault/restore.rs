//! Backups from before a key rotation: they name the key they need, and can be restored.

use hikite_testkit::api::{MockApi, MockResponse};
use hikite_testkit::gateway::TestGateway;
use hikite_testkit::postgres::database;
use serde_json::{Value, json};

use super::{add, config_again, gateway, search, works};

async fn value(gateway: &TestGateway, arguments: &[&str]) -> Value {
    let run = gateway.run(arguments).await;
    assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
    serde_json::from_str(&run.stdout).expect("JSON")
}

fn only_key(report: &Value, member: &str) -> String {
    let keys = report[member].as_object().unwrap_or_else(|| panic!("{report}"));
    assert_eq!(keys.len(), 1, "{report}");
    keys.keys().next().expect("one").clone()
}

/// Connects an account, makes a backup, rotates the key twice, and restores the backup.
async fn comes_back(more: &Value) {
    let api = MockApi::start().await;
    api.answer("/v1/search", MockResponse::json(&json!({ "results": [] })));
    let mut running = gateway(&api, more.clone()).await;
    add(&running).await;
    assert_eq!(works(&running).await["success"], true);
    let file = running.folder().path().join("old.db");
    let old = file.to_str().expect("UTF-8");
    let first = only_key(&value(&running, &["store", "backup", old, "--json"]).await, "keys");
    assert_eq!(first, value(&running, &["vault", "status", "--json"]).await["key"]);
    let bytes = std::fs::read(&file).expect("a backup");
    for _ in 0..2 {
        value(&running, &["vault", "rotate", "--json"]).await;
    }
    let status = value(&running, &["vault", "status", "--json"]).await;
    assert_eq!(status["retired"].as_array().map(Vec::len), Some(2), "{status}");
    assert_eq!(only_key(&value(&running, &["store", "check", "--json"]).await, "keys"), status["key"]);
    assert_eq!(only_key(&value(&running, &["store", "check", old, "--json"]).await, "keys"), first);
    let busy = running.run(&["store", "restore", old]).await;
    assert!(busy.code == Some(1) && busy.stderr.contains("is in use"), "{busy:?}");
    let remove = running.run(&["account", "remove", "default"]).await;
    assert_eq!(remove.code, Some(0), "{remove:?}");
    assert!(running.stop().await.success());
    let restored = value(&running, &["store", "restore", old, "--json"]).await;
    assert_eq!((only_key(&restored, "neededKeys"), &restored["key"]), (first, &status["key"]), "{restored}");
    let before = restored["before"].as_str().expect("a file");
    assert!(std::path::Path::new(before).exists(), "what was there is kept: {before}");
    assert_eq!(std::fs::read(&file).expect("a backup"), bytes, "the backup itself is as it was");
    let mut again = config_again(&api);
    for (name, setting) in more.as_object().expect("an object") {
        again[name] = setting.clone();
    }
    let running = running.restart(again).await;
    let found = search(&running).await;
    assert_eq!(found["success"], true, "{found}");
    assert_eq!(api.last_of("/v1/search").header("authorization"), Some("Bearer ntn_canary_5f0e1c2b3a"));
    let status = value(&running, &["vault", "status", "--json"]).await;
    assert_eq!(status["retired"].as_array().map(Vec::len), Some(2), "earlier backups can be restored later");
    let records = running.run(&["audit", "export"]).await.stdout;
    assert!(records.contains("store.restore"), "{records}");
}

#[tokio::test]
async fn the_oldest_backup_comes_back_after_the_key_changed_twice() {
    comes_back(&json!({})).await;
}

#[tokio::test]
async fn the_oldest_backup_comes_back_into_postgresql() {
    comes_back(&json!({ "store": { "url": database() } })).await;
}

#[tokio::test]
async fn a_backup_whose_key_is_gone_says_which_and_takes_it_from_a_file_or_a_newer_backup() {
    let api = MockApi::start().await;
    api.answer("/v1/search", MockResponse::json(&json!({ "results": [] })));
    let mut running = gateway(&api, json!({})).await;
    add(&running).await;
    let folder = running.folder().path().to_owned();
    let path = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let (old, newer, kept, data) = (path("old.db"), path("newer.db"), path("kept.key"), path("data/vault.key"));
    let first = only_key(&value(&running, &["store", "backup", &old, "--json"]).await, "keys");
    std::fs::copy(&data, &kept).expect("a copy of the key");
    value(&running, &["vault", "rotate", "--json"]).await;
    value(&running, &["store", "backup", &newer, "--json"]).await;
    let asked = running.run(&["vault", "forget-key", &first]).await;
    assert!(asked.code != Some(0) && asked.stderr.contains("lost forever"), "{asked:?}");
    value(&running, &["vault", "forget-key", &first, "--yes", "--json"]).await;
    assert!(running.stop().await.success());
    let refused = running.run(&["store", "restore", &old]).await;
    assert!(refused.code == Some(1) && refused.stderr.contains(&first), "{refused:?}");
    assert!(refused.stderr.contains("--key-file") && refused.stderr.contains("--keys-from"), "{refused:?}");
    value(&running, &["store", "restore", &old, "--key-file", &kept, "--json"]).await;
    std::fs::remove_file(path("data/hikite.db")).expect("the store is lost");
    value(&running, &["store", "restore", &old, "--keys-from", &newer, "--json"]).await;
    let running = running.restart(config_again(&api)).await;
    assert_eq!(search(&running).await["success"], true);
}

#[tokio::test]
async fn what_is_no_backup_changes_nothing() {
    let api = MockApi::start().await;
    let mut running = gateway(&api, json!({})).await;
    add(&running).await;
    assert!(running.stop().await.success());
    let file = running.folder().path().join("x.db");
    let text = file.to_str().expect("UTF-8");
    for content in [&b""[..], b"no database at all", b"SQLite format 3\0 and nothing more"] {
        std::fs::write(&file, content).expect("a file");
        let refused = running.run(&["store", "restore", text]).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
    }
    let missing = running.run(&["store", "restore", "nowhere.db"]).await;
    assert!(missing.code == Some(1) && missing.stderr.contains("cannot read"), "{missing:?}");
    let listed = value(&running, &["account", "list", "--json"]).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    let left: Vec<String> = std::fs::read_dir(running.folder().path().join("data"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("work-") || name.contains("before-restore"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_key_that_a_program_gives_is_kept_for_backups_as_well() {
    let api = MockApi::start().await;
    api.answer("/v1/search", MockResponse::json(&json!({ "results": [] })));
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (key, before, old) = (path("key"), path("before"), path("old.db"));
    std::fs::write(&key, "1".repeat(64)).expect("a key");
    let now = json!({ "vault": { "key_command": ["cat", key] } });
    let mut running = gateway(&api, now.clone()).await;
    add(&running).await;
    let first = only_key(&value(&running, &["store", "backup", &old, "--json"]).await, "keys");
    assert!(running.stop().await.success());
    std::fs::rename(&key, &before).expect("the old key");
    std::fs::set_permissions(&before, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("private");
    std::fs::write(&key, "2".repeat(64)).expect("a new key");
    let mut config = config_again(&api);
    config["vault"] = json!({ "key_command": ["cat", key], "previous_key_file": before });
    let mut running = running.restart(config).await;
    let rotated = value(&running, &["vault", "rotate", "--json"]).await;
    assert_ne!(rotated["key"], first.as_str());
    assert!(running.stop().await.success());
    std::fs::remove_file(&before).expect("the old key is given away");
    let mut config = config_again(&api);
    config["vault"] = now["vault"].clone();
    let mut running = running.restart(config.clone()).await;
    assert!(running.stop().await.success());
    let restored = value(&running, &["store", "restore", &old, "--json"]).await;
    assert_eq!(only_key(&restored, "neededKeys"), first);
    let running = running.restart(config).await;
    let found = search(&running).await;
    assert_eq!(found["success"], true, "{found}");
}
