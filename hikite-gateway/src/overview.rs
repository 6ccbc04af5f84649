//! Module and category objects for the REST API and the UI, and enabling or disabling whole modules. Administrators
//! also see call figures, connection details and disabled modules.

use std::sync::Arc;

use hikite_core::breaker;
use hikite_core::caller::{Caller, Scopes};
use hikite_core::catalog::{Module, ModuleRule};
use hikite_core::category::Category;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::listing::Listing;
use hikite_core::origin::ConfigOrigin;
use hikite_core::source::{Source, SourceState};
use hikite_core::suggestion;
use tokio::time::Instant;

use crate::gateway::Gateway;
use crate::health::ModuleHealth;

/// A configured module that is disabled and in no view.
#[derive(Clone, Debug)]
pub(crate) enum DisabledModule {
    /// Disabled by an administrator at run time.
    AtRuntime(ModuleRule),
    /// Disabled in the config file, which says no more of it.
    File(Arc<str>),
}

impl DisabledModule {
    fn name(&self) -> &str {
        match self {
            Self::AtRuntime(rule) => &rule.name,
            Self::File(name) => name,
        }
    }

    fn object(&self) -> Object {
        let (rule, origin) = match self {
            Self::AtRuntime(rule) => (Some(rule), rule.origin),
            Self::File(_) => (None, ConfigOrigin::File),
        };
        let listing = rule.and_then(|rule| rule.source.listing());
        let mut object = Object::default()
            .with("name", self.name())
            .with("title", title(self.name(), listing.as_deref()))
            .with("description", rule.map(|rule| rule.description.as_str()).unwrap_or_default());
        if let Some(rule) = rule {
            object.set("kind", rule.source.kind());
        }
        let object = object
            .with("managedBy", origin.word())
            .with("enabled", Raw::of(&false))
            .with("state", "disabled")
            .with("tools", Raw::of(&listing.as_ref().map_or(0, |listing| listing.tools.len())));
        offered(object, listing.as_deref())
    }
}

impl Gateway {
    /// Returns an object for each module that the caller sees, for administrators including disabled ones.
    pub async fn module_objects(&self, caller: &Caller) -> Result<Vec<Raw>, Error> {
        caller.require(Scopes::READ)?;
        self.wait_for_listings(caller).await;
        let view = self.view_of(caller);
        let shown = view.modules().iter().map(|module| self.module_summary(caller, module).raw());
        let disabled_modules = if caller.is_admin() { self.disabled_modules() } else { Vec::new() };
        Ok(shown.chain(disabled_modules.iter().map(|module| module.object().raw())).collect())
    }

    /// Returns the object of one module, for administrators including connection details and recent stderr output.
    pub async fn module_object(&self, caller: &Caller, name: &str) -> Result<Raw, Error> {
        caller.require(Scopes::READ)?;
        self.wait_for_listings(caller).await;
        let view = self.view_of(caller);
        if let Some(module) = view.module(name) {
            let object = self.module_summary(caller, module);
            return Ok(if caller.is_admin() { with_connection(object, &*module.source) } else { object }.raw());
        }
        let disabled_modules = if caller.is_admin() { self.disabled_modules() } else { Vec::new() };
        let Some(module) = disabled_modules.iter().find(|module| module.name() == name) else {
            let known = view.modules().iter().map(|module| &*module.name);
            return Err(no_module(name, known));
        };
        Ok(match module {
            DisabledModule::AtRuntime(rule) => with_connection(module.object(), &*rule.source),
            DisabledModule::File(_) => module.object(),
        }
        .raw())
    }

    /// Enables or disables a module for all callers, persistently. A disabled module is in no view.
    pub async fn switch_module(&self, name: &str, enabled: bool) -> Result<Raw, Error> {
        {
            let _turn = self.registry.turn.lock().await;
            let source = self.source_of(name)?;
            let key = ToolKey::new(name, "");
            self.registry.store.set_switch(&key, enabled).await?;
            self.change_tool_registry(|tool_registry| {
                tool_registry.switches.insert(key, enabled);
            });
            if !enabled {
                source.stop();
            }
        }
        self.module_object(&Caller::owner(), name).await
    }

    /// Restarts the connections and processes of a module and resets its circuit breaker.
    pub async fn restart_module(&self, name: &str) -> Result<Raw, Error> {
        let view = self.owner_view();
        let Some(module) = view.module(name) else {
            self.source_of(name)?;
            return Err(
                Error::new(ErrorKind::Conflict, format!("The module `{name}` is disabled.")).hint("Enable it first.")
            );
        };
        if let Some(gate) = self.snapshot().gates().get(name) {
            gate.health.reset();
        }
        module.source.restart();
        self.module_object(&Caller::owner(), name).await
    }

    /// Returns an object for each category that the caller sees, with the keys of its tools.
    pub async fn category_objects(&self, caller: &Caller) -> Result<Vec<Raw>, Error> {
        caller.require(Scopes::READ)?;
        self.wait_for_listings(caller).await;
        let view = self.view_of(caller);
        Ok(view.categories().iter().map(|category| category_summary(category).raw()).collect())
    }

    /// Returns the object of one category, for administrators including the stored document.
    pub async fn category_object(&self, caller: &Caller, name: &str) -> Result<Raw, Error> {
        caller.require(Scopes::READ)?;
        self.wait_for_listings(caller).await;
        let view = self.view_of(caller);
        let found = view.categories().iter().find(|category| &*category.rule.name == name);
        let Some(category) = found else {
            let error = Error::new(ErrorKind::NotFound, format!("There is no category `{name}`."));
            let known = view.categories().iter().map(|category| &*category.rule.name);
            return Err(match suggestion::did_you_mean(name, known) {
                Some(hint) => error.hint(hint),
                None => error,
            });
        };
        let mut object = category_summary(category);
        let form = self.config_admin().ok().filter(|_| caller.is_admin());
        if let Some(form) = form.and_then(|config_admin| config_admin.category_document(name)) {
            object.set("form", form);
        }
        Ok(object.raw())
    }

    /// Returns the source of an enabled module, or of one disabled at run time.
    fn source_of(&self, name: &str) -> Result<Arc<dyn Source>, Error> {
        let view = self.owner_view();
        if let Some(module) = view.module(name) {
            return Ok(Arc::clone(&module.source));
        }
        match self.disabled_modules().into_iter().find(|module| module.name() == name) {
            Some(DisabledModule::AtRuntime(rule)) => Ok(rule.source),
            Some(DisabledModule::File(_)) => {
                let message = format!("The module `{name}` is disabled in the config file.");
                Err(Error::new(ErrorKind::Conflict, message).hint("Change it in the config file."))
            }
            None => Err(no_module(name, view.modules().iter().map(|module| &*module.name))),
        }
    }

    /// Returns the module's accounts whose circuit breaker is not closed, as far as the caller may know of them.
    pub(crate) fn paused_accounts(
        &self,
        caller: &Caller,
        module: &Module,
        health: &ModuleHealth,
    ) -> Vec<(String, breaker::CircuitState)> {
        let (Some(accounts), Some(provider)) = (self.accounts(), module.source.provider()) else {
            return Vec::new();
        };
        let shown = |(id, state): (Arc<str>, _)| Some((accounts.label(caller, provider, &id)?, state));
        health.tripped().into_iter().filter_map(shown).collect()
    }

    fn module_summary(&self, caller: &Caller, module: &Module) -> Object {
        let state = module.source.state();
        let mut object = Object::default()
            .with("name", &*module.name)
            .with("title", title(&module.name, module.listing.as_deref()))
            .with("description", module.description.as_str())
            .with("kind", module.source.kind())
            .with("managedBy", self.origin_of(module).word())
            .with("enabled", Raw::of(&true))
            .with("state", word(&state));
        let trouble = match &state {
            SourceState::Failing { .. } if caller.is_admin() => state.trouble(),
            SourceState::Failing { reason, .. } => Some(reason.clone()),
            SourceState::NeedsLogin { .. } => module.source.login_hint(),
            _ => None,
        };
        if let Some(trouble) = trouble {
            object.set("error", trouble);
        }
        if let Some(gate) = self.snapshot().gates().get(&module.name) {
            let tripped = self.paused_accounts(caller, module, &gate.health);
            let plain = gate.health.plain();
            let worst = tripped.iter().map(|(_, state)| *state).fold(plain, breaker::CircuitState::stricter);
            object.set("breaker", worst.word());
            if !tripped.is_empty() {
                let row = |(account, state): &(String, breaker::CircuitState)| {
                    Object::default().with("account", account.as_str()).with("breaker", state.word()).raw()
                };
                let rows: Vec<Raw> = tripped.iter().map(row).collect();
                object.set("accounts", Raw::array(&rows));
            }
        }
        if let Some(version) = module.version() {
            object.set("version", version);
        }
        let object = object.with("tools", Raw::of(&module.tools.len()));
        let mut object = offered(object, module.listing.as_deref());
        // Call figures are for administrators only: they include calls of tools that the caller does not see.
        if caller.is_admin() {
            object.set("calls", self.meter.module(&module.name).recent.calls(Instant::now()).object());
        }
        object
    }

    /// Returns the origin of a module. Registered tools of one module may have several; the store wins, because its
    /// tools can be changed here.
    fn origin_of(&self, module: &Module) -> ConfigOrigin {
        if !module.registered {
            return module.origin;
        }
        let keepers = self.with_tool_registry(|tool_registry| {
            let origin = |key| tool_registry.get(key).map(|entry| entry.origin);
            module.tools.iter().filter_map(|tool| origin(&tool.key)).collect::<Vec<ConfigOrigin>>()
        });
        let stored = keepers.contains(&ConfigOrigin::Store).then_some(ConfigOrigin::Store);
        stored.or(keepers.first().copied()).unwrap_or(ConfigOrigin::Store)
    }
}

fn category_summary(category: &Category) -> Object {
    let modules: Vec<&str> = category.rule.servers.iter().map(|server| &**server).collect();
    let tools: Vec<String> = category.enabled().map(|entry| entry.key.to_string()).collect();
    Object::default()
        .with("name", &*category.rule.name)
        .with("description", category.rule.description.as_str())
        .with("managedBy", category.rule.origin.word())
        .with("modules", Raw::of(&modules))
        .with("tools", Raw::of(&tools))
}

/// Returns the state as a single word.
fn word(state: &SourceState) -> &'static str {
    match state {
        SourceState::NeedsLogin { .. } => "needs_login",
        _ => state.word(),
    }
}

fn title(name: &str, listing: Option<&Listing>) -> String {
    let told = listing.and_then(|listing| listing.info.text("title"));
    told.filter(|title| !title.trim().is_empty()).unwrap_or_else(|| name.to_owned())
}

fn offered(object: Object, listing: Option<&Listing>) -> Object {
    object
        .with("resources", Raw::of(&listing.map_or(0, |listing| listing.resources.len())))
        .with("prompts", Raw::of(&listing.map_or(0, |listing| listing.prompts.len())))
}

fn with_connection(mut object: Object, source: &dyn Source) -> Object {
    for (name, value) in source.place().iter() {
        object.set(name, value.clone());
    }
    object.with("stderr", Raw::of(&source.stderr()))
}

fn no_module<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let error = Error::new(ErrorKind::NotFound, format!("There is no module `{name}`."));
    match suggestion::did_you_mean(name, known) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
