//! Inputs of the catalog, and how modules, catalogs and gates are derived from them.

use std::sync::Arc;

use hikite_core::catalog::{Catalog, ModuleRule};
use hikite_core::category::CategoryRule;
use hikite_core::limits::Limits;
use hikite_core::origin::ConfigOrigin;
use hikite_core::permission::Permissions;
use hikite_core::registration::ToolRegistration;
use hikite_core::source::ToolHandler;

use crate::admission::{AdmissionGate, Throttle};
use crate::health::ModuleHealth;
use crate::meter::ModuleMeter;
use crate::overrides::with_overrides;
use crate::pin::PinStore;
use crate::snapshot::{Snapshot, UserPermissions};
use crate::tool_registry::{RegisteredTool, ToolRegistry};
use hikite_identity::{Project, ProjectMap};
use hikite_store::clock::now_ms;

/// Rules of the config.
#[derive(Clone, Debug, Default)]
pub struct GatewayRules {
    pub modules: Vec<(ModuleRule, Throttle)>,
    /// Modules that the config file disables.
    pub disabled: Vec<Arc<str>>,
    pub categories: Vec<Arc<CategoryRule>>,
    pub tools: Vec<(ToolRegistration, Arc<dyn ToolHandler>)>,
    pub projects: Vec<Arc<Project>>,
    /// Permissions of users who have none of their own.
    pub default_permissions: Option<Arc<Permissions>>,
}

/// A configured module that is disabled and in no view.
#[derive(Clone, Debug)]
pub(crate) enum DisabledModule {
    /// Disabled by an administrator at run time.
    AtRuntime(ModuleRule),
    /// Disabled in the config file, which says no more of it.
    File(Arc<str>),
}

/// Inputs of the catalog.
#[derive(Debug, Default)]
pub(super) struct CatalogState {
    pub(super) rules: GatewayRules,
    pub(super) tool_registry: ToolRegistry,
    pub(super) projects: Arc<ProjectMap>,
    pub(super) masks: Arc<UserPermissions>,
    /// Subject of the owner, if there is one.
    pub(super) owner: Option<Arc<str>>,
    pub(super) pins: PinStore,
}

impl CatalogState {
    /// Takes new rules. Tools of the file take precedence over registered tools of the same name.
    pub(super) fn take(&mut self, mut rules: GatewayRules) {
        let away = self.tool_registry.of(ConfigOrigin::File).map(|(key, _)| key.clone()).collect();
        let now = now_ms();
        let tools = std::mem::take(&mut rules.tools).into_iter().map(|(registration, implementation)| {
            let key = &registration.key;
            if self.tool_registry.get(key).is_some_and(|entry| entry.origin != ConfigOrigin::File) {
                tracing::warn!(tool = %key, "the config file defines a tool that is also registered; the file's definition is used");
            }
            let registered_at = self.tool_registry.known_since(key).unwrap_or(now);
            let registration = Arc::new(registration);
            RegisteredTool { registration, implementation, registered_at, origin: ConfigOrigin::File }
        });
        let tools = tools.collect();
        self.tool_registry.replace(away, tools);
        self.rules = rules;
    }

    pub(super) fn catalog(&mut self, modules: &[(ModuleRule, Throttle)], before: &Catalog) -> Catalog {
        let offers = self.pins.check_modules(modules.iter().map(|(rule, _)| rule), now_ms());
        let catalog = Catalog::of(offers, &self.rules.categories, &self.tool_registry.switches, before);
        self.tool_registry.note_first_seen(&catalog, now_ms());
        catalog
    }

    /// Returns the enabled modules.
    pub(super) fn modules(&self, limits: &Limits) -> Vec<(ModuleRule, Throttle)> {
        let mut modules = self.all_modules(limits);
        modules.retain(|(rule, _)| !self.tool_registry.is_module_disabled(&rule.name));
        if !self.tool_registry.texts.is_empty() {
            for (rule, _) in &mut modules {
                *rule = with_overrides(rule, &self.tool_registry.texts);
            }
        }
        modules
    }

    pub(super) fn disabled_modules(&self, limits: &Limits) -> Vec<DisabledModule> {
        let all = self.all_modules(limits).into_iter().map(|(rule, _)| rule);
        let switched =
            all.filter(|rule| self.tool_registry.is_module_disabled(&rule.name)).map(DisabledModule::AtRuntime);
        switched.chain(self.rules.disabled.iter().cloned().map(DisabledModule::File)).collect()
    }

    /// Returns the modules of the file, then the registered ones.
    pub(super) fn all_modules(&self, limits: &Limits) -> Vec<(ModuleRule, Throttle)> {
        let own = self.rules.modules.iter();
        let taken = |name: &str| own.clone().any(|(rule, _)| &*rule.name == name);
        let registered = self.tool_registry.modules().filter(|rule| !taken(&rule.name));
        let throttle = Throttle::of(limits);
        own.clone().cloned().chain(registered.map(|rule| (rule.clone(), throttle))).collect()
    }
}

impl Snapshot {
    /// Returns the gate of a module: the existing one if source and limits are the same, so that a reload keeps the
    /// running calls; with other limits a new one with the same health. Registered tools come and go within one module.
    pub(super) fn gate_like(
        &self,
        rule: &ModuleRule,
        throttle: Throttle,
        limits: &Limits,
        meter: Arc<ModuleMeter>,
    ) -> Arc<AdmissionGate> {
        let old = self.catalog.module(&rule.name);
        let same = old.is_some_and(|old| old.registered && rule.registered || Arc::ptr_eq(&old.source, &rule.source));
        match self.gates().get(&rule.name).filter(|_| same) {
            Some(gate) if gate.throttle == throttle => Arc::clone(gate),
            Some(gate) => Arc::new(AdmissionGate::new(throttle, Arc::clone(&gate.health), meter)),
            None => Arc::new(AdmissionGate::new(throttle, Arc::new(ModuleHealth::new(limits)), meter)),
        }
    }
}
