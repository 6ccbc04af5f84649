//! The `vault` section: location of the master key.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::checker::ConfigChecker;
use super::position::ConfigPath;

/// Environment variable that is used if the file names no location.
const VARIABLE: &str = "HIKITE_VAULT_KEY";
const ONE_LOCATION: &str = "Set one of `key_file`, `key_env`, `keyring` or `key_command`.";

/// Where the key of the vault is kept. One place; without one it is the file `vault.key` in the data folder, which is made
/// at the first start. A key is 64 hexadecimal digits or 32 bytes in base64. Several with space between them open what
/// they sealed, and the first seals.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Vault")]
pub(crate) struct VaultFile {
    /// A file that holds the key and that nobody but its owner may read. It is made if it is missing.
    key_file: Option<String>,
    /// The name of a variable that holds the key. Default, where it is set: `HIKITE_VAULT_KEY`.
    key_env: Option<String>,
    /// The key is in the keyring of the operating system, and made there if it is missing.
    keyring: Option<bool>,
    /// A program and its arguments; what it prints is the key.
    #[schemars(length(min = 1))]
    key_command: Option<Vec<String>>,
    /// A file with the key before this one, while `hikite vault rotate` has not been run.
    previous_key_file: Option<String>,
    /// A program that prints the previous key.
    #[schemars(length(min = 1))]
    previous_key_command: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VaultSection {
    pub key: KeyLocation,
    pub previous: Option<KeyLocation>,
}

/// Location of a master key.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum KeyLocation {
    /// The default file in the data folder.
    #[default]
    DefaultFile,
    File(PathBuf),
    Variable(String),
    Keyring,
    Command(Vec<String>),
}

pub(crate) fn check(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &VaultFile) -> VaultSection {
    let key = key(check, path, raw).unwrap_or_default();
    let previous = match (&raw.previous_key_file, &raw.previous_key_command) {
        (Some(_), Some(_)) => {
            let message = "both `previous_key_file` and `previous_key_command` are given";
            check.report.error_in_name(&path.key("previous_key_command"), message, Some("Keep one of them.".into()));
            None
        }
        (Some(file), None) => self::file(check, &path.key("previous_key_file"), file),
        (None, Some(command)) => self::command(check, &path.key("previous_key_command"), command),
        (None, None) => None,
    };
    VaultSection { key, previous }
}

fn key(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &VaultFile) -> Option<KeyLocation> {
    let keyring = raw.keyring == Some(true);
    let named = [
        ("key_file", raw.key_file.is_some()),
        ("key_env", raw.key_env.is_some()),
        ("keyring", keyring),
        ("key_command", raw.key_command.is_some()),
    ];
    let named: Vec<&str> = named.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect();
    let in_variable = (check.environment.env)(VARIABLE).is_some_and(|text| !text.is_empty());
    match named[..] {
        [] if in_variable => Some(KeyLocation::Variable(VARIABLE.into())),
        [] => Some(KeyLocation::DefaultFile),
        [first, second, ..] => {
            let message = format!("both `{first}` and `{second}` are given");
            check.report.error_in_name(&path.key(second), &message, Some(ONE_LOCATION.into()));
            None
        }
        [only] if in_variable && raw.key_env.as_deref() != Some(VARIABLE) => {
            let message = format!("`{only}` is given, and the variable `{VARIABLE}` is set");
            check.report.error_in_name(
                &path.key(only),
                &message,
                Some(format!("Unset the variable, or leave out `{only}`.")),
            );
            None
        }
        ["key_file"] => file(check, &path.key("key_file"), raw.key_file.as_deref()?),
        ["key_env"] => variable(check, &path.key("key_env"), raw.key_env.as_deref()?),
        ["keyring"] => Some(KeyLocation::Keyring),
        _ => command(check, &path.key("key_command"), raw.key_command.as_deref()?),
    }
}

fn file(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, written: &str) -> Option<KeyLocation> {
    let file = check.expand(path, written)?;
    Some(KeyLocation::File(check.resolve(&file)))
}

fn variable(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, name: &str) -> Option<KeyLocation> {
    let fine = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.is_empty() || !fine(name) {
        let hint = "Write only the name, for example `MY_VAULT_KEY`, without `$`.";
        return check.fail(path, "it is not a valid name of a variable".into(), hint);
    }
    Some(KeyLocation::Variable(name.to_owned()))
}

fn command(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, written: &[String]) -> Option<KeyLocation> {
    if written.first().is_none_or(String::is_empty) {
        let hint = "Write a program and its arguments: `[\"age\", \"--decrypt\", \"vault.age\"]`.";
        return check.fail(path, "it contains no program".into(), hint);
    }
    let words: Option<Vec<String>> = written.iter().map(|word| check.expand(path, word)).collect();
    words.map(KeyLocation::Command)
}

pub(crate) fn show(vault: &VaultSection) -> Value {
    let mut shown = Map::new();
    let mut put = |place: &KeyLocation, before: &str| {
        let (name, value) = match place {
            KeyLocation::DefaultFile => return,
            KeyLocation::File(file) => ("key_file", json!(file)),
            KeyLocation::Variable(name) => ("key_env", json!(name)),
            KeyLocation::Keyring => ("keyring", json!(true)),
            KeyLocation::Command(words) => ("key_command", json!(words)),
        };
        shown.insert(format!("{before}{name}"), value);
    };
    put(&vault.key, "");
    vault.previous.iter().for_each(|place| put(place, "previous_"));
    shown.into()
}
