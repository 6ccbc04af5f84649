//! Categories created at runtime. They use the format of the config file and may select tools of any module.

use std::sync::Arc;

use hikite_core::category::CategoryRule;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Object;
use hikite_core::origin::ConfigOrigin;
use hikite_core::suggestion;
use hikite_core::violation::{self, Violation};
use hikite_gateway::now_ms;
use hikite_store::DocumentRow;
use serde_json::{Map, Value, json};

use super::{CATEGORY, StoredCategory, check_name, managed_by_file, parse};
use crate::runtime::Runtime;

impl Runtime {
    pub(super) async fn put_category(&self, name: &str, form: &Object) -> Result<bool, Error> {
        let _turn = self.change_lock.lock().await;
        check_name(name)?;
        self.is_free_for_category(name)?;
        let form = form.clone().raw();
        let rule = read(name, &form.value())?;
        let known = self.gateway.catalogs().module_names();
        let unknown = rule.servers.iter().filter(|server| !known.contains(server));
        let faults: Vec<Violation> = unknown
            .map(|server| {
                let near = suggestion::did_you_mean(server, known.iter().map(|name| &**name));
                let hint = near.map(|near| format!(" {near}")).unwrap_or_default();
                Violation::new("/server", format!("There is no module `{server}`.{hint}"))
            })
            .collect();
        if !faults.is_empty() {
            return Err(violation::error(&faults));
        }
        let is_new = self.upsert_stored(CATEGORY, name, form.copied()).await?;
        self.reload_stored().await?;
        Ok(is_new)
    }

    pub(super) async fn remove_category(&self, name: &str) -> Result<(), Error> {
        let _turn = self.change_lock.lock().await;
        if self.store.documents().take(CATEGORY, name, now_ms()).await?.is_none() {
            self.is_free_for_category(name)?;
            return Err(Error::new(ErrorKind::NotFound, format!("There is no category `{name}` in the store.")));
        }
        self.reload_stored().await
    }

    fn is_free_for_category(&self, name: &str) -> Result<(), Error> {
        let config = self.config.lock();
        let of_file = config.iter().flat_map(|config| &config.categories).any(|rule| &*rule.name == name);
        if of_file { Err(managed_by_file("category", name)) } else { Ok(()) }
    }
}

pub(super) fn open(entry: DocumentRow) -> StoredCategory {
    let rule = read(&entry.id, &entry.document.value()).inspect_err(|error| {
        tracing::error!(category = entry.id, %error, "a category in the store cannot be used");
    });
    StoredCategory { rule: rule.ok().map(Arc::new), entry }
}

/// Checks a category as the config file does; the modules it names need not exist.
fn read(name: &str, form: &Value) -> Result<CategoryRule, Error> {
    let server = form.get("server");
    let one = server.and_then(Value::as_str);
    let many = server.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let stand_in = || json!({ "url": "https://module.invalid", "description": "a module" });
    let named = one.into_iter().chain(many);
    let servers: Map<String, Value> = named.map(|name| (name.to_owned(), stand_in())).collect();
    let text = json!({ "mcpServers": servers, "categories": { name: form } }).to_string();
    let config = parse(&text, &format!("categories.{name}"))?;
    let rule = config.categories.into_iter().next();
    let rule = rule.ok_or_else(|| Error::new(ErrorKind::Validation, "This is not a valid category."))?;
    Ok(CategoryRule { origin: ConfigOrigin::Store, ..CategoryRule::clone(&rule) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_category_may_be_of_any_module_and_its_faults_are_told() {
        let form = json!({ "description": "d", "server": ["a", "b"], "tools": { "includeNames": ["a:x"] } });
        let rule = read("c", &form).expect("a category");
        assert_eq!((rule.servers.len(), rule.origin), (2, ConfigOrigin::Store));
        for wrong in [json!({}), json!({ "server": "a", "tools": 1 }), json!({ "server": "a", "nope": 1 })] {
            let error = read("c", &wrong).expect_err("it is wrong");
            assert_eq!(error.kind, ErrorKind::Validation, "{wrong}");
        }
    }
}
