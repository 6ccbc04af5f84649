//! Servers configured at runtime. The complete entry is encrypted in the vault; the store holds a masked copy.
//! Requests from the network cannot set up programs: `put_upstream` refuses them.

use hikite_config::{Config, ServerConfig, masked_url};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::origin::ConfigOrigin;
use hikite_core::secret::{MASK, Secret};
use hikite_gateway::{PutResult, now_ms};
use hikite_store::DocumentRow;
use serde_json::{Map, Value, json};

use super::{StoredUpstream, UPSTREAM, check_name, managed_by_file, parse};
use crate::runtime::{Runtime, kind_of, place};

/// Vault address of the entries.
const ACCOUNT: &str = "upstreams";
const FIELD: &str = "entry";
/// Members that make an entry a stdio server.
const STDIO_MEMBERS: [&str; 6] = ["command", "args", "env", "cwd", "inheritEnv", "envFile"];
/// Members refused here: a server is switched on and off through its module.
const SWITCH_MEMBERS: [&str; 2] = ["enabled", "disabled"];

impl Runtime {
    pub(super) fn upstream_objects(&self) -> Vec<Raw> {
        let stored = self.stored.lock().clone();
        let file = self.config.lock().as_ref().map(|config| config.servers.clone()).unwrap_or_default();
        let of_file = file.iter().map(|server| {
            let entry = place(server).with("description", server.description.as_str());
            object(&server.name, ConfigOrigin::File, kind_of(server), entry.raw())
        });
        let shadowed = |name: &str| file.iter().any(|server| &*server.name == name);
        let saved = stored.upstreams.iter().filter(|saved| !shadowed(&saved.entry.id));
        of_file.chain(saved.map(|saved| saved.object())).collect()
    }

    pub(super) async fn put_upstream(&self, name: &str, form: &Object) -> Result<PutResult, Error> {
        let _turn = self.change_lock.lock().await;
        check_name(name)?;
        self.is_free_for_upstream(name)?;
        let before = self.secret_entry(name).await?;
        let entry = unmasked(form, before.as_ref())?;
        read(name, &entry)?;
        let is_new = self.store_upstream(name, &entry).await?;
        let stored = self.stored.lock().clone();
        let saved = stored.upstreams.iter().find(|saved| saved.entry.id == name);
        Ok((saved.ok_or_else(|| not_found(name))?.object(), is_new))
    }

    /// Writes a checked entry, and returns `true` if it is new.
    pub(super) async fn store_upstream(&self, name: &str, entry: &Value) -> Result<bool, Error> {
        let secret = Secret::hidden(entry.to_string());
        self.secret_store.set((ACCOUNT, name, FIELD), &secret).await?;
        let is_new = self.upsert_stored(UPSTREAM, name, Raw::of(&masked(entry))).await?;
        self.reload_stored().await?;
        Ok(is_new)
    }

    pub(super) async fn remove_upstream(&self, name: &str) -> Result<(), Error> {
        let _turn = self.change_lock.lock().await;
        if self.store.documents().take(UPSTREAM, name, now_ms()).await?.is_none() {
            self.is_free_for_upstream(name)?;
            return Err(not_found(name));
        }
        self.secret_store.remove(ACCOUNT, Some(name)).await?;
        self.reload_stored().await
    }

    /// Checks that the name is not used by the config file, a service or a registered tool.
    pub(super) fn is_free_for_upstream(&self, name: &str) -> Result<(), Error> {
        let off = |config: &Config| config.disabled.iter().any(|off| &**off == name);
        if self.config.lock().as_ref().is_some_and(off) {
            return Err(managed_by_file("module", name));
        }
        match self.gateway.catalogs().origin_of_module(name) {
            Some((ConfigOrigin::Store, false)) | None => Ok(()),
            Some((_, true)) => {
                Err(Error::new(ErrorKind::Conflict, format!("`{name}` is a module of registered tools."))
                    .hint("Choose another name."))
            }
            Some(_) => Err(managed_by_file("module", name)),
        }
    }

    /// Returns the entry with its secrets, if it exists.
    pub(super) async fn secret_entry(&self, name: &str) -> Result<Option<Value>, Error> {
        let saved = self.secret_store.get(ACCOUNT, name, FIELD).await?;
        Ok(saved.and_then(|saved| serde_json::from_str(saved.secret.expose()).ok()))
    }

    pub(super) async fn open_upstream(&self, entry: DocumentRow) -> StoredUpstream {
        let name = entry.id.clone();
        let opened = match self.secret_entry(&name).await {
            Ok(Some(secret)) => read_any(&name, &secret),
            Ok(None) => Err(Error::new(ErrorKind::Internal, "The entry of the server is missing in the vault.")),
            Err(error) => Err(error),
        };
        let opened = opened.inspect_err(|error| {
            tracing::error!(module = name, %error, "a server in the store cannot be used");
        });
        match opened.ok() {
            Some(server) if self.is_approved(&server) => {
                StoredUpstream { entry, server: Some(server), unapproved: None }
            }
            unapproved => StoredUpstream { entry, server: None, unapproved },
        }
    }
}

impl StoredUpstream {
    fn object(&self) -> Raw {
        let kind = self.server.as_ref().or(self.unapproved.as_ref()).map_or("http", kind_of);
        object(&self.entry.id, ConfigOrigin::Store, kind, self.entry.document.clone())
    }
}

fn object(name: &str, origin: ConfigOrigin, kind: &str, entry: Raw) -> Raw {
    Object::default().with("name", name).with("managedBy", origin.word()).with("kind", kind).with("entry", entry).raw()
}

/// Checks an entry that a request sent: programs are refused.
pub(super) fn read(name: &str, entry: &Value) -> Result<ServerConfig, Error> {
    refuse_program(name, entry)?;
    read_any(name, entry)
}

/// Checks an entry as the config file does.
pub(super) fn read_any(name: &str, entry: &Value) -> Result<ServerConfig, Error> {
    if let Some(switch) = SWITCH_MEMBERS.into_iter().find(|switch| entry.get(switch).is_some()) {
        return Err(Error::new(ErrorKind::Validation, format!("`{switch}` is not part of a stored server."))
            .hint(format!("Use `POST /v1/modules/{name}/disable` and `/enable`.")));
    }
    let text = json!({ "mcpServers": { name: entry } }).to_string();
    let config = parse(&text, &format!("mcpServers.{name}"))?;
    config.servers.into_iter().next().ok_or_else(|| not_found(name))
}

fn refuse_program(name: &str, entry: &Value) -> Result<(), Error> {
    let is_stdio = ["type", "transport", "transportType"].iter().any(|word| entry[word] == "stdio");
    if !is_stdio && !STDIO_MEMBERS.iter().any(|member| entry.get(member).is_some()) {
        return Ok(());
    }
    let message = "A server that is a program cannot be set up over the network.";
    let hint = format!("Run on its machine: {}", command(name, entry));
    Err(Error::new(ErrorKind::Authorization, message).hint(hint))
}

/// Returns the shell command that adds this server to the config file.
pub(super) fn command(name: &str, entry: &Value) -> String {
    let text = json!({ "mcpServers": { name: entry } }).to_string().replace('\'', r"'\''");
    format!("printf '%s' '{text}' | hikite config import /dev/stdin --write")
}

/// Returns the entry with its secrets masked.
pub(super) fn masked(entry: &Value) -> Value {
    let mut shown = entry.clone();
    for name in ["url", "serverUrl"] {
        if let Some(url) = shown.get(name).and_then(Value::as_str) {
            shown[name] = masked_url(url).into();
        }
    }
    for name in ["headers", "env"] {
        if let Some(values) = shown.get_mut(name).and_then(Value::as_object_mut) {
            values.values_mut().for_each(|value| *value = MASK.into());
        }
    }
    if let Some(secret) = shown.pointer_mut("/auth/client_secret") {
        *secret = MASK.into();
    }
    shown
}

/// Returns the entry with masked values replaced by the previous ones.
fn unmasked(form: &Object, before: Option<&Value>) -> Result<Value, Error> {
    let mut entry = form.clone().raw().value();
    let before = before.cloned().unwrap_or_else(|| json!({}));
    let mut missing = None;
    let mut fill = |value: &mut Value, old: Option<&Value>, name: &str| match old {
        _ if value.as_str() != Some(MASK) => {}
        Some(old) => *value = old.clone(),
        None => missing = Some(name.to_owned()),
    };
    let empty = Map::new();
    let known = before["headers"].as_object().unwrap_or(&empty);
    for (name, value) in entry.get_mut("headers").and_then(Value::as_object_mut).into_iter().flatten() {
        fill(value, known.get(name), name);
    }
    if let Some(secret) = entry.pointer_mut("/auth/client_secret") {
        fill(secret, before.pointer("/auth/client_secret"), "client_secret");
    }
    if let Some(name) = missing {
        let message = format!("`{name}` has no stored value that `{MASK}` could stand for.");
        return Err(Error::new(ErrorKind::Validation, message));
    }
    let shown = masked(&before);
    if entry.get("url").is_some_and(|url| url.is_string() && shown.get("url") == Some(url)) {
        entry["url"] = before["url"].clone();
    }
    Ok(entry)
}

fn not_found(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("There is no upstream `{name}` in the store."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(value: &Value) -> Object {
        Raw::of(value).object().expect("an object")
    }

    #[test]
    fn nothing_of_an_entry_that_is_secret_is_shown() {
        let entry = json!({ "url": "https://x.example/mcp?key=hunter2", "headers": { "A": "hunter2" },
            "auth": { "client_id": "c", "client_secret": "hunter2" } });
        let shown = masked(&entry);
        assert!(!shown.to_string().contains("hunter2"), "{shown}");
        let again = unmasked(&form(&shown), Some(&entry)).expect("all of it is known");
        assert_eq!(again, entry, "what is shown can be sent back");
    }

    #[test]
    fn a_mask_stands_for_nothing_that_is_not_known() {
        let new = form(&json!({ "url": "https://x.example", "headers": { "A": "***" } }));
        assert!(unmasked(&new, None).is_err());
    }

    #[track_caller]
    fn check(entry: &Value, kind: Option<ErrorKind>) {
        assert_eq!(read("x", entry).err().map(|error| error.kind), kind, "{entry}");
    }

    #[test]
    fn programs_variables_and_files_are_refused() {
        let with = |name: &str, value: Value| {
            let mut entry = json!({ "url": "https://x.example/mcp" });
            entry[name] = value;
            entry
        };
        check(&with("timeout", json!(5)), None);
        check(&json!({ "command": "sh" }), Some(ErrorKind::Authorization));
        check(&with("type", json!("stdio")), Some(ErrorKind::Authorization));
        check(&with("env", json!({ "A": "b" })), Some(ErrorKind::Authorization));
        check(&json!({}), Some(ErrorKind::Validation));
        for wrong in [
            with("url", json!("https://x.example/${HOME}")),
            with("url", json!("file:///etc/passwd")),
            with("headers", json!({ "A": "${PATH}" })),
            with("headers", json!({ "A": { "file": "/etc/passwd" } })),
            with("auth", json!({ "client_id": "c", "client_secret_file": "/etc/passwd" })),
            with("enabled", json!(false)),
        ] {
            check(&wrong, Some(ErrorKind::Validation));
        }
    }
}
