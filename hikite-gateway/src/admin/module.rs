//! Module and category objects for the REST API and the UI, and enabling or disabling whole modules. Administrators
//! also see call figures, connection details and disabled modules.

use std::sync::Arc;

use hikite_api as api;
use hikite_core::breaker;
use hikite_core::caller::{Caller, Scopes};
use hikite_core::catalog::Module;
use hikite_core::category::Category;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::key::ToolKey;
use hikite_core::listing::Listing;
use hikite_core::origin::ConfigOrigin;
use hikite_core::source::{Source, SourceState};
use hikite_core::suggestion;
use tokio::time::Instant;

use super::paused_accounts;
use crate::accounts::AccountStore;
use crate::catalogs::{Catalogs, DisabledModule};
use crate::config_admin::ConfigAdmin;
use crate::lookup::Lookup;
use crate::meter::Meter;
use crate::registry::RegistryStore;

pub struct ModuleAdmin {
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) lookup: Lookup,
    pub(crate) registry: Arc<RegistryStore>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) accounts: Option<Arc<AccountStore>>,
    /// Source of the stored documents of categories.
    pub(crate) config: Option<Arc<dyn ConfigAdmin>>,
}

impl std::fmt::Debug for ModuleAdmin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModuleAdmin").finish_non_exhaustive()
    }
}

impl DisabledModule {
    fn name(&self) -> &str {
        match self {
            Self::AtRuntime(rule) => &rule.name,
            Self::File(name) => name,
        }
    }

    fn object(&self) -> api::Module {
        let (rule, origin) = match self {
            Self::AtRuntime(rule) => (Some(rule), rule.origin),
            Self::File(_) => (None, ConfigOrigin::File),
        };
        let listing = rule.and_then(|rule| rule.source.listing());
        api::Module {
            name: self.name().to_owned(),
            description: rule.map(|rule| rule.description.clone()).unwrap_or_default(),
            kind: rule.map(|rule| rule.source.kind().to_owned()),
            managed_by: origin.word().to_owned(),
            enabled: false,
            state: "disabled".to_owned(),
            tools: listing.as_ref().map_or(0, |listing| listing.tools.len() as u64),
            ..of_listing(self.name(), listing.as_deref())
        }
    }
}

impl ModuleAdmin {
    /// Returns an object for each module that the caller sees, for administrators including disabled ones.
    pub async fn module_objects(&self, caller: &Caller) -> Result<Vec<api::Module>, Error> {
        caller.require(Scopes::READ)?;
        self.lookup.wait_for_listings(caller).await;
        let view = self.catalogs.view_of(caller);
        let shown = view.modules().iter().map(|module| self.module_summary(caller, module));
        let disabled_modules = if caller.is_admin() { self.catalogs.disabled_modules() } else { Vec::new() };
        Ok(shown.chain(disabled_modules.iter().map(DisabledModule::object)).collect())
    }

    /// Returns the object of one module, for administrators including connection details and recent stderr output.
    pub async fn module_object(&self, caller: &Caller, name: &str) -> Result<api::Module, Error> {
        caller.require(Scopes::READ)?;
        self.lookup.wait_for_listings(caller).await;
        let view = self.catalogs.view_of(caller);
        if let Some(module) = view.module(name) {
            let object = self.module_summary(caller, module);
            return Ok(if caller.is_admin() { with_connection(object, &*module.source) } else { object });
        }
        let disabled_modules = if caller.is_admin() { self.catalogs.disabled_modules() } else { Vec::new() };
        let Some(module) = disabled_modules.iter().find(|module| module.name() == name) else {
            let known = view.modules().iter().map(|module| &*module.name);
            return Err(no_module(name, known));
        };
        Ok(match module {
            DisabledModule::AtRuntime(rule) => with_connection(module.object(), &*rule.source),
            DisabledModule::File(_) => module.object(),
        })
    }

    /// Enables or disables a module for all callers, persistently. A disabled module is in no view.
    pub async fn switch(&self, name: &str, enabled: bool) -> Result<api::Module, Error> {
        {
            let _turn = self.registry.turn.lock().await;
            let source = self.source_of(name)?;
            let key = ToolKey::new(name, "");
            self.registry.store.tools().set_switch(&key, enabled).await?;
            self.catalogs.change_tool_registry(|tool_registry| {
                tool_registry.switches.insert(key, enabled);
            });
            if !enabled {
                source.stop();
            }
        }
        self.module_object(&Caller::owner(), name).await
    }

    /// Restarts the connections and processes of a module and resets its circuit breaker.
    pub async fn restart(&self, name: &str) -> Result<api::Module, Error> {
        let view = self.catalogs.owner_view();
        let Some(module) = view.module(name) else {
            self.source_of(name)?;
            return Err(
                Error::new(ErrorKind::Conflict, format!("The module `{name}` is disabled.")).hint("Enable it first.")
            );
        };
        if let Some(gate) = self.catalogs.snapshot().gates().get(name) {
            gate.health.reset();
        }
        module.source.restart();
        self.module_object(&Caller::owner(), name).await
    }

    /// Returns an object for each category that the caller sees, with the keys of its tools.
    pub async fn category_objects(&self, caller: &Caller) -> Result<Vec<api::Category>, Error> {
        caller.require(Scopes::READ)?;
        self.lookup.wait_for_listings(caller).await;
        let view = self.catalogs.view_of(caller);
        Ok(view.categories().iter().map(category_summary).collect())
    }

    /// Returns the object of one category, for administrators including the stored document.
    pub async fn category_object(&self, caller: &Caller, name: &str) -> Result<api::Category, Error> {
        caller.require(Scopes::READ)?;
        self.lookup.wait_for_listings(caller).await;
        let view = self.catalogs.view_of(caller);
        let found = view.categories().iter().find(|category| &*category.rule.name == name);
        let Some(category) = found else {
            let error = Error::new(ErrorKind::NotFound, format!("There is no category `{name}`."));
            let known = view.categories().iter().map(|category| &*category.rule.name);
            return Err(match suggestion::did_you_mean(name, known) {
                Some(hint) => error.hint(hint),
                None => error,
            });
        };
        let config = self.config.as_ref().filter(|_| caller.is_admin());
        let form = config.and_then(|config_admin| config_admin.category_document(name));
        Ok(api::Category { form, ..category_summary(category) })
    }

    /// Returns the source of an enabled module, or of one disabled at run time.
    fn source_of(&self, name: &str) -> Result<Arc<dyn Source>, Error> {
        let view = self.catalogs.owner_view();
        if let Some(module) = view.module(name) {
            return Ok(Arc::clone(&module.source));
        }
        match self.catalogs.disabled_modules().into_iter().find(|module| module.name() == name) {
            Some(DisabledModule::AtRuntime(rule)) => Ok(rule.source),
            Some(DisabledModule::File(_)) => {
                let message = format!("The module `{name}` is disabled in the config file.");
                Err(Error::new(ErrorKind::Conflict, message).hint("Change it in the config file."))
            }
            None => Err(no_module(name, view.modules().iter().map(|module| &*module.name))),
        }
    }

    fn module_summary(&self, caller: &Caller, module: &Module) -> api::Module {
        let state = module.source.state();
        let error = match &state {
            SourceState::Failing { .. } if caller.is_admin() => state.trouble(),
            SourceState::Failing { reason, .. } => Some(reason.clone()),
            SourceState::NeedsLogin { .. } => module.source.login_hint(),
            _ => None,
        };
        let (mut breaker, mut accounts) = (None, Vec::new());
        if let Some(gate) = self.catalogs.snapshot().gates().get(&module.name) {
            let tripped = paused_accounts(self.accounts.as_ref(), caller, module, &gate.health);
            let plain = gate.health.plain();
            let worst = tripped.iter().map(|(_, state)| *state).fold(plain, breaker::CircuitState::stricter);
            breaker = Some(worst.word().to_owned());
            let row = |(account, state): (String, breaker::CircuitState)| api::ModuleAccount {
                account,
                breaker: state.word().to_owned(),
            };
            accounts = tripped.into_iter().map(row).collect();
        }
        // Call figures are for administrators only: they include calls of tools that the caller does not see.
        let calls = || self.meter.module(&module.name).recent.calls(Instant::now()).object();
        api::Module {
            name: module.name.to_string(),
            description: module.description.clone(),
            kind: Some(module.source.kind().to_owned()),
            managed_by: self.origin_of(module).word().to_owned(),
            enabled: true,
            state: word(&state).to_owned(),
            error,
            breaker,
            accounts: Some(accounts).filter(|accounts| !accounts.is_empty()),
            version: module.version(),
            tools: module.tools.len() as u64,
            calls: caller.is_admin().then(calls),
            ..of_listing(&module.name, module.listing.as_deref())
        }
    }

    /// Returns the origin of a module. Registered tools of one module may have several; the store wins, because its
    /// tools can be changed here.
    fn origin_of(&self, module: &Module) -> ConfigOrigin {
        if !module.registered {
            return module.origin;
        }
        let origins = self.catalogs.with_tool_registry(|tool_registry| {
            let origin = |key| tool_registry.get(key).map(|entry| entry.origin);
            module.tools.iter().filter_map(|tool| origin(&tool.key)).collect::<Vec<ConfigOrigin>>()
        });
        let stored = origins.contains(&ConfigOrigin::Store).then_some(ConfigOrigin::Store);
        stored.or(origins.first().copied()).unwrap_or(ConfigOrigin::Store)
    }
}

fn category_summary(category: &Category) -> api::Category {
    api::Category {
        name: category.rule.name.to_string(),
        description: category.rule.description.clone(),
        managed_by: category.rule.origin.word().to_owned(),
        modules: category.rule.servers.iter().map(ToString::to_string).collect(),
        tools: category.enabled().map(|entry| entry.key.to_string()).collect(),
        form: None,
    }
}

/// Returns the state as a single word.
fn word(state: &SourceState) -> &'static str {
    match state {
        SourceState::NeedsLogin { .. } => "needs_login",
        _ => state.word(),
    }
}

/// Returns the members that the listing of a module determines.
fn of_listing(name: &str, listing: Option<&Listing>) -> api::Module {
    let told = listing.and_then(|listing| listing.info.text("title"));
    api::Module {
        title: told.filter(|title| !title.trim().is_empty()).unwrap_or_else(|| name.to_owned()),
        resources: listing.map_or(0, |listing| listing.resources.len() as u64),
        prompts: listing.map_or(0, |listing| listing.prompts.len() as u64),
        ..api::Module::default()
    }
}

fn with_connection(object: api::Module, source: &dyn Source) -> api::Module {
    let place = source.place();
    api::Module {
        url: place.text("url"),
        command: place.text("command"),
        args: place.get("args").and_then(|args| args.decode().ok()),
        stderr: Some(source.stderr()),
        ..object
    }
}

fn no_module<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let error = Error::new(ErrorKind::NotFound, format!("There is no module `{name}`."));
    match suggestion::did_you_mean(name, known) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
