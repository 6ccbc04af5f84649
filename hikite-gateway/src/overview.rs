//! Module and category objects for the REST API and the UI, and enabling or disabling whole modules. Administrators
//! also see call figures, connection details and disabled modules.

use std::sync::Arc;

use hikite_core::breaker;
use hikite_core::caller::{Caller, Scopes};
use hikite_core::catalog::{Module, ModuleRule};
use hikite_core::category::Category;
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::keeper::Keeper;
use hikite_core::key::ToolKey;
use hikite_core::listing::Listing;
use hikite_core::source::{Source, State};
use hikite_core::suggest;
use tokio::time::Instant;

use crate::gateway::Gateway;
use crate::health::Health;

/// A configured module that is disabled and in no view.
#[derive(Clone, Debug)]
pub(crate) enum Resting {
    /// Disabled by an administrator at run time.
    Switched(ModuleRule),
    /// Disabled in the config file, which says no more of it.
    File(Arc<str>),
}

impl Resting {
    fn name(&self) -> &str {
        match self {
            Self::Switched(rule) => &rule.name,
            Self::File(name) => name,
        }
    }

    fn object(&self) -> Object {
        let (rule, keeper) = match self {
            Self::Switched(rule) => (Some(rule), rule.keeper),
            Self::File(_) => (None, Keeper::File),
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
            .with("managedBy", keeper.word())
            .with("enabled", Raw::of(&false))
            .with("state", "disabled")
            .with("tools", Raw::of(&listing.as_ref().map_or(0, |listing| listing.tools.len())));
        offered(object, listing.as_deref())
    }
}

impl Gateway {
    /// Returns an object for each module that the caller sees, for administrators including disabled ones.
    pub async fn module_objects(&self, caller: &Caller) -> Result<Vec<Raw>, Error> {
        caller.must_have(Scopes::READ)?;
        self.settle(caller).await;
        let view = self.view_of(caller);
        let shown = view.modules().iter().map(|module| self.about_module(caller, module).raw());
        let resting = if caller.is_admin() { self.resting() } else { Vec::new() };
        Ok(shown.chain(resting.iter().map(|module| module.object().raw())).collect())
    }

    /// Returns the object of one module, for administrators including connection details and recent stderr output.
    pub async fn module_object(&self, caller: &Caller, name: &str) -> Result<Raw, Error> {
        caller.must_have(Scopes::READ)?;
        self.settle(caller).await;
        let view = self.view_of(caller);
        if let Some(module) = view.module(name) {
            let object = self.about_module(caller, module);
            return Ok(if caller.is_admin() { with_place(object, &*module.source) } else { object }.raw());
        }
        let resting = if caller.is_admin() { self.resting() } else { Vec::new() };
        let Some(module) = resting.iter().find(|module| module.name() == name) else {
            let known = view.modules().iter().map(|module| &*module.name);
            return Err(no_module(name, known));
        };
        Ok(match module {
            Resting::Switched(rule) => with_place(module.object(), &*rule.source),
            Resting::File(_) => module.object(),
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
            self.change_roster(|roster| {
                roster.switches.insert(key, enabled);
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
            return Err(Error::new(Kind::Conflict, format!("the module `{name}` is switched off"))
                .hint("switch it on first"));
        };
        if let Some(gate) = self.snapshot().gates().get(name) {
            gate.health.forgive();
        }
        module.source.restart();
        self.module_object(&Caller::owner(), name).await
    }

    /// Returns an object for each category that the caller sees, with the keys of its tools.
    pub async fn category_objects(&self, caller: &Caller) -> Result<Vec<Raw>, Error> {
        caller.must_have(Scopes::READ)?;
        self.settle(caller).await;
        let view = self.view_of(caller);
        Ok(view.categories().iter().map(|category| about_category(category).raw()).collect())
    }

    /// Returns the object of one category, for administrators including the stored document.
    pub async fn category_object(&self, caller: &Caller, name: &str) -> Result<Raw, Error> {
        caller.must_have(Scopes::READ)?;
        self.settle(caller).await;
        let view = self.view_of(caller);
        let found = view.categories().iter().find(|category| &*category.rule.name == name);
        let Some(category) = found else {
            let error = Error::new(Kind::NotFound, format!("there is no category `{name}`"));
            let known = view.categories().iter().map(|category| &*category.rule.name);
            return Err(match suggest::did_you_mean(name, known) {
                Some(hint) => error.hint(hint),
                None => error,
            });
        };
        let mut object = about_category(category);
        let form = self.workshop().ok().filter(|_| caller.is_admin());
        if let Some(form) = form.and_then(|workshop| workshop.category_form(name)) {
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
        match self.resting().into_iter().find(|module| module.name() == name) {
            Some(Resting::Switched(rule)) => Ok(rule.source),
            Some(Resting::File(_)) => {
                let message = format!("the module `{name}` is switched off in the config file");
                Err(Error::new(Kind::Conflict, message).hint("change it in the config file"))
            }
            None => Err(no_module(name, view.modules().iter().map(|module| &*module.name))),
        }
    }

    /// Returns the module's accounts whose circuit breaker is not closed, as far as the caller may know of them.
    pub(crate) fn paused_accounts(
        &self,
        caller: &Caller,
        module: &Module,
        health: &Health,
    ) -> Vec<(String, breaker::State)> {
        let (Some(accounts), Some(provider)) = (self.accounts(), module.source.provider()) else {
            return Vec::new();
        };
        let shown = |(id, state): (Arc<str>, _)| Some((accounts.label(caller, provider, &id)?, state));
        health.troubled().into_iter().filter_map(shown).collect()
    }

    fn about_module(&self, caller: &Caller, module: &Module) -> Object {
        let state = module.source.state();
        let mut object = Object::default()
            .with("name", &*module.name)
            .with("title", title(&module.name, module.listing.as_deref()))
            .with("description", module.description.as_str())
            .with("kind", module.source.kind())
            .with("managedBy", self.keeper_of(module).word())
            .with("enabled", Raw::of(&true))
            .with("state", word(&state));
        let trouble = match &state {
            State::Failing { .. } if caller.is_admin() => state.trouble(),
            State::Failing { reason, .. } => Some(reason.clone()),
            State::NeedsLogin { .. } => module.source.advice(),
            _ => None,
        };
        if let Some(trouble) = trouble {
            object.set("error", trouble);
        }
        if let Some(gate) = self.snapshot().gates().get(&module.name) {
            let troubled = self.paused_accounts(caller, module, &gate.health);
            let plain = gate.health.plain();
            let worst = troubled.iter().map(|(_, state)| *state).fold(plain, breaker::State::worse);
            object.set("breaker", worst.word());
            if !troubled.is_empty() {
                let row = |(account, state): &(String, breaker::State)| {
                    Object::default().with("account", account.as_str()).with("breaker", state.word()).raw()
                };
                let rows: Vec<Raw> = troubled.iter().map(row).collect();
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
    fn keeper_of(&self, module: &Module) -> Keeper {
        if !module.registered {
            return module.keeper;
        }
        let keepers = self.with_roster(|roster| {
            let keeper = |key| roster.get(key).map(|entry| entry.keeper);
            module.tools.iter().filter_map(|tool| keeper(&tool.key)).collect::<Vec<Keeper>>()
        });
        let stored = keepers.contains(&Keeper::Store).then_some(Keeper::Store);
        stored.or(keepers.first().copied()).unwrap_or(Keeper::Store)
    }
}

fn about_category(category: &Category) -> Object {
    let modules: Vec<&str> = category.rule.servers.iter().map(|server| &**server).collect();
    let tools: Vec<String> = category.enabled().map(|entry| entry.key.to_string()).collect();
    Object::default()
        .with("name", &*category.rule.name)
        .with("description", category.rule.description.as_str())
        .with("managedBy", category.rule.keeper.word())
        .with("modules", Raw::of(&modules))
        .with("tools", Raw::of(&tools))
}

/// Returns the state as a single word.
fn word(state: &State) -> &'static str {
    match state {
        State::NeedsLogin { .. } => "needs_login",
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

fn with_place(mut object: Object, source: &dyn Source) -> Object {
    for (name, value) in source.place().iter() {
        object.set(name, value.clone());
    }
    object.with("stderr", Raw::of(&source.stderr()))
}

fn no_module<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let error = Error::new(Kind::NotFound, format!("there is no module `{name}`"));
    match suggest::did_you_mean(name, known) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
