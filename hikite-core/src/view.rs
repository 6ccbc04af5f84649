//! The catalog as one caller may see it: a separate catalog, built as if nothing else existed. Existence and permission
//! are one lookup, so that a hidden item looks exactly like an absent one.

mod unlisted;

use std::collections::HashSet;
use std::sync::Arc;

use crate::catalog::{Catalog, Module, Prompt, Tool};
use crate::category::Category;
use crate::error::{Error, ErrorKind};
use crate::json::Object;
use crate::key::ToolKey;
use crate::offer::HeldTool;
use crate::permission::{self, Permissions};
use crate::suggestion;

#[derive(Clone, Debug)]
pub struct View {
    catalog: Arc<Catalog>,
    /// `true` if no tool of the whole catalog is left out.
    is_whole: bool,
    /// `None` allows everything.
    permissions: Option<Arc<Permissions>>,
}

impl View {
    /// Creates the owner's view of the whole catalog.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, is_whole: true, permissions: None }
    }

    /// Creates the view of a caller with these permissions.
    pub fn restricted(whole: &Arc<Catalog>, permissions: &Arc<Permissions>) -> Self {
        if permissions.is_unrestricted() {
            return Self::new(Arc::clone(whole));
        }
        let catalog = Arc::new(whole.restricted(permissions));
        let is_whole = catalog.tools().count() == whole.tools().count();
        Self { catalog, is_whole, permissions: Some(Arc::clone(permissions)) }
    }

    /// Marks the view as belonging to another catalog than the shared one.
    #[must_use]
    pub fn apart(self) -> Self {
        Self { is_whole: false, ..self }
    }

    /// Creates an empty view of a catalog.
    pub fn nothing(whole: &Catalog) -> Self {
        let is_whole = whole.tools().next().is_none();
        Self { catalog: Arc::default(), is_whole, permissions: Some(permission::nothing()) }
    }

    /// Returns `true` if none of these modules can be visible, whatever they list.
    pub fn excludes(&self, modules: &[Arc<str>]) -> bool {
        let apart = |permissions: &Arc<Permissions>| !modules.iter().any(|module| permissions.may_reach(module));
        modules.is_empty() || self.permissions.as_ref().is_some_and(apart)
    }

    /// Returns the approximate memory that the view takes beside the whole catalog.
    pub fn bytes(&self) -> usize {
        if self.permissions.is_none() { 0 } else { self.catalog.bytes() }
    }

    /// Returns `true` if every tool of the underlying catalog is visible.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns `true` if the module's resources, prompts and notifications are visible.
    pub fn shows_module(&self, module: &str) -> bool {
        self.module(module).is_some()
            && self.permissions.as_ref().is_none_or(|permissions| permissions.allows_module(module))
    }

    /// Returns `true` if calls of this tool are allowed, listed or not.
    pub fn permits(&self, key: &ToolKey) -> bool {
        let unlisted = || self.module(&key.module).is_some_and(|module| module.listing.is_none());
        let allowed = |permissions: &Arc<Permissions>| permissions.allows_unlisted(key);
        self.tool_by_key(key).is_some() || unlisted() && self.permissions.as_ref().is_none_or(allowed)
    }

    pub fn tool_by_key(&self, key: &ToolKey) -> Option<&Tool> {
        self.catalog.tool_by_key(key)
    }

    /// Returns the tool unless it is disabled.
    pub fn usable(&self, key: &ToolKey) -> Option<&Tool> {
        self.tool_by_key(key).filter(|tool| tool.is_enabled())
    }

    pub fn modules(&self) -> &[Module] {
        &self.catalog.modules
    }

    /// Returns the modules that work without connecting an account first.
    pub fn ready_modules(&self) -> impl Iterator<Item = &Module> {
        self.modules().iter().filter(|module| !module.needs_login)
    }

    pub fn categories(&self) -> &[Category] {
        &self.catalog.categories
    }

    pub fn prompts(&self) -> &[Prompt] {
        &self.catalog.prompts
    }

    pub fn enabled_tools(&self) -> impl Iterator<Item = &Tool> {
        self.catalog.tools().filter(|tool| tool.is_enabled())
    }

    pub fn module(&self, name: &str) -> Option<&Module> {
        self.catalog.module(name)
    }

    /// Returns an enabled tool by its `direct` name, `module:tool` or `module__tool`.
    pub fn tool(&self, name: &str) -> Result<&Tool, Error> {
        let tool = self.any_tool(name)?;
        match &tool.disabled_reason {
            None => Ok(tool),
            Some(disabled_reason) => Err(disabled_reason.error(name)),
        }
    }

    /// Returns an enabled tool by its module and its name there: the displayed name, else the source's own.
    pub fn tool_of(&self, key: &ToolKey) -> Result<&Tool, Error> {
        let own = self.tool_by_key(key);
        let tool = match own {
            Some(tool) if tool.name == key.tool => own,
            _ => {
                let module = self.modules().iter().filter(|module| module.name == key.module);
                let shown = module.flat_map(|module| &module.tools).find(|tool| tool.name == key.tool);
                shown.or(own)
            }
        };
        let tool = tool.ok_or_else(|| self.no_tool_of(key))?;
        match &tool.disabled_reason {
            None => Ok(tool),
            Some(disabled_reason) => Err(disabled_reason.error(&key.tool)),
        }
    }

    fn no_tool_of(&self, key: &ToolKey) -> Error {
        let Some(module) = self.module(&key.module) else {
            let modules = self.modules().iter().map(|module| &*module.name);
            let hint = suggestion::did_you_mean(&key.module, modules);
            let error = unknown_tool(&key.to_string(), std::iter::empty());
            let hint = hint.map(|hint| format!("There is no module `{}`. {hint}", key.module));
            return Error { hint: hint.map(Into::into), ..error };
        };
        let mut held = module.held.iter();
        if let Some(held) = held.find(|held| held.name == key.tool || held.key.tool == key.tool) {
            return held.disabled_reason().error(&key.tool);
        }
        if module.listing.is_none() {
            return module.unlisted_error();
        }
        let usable = module.tools.iter().filter(|tool| tool.is_enabled());
        let hint = suggestion::did_you_mean(&key.tool, usable.map(|tool| &*tool.name));
        Error { hint: hint.map(Into::into), ..unknown_tool(&key.to_string(), std::iter::empty()) }
    }

    /// Returns a module that has a listing.
    pub fn listed_module(&self, name: &str) -> Result<&Module, Error> {
        let module = self.module(name).ok_or_else(|| {
            let error = Error::new(ErrorKind::NotFound, format!("There is no module `{name}`."));
            match suggestion::did_you_mean(name, self.modules().iter().map(|module| &*module.name)) {
                Some(hint) => error.hint(hint),
                None => error,
            }
        })?;
        if module.listing.is_none() { Err(module.unlisted_error()) } else { Ok(module) }
    }

    /// Returns a tool by name, enabled or not.
    pub fn any_tool(&self, name: &str) -> Result<&Tool, Error> {
        let by_key = || {
            let (module, tool) = name.split_once(':').or_else(|| name.split_once("__"))?;
            self.catalog.tool_by_key(&ToolKey::new(module, tool))
        };
        self.catalog.tool_by_direct_name(name).or_else(by_key).ok_or_else(|| self.no_tool(name))
    }

    /// Returns the error for a tool that is held back, if the name refers to one.
    fn held(&self, name: &str) -> Option<Error> {
        let keyed = name.split_once(':').or_else(|| name.split_once("__"));
        let matches =
            |held: &&HeldTool| held.direct.contains(name) || keyed == Some((&*held.key.module, &*held.key.tool));
        let held = self.modules().iter().flat_map(|module| &module.held).find(matches)?;
        Some(held.disabled_reason().error(name))
    }

    /// Returns the module that the name's prefix refers to (`module:tool` or `module__tool`); the longest match wins.
    pub fn owner(&self, name: &str) -> Option<&Module> {
        let owns = |module: &&Module| {
            let rest = name.strip_prefix(&*module.name);
            rest.is_some_and(|rest| rest.starts_with(':') || rest.starts_with("__"))
        };
        self.modules().iter().filter(owns).max_by_key(|module| module.name.len())
    }

    /// Returns the module without a listing that a name belongs to according to the config: its prefix names the
    /// module, or the module's own rule lists it.
    fn unlisted_owner(&self, name: &str) -> Option<&Module> {
        let writes = |module: &&Module| {
            let mut written = module.selection.written();
            written.any(|written| written.matches(&module.name, name))
                && self.permits(&ToolKey::new(Arc::clone(&module.name), name))
        };
        let owner = self.owner(name).or_else(|| self.unlisted_modules().find(writes));
        owner.filter(|module| module.listing.is_none())
    }

    fn unlisted_modules(&self) -> impl Iterator<Item = &Module> {
        self.modules().iter().filter(|module| module.listing.is_none())
    }

    /// Describes the modules without a listing, which might have the tool.
    fn unlisted_hint(&self) -> Option<String> {
        let mut unlisted_modules = self.unlisted_modules();
        let first = unlisted_modules.next()?;
        let others = unlisted_modules.count();
        if others > 0 {
            return Some(format!("`{}` and {others} more have not returned their tool lists yet.", first.name));
        }
        Some(format!("It may belong to `{}`: {}", first.name, first.unlisted_error().message))
    }

    fn no_tool(&self, name: &str) -> Error {
        if let Some(error) = self.held(name) {
            return error;
        }
        if let Some(module) = self.unlisted_owner(name) {
            return module.unlisted_error();
        }
        let namesakes: Vec<String> =
            self.enabled_tools().filter(|tool| &*tool.name == name).map(|tool| format!("`{}`", tool.key)).collect();
        if namesakes.is_empty() {
            let error = unknown_tool(name, self.enabled_tools().map(|tool| &*tool.direct.shown));
            return match self.unlisted_hint() {
                Some(hint) if error.hint.is_none() => error.hint(hint),
                _ => error,
            };
        }
        Error::new(ErrorKind::ToolNotFound, format!("Several tools are called `{name}`."))
            .hint(format!("Use one of these names: {}.", namesakes.join(" or ")))
    }

    pub fn category(&self, name: &str) -> Result<&Category, Error> {
        self.categories().iter().find(|category| &*category.rule.name == name).ok_or_else(|| {
            let names = self.categories().iter().map(|category| &*category.rule.name);
            let list = names.clone().collect::<Vec<_>>().join(", ");
            let hint =
                suggestion::did_you_mean(name, names).unwrap_or_else(|| format!("Available categories: {list}."));
            Error::new(ErrorKind::ToolNotFound, format!("There is no category `{name}`.")).hint(hint)
        })
    }

    /// Returns the names of the categories that show a tool.
    pub fn categories_of(&self, key: &ToolKey) -> impl Iterator<Item = Arc<str>> {
        let showing = self.categories().iter().filter(|category| category.shows(key));
        showing.map(|category| Arc::clone(&category.rule.name))
    }

    /// Returns the module that lists a resource.
    pub fn resource(&self, uri: &str) -> Result<&Module, Error> {
        self.catalog.module_of_uri(uri).ok_or_else(|| no_resource(uri))
    }

    /// Returns the only module that an unlisted URI may belong to: its listed URIs begin alike, or it alone offers
    /// resources without listing any. If several qualify, none is asked.
    pub fn module_for_unlisted(&self, uri: &str) -> Result<&Module, Error> {
        let fitting = unlisted::candidates(self.modules(), uri);
        match fitting.as_slice() {
            [module] => Ok(module),
            [] => Err(no_resource(uri)),
            several => {
                let names: Vec<String> = several.iter().map(|module| format!("`{}`", module.name)).collect();
                let hint = format!(
                    "No module lists it, and it may belong to {}. Use a link that a tool of the right module has \
                     just returned, or one from `resources/list`.",
                    names.join(" or to ")
                );
                Err(no_resource(uri).hint(hint))
            }
        }
    }

    /// Returns the protocol extensions of all modules, with the settings of the first module that declares each.
    pub fn extensions(&self) -> Object {
        let listings = self.modules().iter().filter_map(|module| module.listing.as_ref());
        let offered = listings.filter_map(|listing| listing.capabilities.get("extensions")?.object());
        let (mut seen, mut all) = (HashSet::new(), Vec::new());
        for offered in offered {
            for (name, settings) in offered.iter().filter(|(name, _)| seen.insert((*name).to_owned())) {
                all.push((name.into(), settings.clone()));
            }
        }
        all.into_iter().collect()
    }

    pub fn prompt(&self, name: &str) -> Result<(&Module, &Prompt), Error> {
        let prompt = self.catalog.prompt(name);
        let unlisted_modules = self.owner(name).filter(|module| module.listing.is_none());
        if let Some(module) = unlisted_modules.filter(|_| prompt.is_none()) {
            return Err(module.unlisted_error());
        }
        self.or_no_prompt(prompt, name, self.prompts().iter().map(|prompt| &*prompt.direct.shown))
    }

    /// Returns a prompt by its module and its name there.
    pub fn prompt_of(&self, module: &str, name: &str) -> Result<(&Module, &Prompt), Error> {
        self.listed_module(module)?;
        let within = |prompt: &&Prompt| &*self.modules()[prompt.module].name == module;
        let mut prompts = self.prompts().iter().filter(within);
        let known = prompts.clone().map(|prompt| &*prompt.item.name);
        self.or_no_prompt(prompts.find(|prompt| &*prompt.item.name == name), name, known)
    }

    fn or_no_prompt<'a>(
        &'a self,
        prompt: Option<&'a Prompt>,
        name: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Result<(&'a Module, &'a Prompt), Error> {
        let prompt = prompt.ok_or_else(|| {
            let error = Error::new(ErrorKind::Validation, format!("There is no prompt `{name}`."));
            match suggestion::did_you_mean(name, known) {
                Some(hint) => error.hint(hint),
                None => error,
            }
        })?;
        Ok((&self.modules()[prompt.module], prompt))
    }
}

fn no_resource(uri: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("There is no resource `{uri}`."))
        .hint("`resources/list` and `resources/templates/list` show all resources.")
}

pub fn unknown_tool<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let error = Error::new(ErrorKind::ToolNotFound, format!("There is no tool `{name}`."));
    match suggestion::did_you_mean(name, known) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
