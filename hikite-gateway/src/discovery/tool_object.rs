//! Tools as REST objects, for programs and people.

use std::sync::Arc;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::catalog::{Module, Tool};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::source::CallOrigin;
use hikite_core::time::rfc3339;
use hikite_core::view::View;

use super::Discovery;
use crate::command::ToolQuery;
use crate::overrides::with_text_overrides;
use crate::search::CandidateSet;

/// Maximum number of search hits.
const HITS_MAX: usize = 1000;

/// Filter for listing tools; the default accepts all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    pub module: Option<String>,
    /// Category of the registration, or a configured one that contains the tool.
    pub category: Option<String>,
    /// Tags of which a tool must have all.
    pub tags: Vec<String>,
    pub enabled: Option<bool>,
}

/// One page of objects, and the total number.
#[derive(Clone, Debug, Default)]
pub struct ToolListPage {
    pub items: Vec<Raw>,
    pub total: usize,
}

/// Search hits as objects, and how they were found.
#[derive(Clone, Debug, Default)]
pub struct FoundTools {
    pub items: Vec<Raw>,
    pub total: usize,
    /// Tools that fit better, of services without an account: `module`, `tool` and `how`.
    pub needs: Vec<Raw>,
    /// Advice if nothing fits.
    pub note: Option<String>,
    /// Content of `_meta`.
    pub meta: Object,
}

impl Discovery {
    /// Returns up to `count` tool objects from `start` on.
    pub async fn tools_page(
        &self,
        caller: &Caller,
        filter: &ToolFilter,
        start: usize,
        count: usize,
    ) -> Result<ToolListPage, Error> {
        caller.require(Scopes::READ)?;
        self.lookup.wait_for_listings(caller).await;
        let view = self.catalogs.view_of(caller);
        let mut total = 0;
        let mut items = Vec::new();
        for (module, tool) in filter.tools(&view) {
            if (start..start.saturating_add(count)).contains(&total) {
                items.push(self.object(&view, module, tool).raw());
            }
            total += 1;
        }
        Ok(ToolListPage { items, total })
    }

    /// Returns a tool object by key or unambiguous name.
    pub async fn tool(&self, caller: &Caller, name: &str) -> Result<Raw, Error> {
        caller.require(Scopes::READ)?;
        let find = |view: &View| view.any_tool(name).map(|tool| tool.key.clone());
        let (snapshot, key) = self.lookup.look_up_named(caller, name, find).await?;
        self.object_in(&snapshot.view_of(caller), &key, caller.is_admin())
    }

    /// Returns tool objects with a `relevance` each, best first.
    pub async fn find_tools(
        &self,
        who: (&Caller, &CallOrigin),
        query: &str,
        filter: &ToolFilter,
        limit: usize,
    ) -> Result<FoundTools, Error> {
        let caller = who.0;
        let searching = self.auditor.open_search(who).await?;
        self.lookup.wait_for_listings(caller).await;
        let view = self.catalogs.view_of(caller);
        let is_unconnected = |module: &Module| filter.module.is_none() && self.catalogs.lacks_account(caller, module);
        let (unconnected, callable): (Vec<_>, Vec<_>) =
            filter.all_tools(&view).partition(|(module, _)| is_unconnected(module));
        let among = CandidateSet::Only(
            callable.into_iter().map(|(_, tool)| &tool.key).collect(),
            unconnected.into_iter().filter(|(_, tool)| tool.is_enabled()).map(|(_, tool)| &tool.key).collect(),
        );
        let asked = ToolQuery { queries: vec![query.to_owned()], context: None, limit: HITS_MAX };
        let told = self.search.ask(caller, &view, &asked, among).await;
        let total = told.found.len();
        searching.found(told.provider, &asked.queries, total);
        let items = told.found.iter().enumerate().take(limit).filter_map(|(at, chosen)| {
            let module = view.module(&chosen.key.module)?;
            let tool = view.tool_by_key(&chosen.key)?;
            let relevance = (chosen.relevance * 1000.0).round() / 1000.0;
            let mut object = self.object(&view, module, tool).with("relevance", Raw::of(&relevance));
            if at >= told.fitting {
                object.set("weak", Raw::of(&true));
            }
            if let Some(explanation) = &chosen.explanation {
                object.set("explanation", explanation.as_str());
            }
            Some(object.raw())
        });
        let items = items.collect();
        let needs = self.needs(caller, &view, &told).await;
        Ok(FoundTools { items, total, needs, note: told.note(), meta: told.meta() })
    }

    /// Returns the tool object for an administrator who changed the tool.
    pub(crate) fn tool_object(&self, key: &ToolKey) -> Result<Raw, Error> {
        self.object_in(&self.catalogs.owner_view(), key, true)
    }

    fn object_in(&self, view: &View, key: &ToolKey, for_admin: bool) -> Result<Raw, Error> {
        let found = view.tool_by_key(key).zip(view.module(&key.module));
        let (tool, module) = found.ok_or_else(|| gone(key))?;
        let object = self.object(view, module, tool);
        if !for_admin {
            return Ok(object.raw());
        }
        let text = self.catalogs.with_tool_registry(|tool_registry| tool_registry.texts.get(key).cloned());
        Ok(with_text_overrides(object, &text.unwrap_or_default(), &tool.original).raw())
    }

    fn object(&self, view: &View, module: &Module, tool: &Tool) -> Object {
        let definition = tool.definition.object().unwrap_or_default();
        let about = &tool.about;
        let mut object = Object::default()
            .with("key", tool.key.to_string())
            .with("name", &*tool.name)
            .with("module", &*tool.key.module)
            .with("description", definition.text("description").unwrap_or_default())
            .with("inputSchema", definition.get("inputSchema").cloned().unwrap_or_else(Raw::empty_object));
        for member in ["title", "outputSchema", "annotations"] {
            if let Some(value) = definition.get(member) {
                object.set(member, value.clone());
            }
        }
        let version = about.version.as_deref().map(str::to_owned).or_else(|| module.version());
        object.set("version", version.unwrap_or_default());
        if let Some(category) = about.category.clone().or_else(|| view.categories_of(&tool.key).next()) {
            object.set("category", &*category);
        }
        object.set("tags", words(&about.tags));
        if let Some(author) = &about.author {
            object.set("author", &**author);
        }
        if !about.examples.is_empty() {
            object.set("examples", Raw::array(&about.examples));
        }
        if !about.dependencies.is_empty() {
            object.set("dependencies", words(&about.dependencies));
        }
        object.set("enabled", Raw::of(&tool.is_enabled()));
        if let Some(disabled_reason) = &tool.disabled_reason {
            object.set("disabledReason", disabled_reason.reason());
        }
        let since =
            self.catalogs.with_tool_registry(|tool_registry| tool_registry.known_since(&tool.key)).unwrap_or_default();
        object.with("registeredAt", rfc3339(since))
    }
}

impl ToolFilter {
    fn tools<'a>(&'a self, view: &'a View) -> impl Iterator<Item = (&'a Module, &'a Tool)> {
        // Modules that need a login are listed only when named.
        self.all_tools(view).filter(|(module, _)| self.module.is_some() || !module.needs_login)
    }

    fn all_tools<'a>(&'a self, view: &'a View) -> impl Iterator<Item = (&'a Module, &'a Tool)> {
        let modules = view.modules().iter();
        let modules = modules.filter(|module| self.module.as_deref().is_none_or(|name| name == &*module.name));
        let tools = modules.flat_map(|module| module.tools.iter().map(move |tool| (module, tool)));
        tools.filter(move |(_, tool)| self.accepts(view, tool))
    }

    fn accepts(&self, view: &View, tool: &Tool) -> bool {
        let about = &tool.about;
        self.enabled.is_none_or(|enabled| enabled == tool.is_enabled())
            && self.tags.iter().all(|tag| about.tags.iter().any(|own| **own == **tag))
            && self.category.as_deref().is_none_or(|name| {
                about.category.as_deref() == Some(name)
                    || view.categories_of(&tool.key).any(|category| &*category == name)
            })
    }
}

fn words(words: &[Arc<str>]) -> Raw {
    Raw::of(&words.iter().map(|word| &**word).collect::<Vec<&str>>())
}

/// Builds the error for a tool removed between two lookups.
fn gone(key: &ToolKey) -> Error {
    Error::new(ErrorKind::ToolNotFound, format!("There is no tool `{key}`."))
}
