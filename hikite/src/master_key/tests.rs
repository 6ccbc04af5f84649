//! Master keys from every location that the config can name.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hikite_config::{Config, ConfigEnvironment, KeyLocation};
use hikite_store::Store;
use hikite_vault::MasterKey;

use super::MasterKeyLocations;

fn config(data: &Path, text: &str) -> Result<Config, String> {
    let read = |path: &Path| fs::read_to_string(path);
    let outside = ConfigEnvironment { env: &|_| None, read: &read };
    let config = Config::parse(text, &data.join("hikite.json"), outside).map_err(|wrong| wrong.to_string())?;
    Ok(Config { data: data.to_owned(), ..config })
}

fn places(data: &Path, text: &str) -> MasterKeyLocations {
    MasterKeyLocations::of(&config(data, text).expect("right"))
}

fn key() -> MasterKey {
    MasterKey::random().expect("random")
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
}

#[tokio::test]
async fn without_a_word_it_is_a_file_that_is_made_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let places = places(folder.path(), "{}");
    let id = places.ring().await.expect("made").current().id().to_owned();
    assert_eq!(places.ring().await.expect("read").current().id(), id);
    let mode = fs::metadata(folder.path().join("vault.key")).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}

#[tokio::test]
async fn a_file_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("my.key");
    let secret = key().text();
    write(&file, secret.expose(), 0o640);
    let error = places(folder.path(), r#"{"vault":{"key_file":"my.key"}}"#).ring().await.expect_err("refused");
    let shown = format!("{error:#} {error:?}");
    assert!(shown.contains("chmod 600") && !shown.contains(secret.expose()), "{shown}");
}

#[tokio::test]
async fn what_is_no_key_is_told_without_being_repeated() {
    let folder = tempfile::tempdir().expect("a folder");
    write(&folder.path().join("my.key"), "canary-canary-canary-canary", 0o600);
    let error = places(folder.path(), r#"{"vault":{"key_file":"my.key"}}"#).ring().await.expect_err("refused");
    let shown = format!("{error:#}");
    assert!(shown.contains("does not contain a vault key") && shown.contains("64 hexadecimal digits"), "{shown}");
    assert!(!shown.contains("canary"), "{shown}");
}

#[tokio::test]
async fn a_program_prints_the_key_and_another_the_one_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let (new, old) = (key(), key());
    write(&folder.path().join("old.key"), old.text().expose(), 0o600);
    let text = format!(
        r#"{{"vault":{{"key_command":["printf","%s\n","{}"],"previous_key_file":"old.key"}}}}"#,
        new.text().expose()
    );
    let places = places(folder.path(), &text);
    let ring = places.ring().await.expect("both");
    assert_eq!(ring.ids().collect::<Vec<_>>(), [new.id(), old.id()]);
    assert!(!places.can_create_key());
}

#[tokio::test]
async fn a_program_that_fails_is_told_and_nothing_that_it_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    for (command, message_part) in [
        (r#"["sh","-c","echo canary; echo the card is out >&2; exit 3"]"#, "the card is out"),
        (r#"["sh","-c","exit 1"]"#, "did not print a key"),
        (r#"["sh","-c","yes canary | head -c 9000"]"#, "more than a key"),
        (r#"["hikite-no-such-program"]"#, "cannot run"),
    ] {
        let text = format!(r#"{{"vault":{{"key_command":{command}}}}}"#);
        let error = places(folder.path(), &text).ring().await.expect_err("refused");
        let shown = format!("{error:#}");
        assert!(shown.contains(message_part) && !shown.contains("canary"), "{shown}");
    }
}

#[test]
fn exactly_one_place_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for (vault, message_part) in [
        (r#"{"key_file":"a","keyring":true}"#, "both `key_file` and `keyring`"),
        (r#"{"key_env":"A","key_command":["b"]}"#, "both `key_env` and `key_command`"),
        (r#"{"key_env":"$A"}"#, "not a valid name of a variable"),
        (r#"{"key_command":[""]}"#, "contains no program"),
        (r#"{"previous_key_file":"a","previous_key_command":["b"]}"#, "both `previous_key_file`"),
        (r#"{"keyfile":"a"}"#, "key_file"),
    ] {
        let wrong = config(folder.path(), &format!(r#"{{"vault":{vault}}}"#)).expect_err(vault);
        assert!(wrong.contains(message_part), "{vault}: {wrong}");
    }
    let with = |text: &str| {
        let read = |path: &Path| fs::read_to_string(path);
        let env = |name: &str| (name == "HIKITE_VAULT_KEY").then(|| "00".repeat(32));
        Config::parse(text, &folder.path().join("hikite.json"), ConfigEnvironment { env: &env, read: &read })
    };
    let usual = with("{}").expect("right").vault.key;
    assert_eq!(usual, KeyLocation::Variable("HIKITE_VAULT_KEY".into()));
    let both = with(r#"{"vault":{"keyring":true}}"#).expect_err("two places").to_string();
    assert!(both.contains("the variable `HIKITE_VAULT_KEY` is set"), "{both}");
}

#[tokio::test]
async fn a_key_that_is_missed_is_not_made_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path(), "{}").expect("right");
    let store = Store::open(&config.store_url()).await.expect("a store");
    let places = MasterKeyLocations::of(&config);
    let secret_store = hikite_identity::SecretStore::new(store.clone(), places.open(&store).await.expect("made"));
    let secret = hikite_core::secret::Secret::hidden("canary");
    secret_store.set(("a", "b", "c"), &secret).await.expect("put");
    fs::remove_file(folder.path().join("vault.key")).expect("gone");
    let error = places.open(&store).await.expect_err("refused").to_string();
    assert!(error.contains("does not exist") && error.contains("hint:"), "{error}");
    assert!(!folder.path().join("vault.key").exists());
}

#[tokio::test]
async fn a_store_that_ends_with_us_leaves_no_key_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let store = Store::open(&hikite_store::StoreUrl::memory()).await.expect("a store");
    let secret_store = places(&data, "{}").secret_store(&store).await.expect("a safe");
    let secret = hikite_core::secret::Secret::hidden("x");
    assert!(secret_store.put(("account", "provider", "field"), 0, &secret).await.expect("sealed"));
    let stored = secret_store.get("account", "provider", "field").await.expect("opened").expect("there");
    assert_eq!((stored.secret.expose(), data.exists()), ("x", false));
}
