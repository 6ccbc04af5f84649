//! The REST surface: tools as JSON objects and results as plain values, for programs and people.

use std::sync::Arc;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::catalog::{Module, Tool};
use hikite_core::compact::AnswerFormat;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::source::{CallContext, CallOrigin};
use hikite_core::time::rfc3339;
use hikite_core::tool_output::ToolOutput;
use hikite_core::view::View;

use super::arguments;
use crate::accounts::selection::with_account;
use crate::command::{CallOptions, Command, Dialect, ToolTarget};
use crate::gateway::Gateway;
use crate::handle::{ResultOwner, ResultPart, is_stored_result};
use crate::off_worker::off_worker;
use crate::render::{CompactOutput, META, OutputOptions};
use crate::search::{CandidateSet, ToolQuery};

/// Maximum length of a failed tool's message.
const MESSAGE_CHARS: usize = 2000;
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

impl Gateway {
    /// Returns up to `count` tool objects from `start` on.
    pub async fn tools_page(
        &self,
        caller: &Caller,
        filter: &ToolFilter,
        start: usize,
        count: usize,
    ) -> Result<ToolListPage, Error> {
        caller.require(Scopes::READ)?;
        self.wait_for_listings(caller).await;
        let view = self.view_of(caller);
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
        let (snapshot, key) = self.look_up_named(caller, name, find).await?;
        self.object_in(&snapshot.view_of(caller), &key, caller.is_admin())
    }

    /// Returns tool objects with a `relevance` each, best first.
    pub async fn find_tools(
        &self,
        who: (&Caller, &CallOrigin),
        query: &str,
        filter: &ToolFilter,
        limit: usize,
    ) -> Result<ToolListPage, Error> {
        let caller = who.0;
        let searching = self.audit_search(who).await?;
        self.wait_for_listings(caller).await;
        let view = self.view_of(caller);
        let among = CandidateSet::Only(filter.tools(&view).map(|(_, tool)| &tool.key).collect());
        let asked = ToolQuery { queries: vec![query.to_owned()], context: None, limit: HITS_MAX };
        let told = self.ask(caller, &view, &asked, among).await;
        let total = told.found.len();
        searching.found(told.provider, &asked.queries, total);
        let items = told.found.into_iter().take(limit).filter_map(|chosen| {
            let module = view.module(&chosen.key.module)?;
            let tool = view.tool_by_key(&chosen.key)?;
            let relevance = (chosen.relevance * 1000.0).round() / 1000.0;
            let mut object = self.object(&view, module, tool).with("relevance", Raw::of(&relevance));
            if let Some(explanation) = &chosen.explanation {
                object.set("explanation", explanation.as_str());
            }
            Some(object.raw())
        });
        Ok(ToolListPage { items: items.collect(), total })
    }

    /// Runs a tool and returns the value of its result. An error result becomes an error.
    pub async fn run_tool(
        &self,
        name: &str,
        parameters: Option<Raw>,
        options: CallOptions,
        context: CallContext,
    ) -> Result<ToolOutput, Error> {
        let ran = self.run_tool_as(name, parameters, (options, OutputOptions::default()), context).await;
        ran.map(|(answer, _)| answer)
    }

    /// Runs a tool and returns its result in the requested form, with a description of that form. The default is the
    /// plain value, since programs read JSON. The name may be the handle of a stored result.
    pub async fn run_tool_as(
        &self,
        name: &str,
        parameters: Option<Raw>,
        (options, wanted): (CallOptions, OutputOptions),
        context: CallContext,
    ) -> Result<(ToolOutput, Option<Raw>), Error> {
        self.run_tool_with(name, None, parameters, (options, wanted), context).await
    }

    /// Runs a tool with the named account and returns its result in the requested form.
    pub async fn run_tool_with(
        &self,
        name: &str,
        account: Option<&str>,
        parameters: Option<Raw>,
        (options, wanted): (CallOptions, OutputOptions),
        context: CallContext,
    ) -> Result<(ToolOutput, Option<Raw>), Error> {
        let mut params = with_account(Object::default().with("name", name), account);
        let target = ToolTarget::Named(name.to_owned());
        let command = if is_stored_result(&Object::default().with("uri", name)) {
            let part = ResultPart::read(&arguments(parameters.as_ref())?)?;
            Command::Fetch { uri: name.to_owned(), part, params, dialect: Dialect::Result }
        } else {
            if let Some(parameters) = parameters {
                params.set("arguments", parameters);
            }
            if wanted == OutputOptions::default() {
                Command::Call { target, params, options }
            } else {
                let wanted = OutputOptions { format: wanted.format.or(Some(AnswerFormat::Raw)), ..wanted };
                Command::Execute { target, params, options, wanted, dialect: Dialect::Result }
            }
        };
        let result = self.dispatch_on("rest", command, context).await?;
        let (answer, about) = off_worker(result.bytes().len().saturating_mul(2), || read_with_meta(&result)).await;
        Ok((require_success(name, answer)?, about))
    }

    /// Runs a tool and returns its value, with the compact text that a model would receive and its description.
    pub async fn run_tool_with_preview(
        &self,
        name: &str,
        account: Option<&str>,
        parameters: Option<Raw>,
        (options, OutputOptions { select, .. }): (CallOptions, OutputOptions),
        context: CallContext,
    ) -> Result<(ToolOutput, String, Raw), Error> {
        let mut params = with_account(Object::default().with("name", name), account);
        if let Some(parameters) = parameters.clone() {
            params.set("arguments", parameters);
        }
        let holder = ResultOwner::of(&mut params, &context);
        let command = Command::Call { target: ToolTarget::Named(name.to_owned()), params, options };
        let result = self.dispatch_on("rest", command, context).await?;
        let read = off_worker(result.bytes().len(), || ToolOutput::read(&result)).await;
        let mut answer = require_success(name, read)?;
        let key = name.split_once(':').map(|(module, tool)| ToolKey::new(module, tool));
        let wanted = OutputOptions { format: Some(AnswerFormat::Compact), select };
        let shape = self.shape_of(key.as_ref(), parameters.as_ref(), &result, &wanted, holder.caller()).await;
        if let Some(selector) = &wanted.select {
            answer.value = self.select(selector, answer.value, holder.caller()).await?;
        }
        let budget = self.limits.compact_bytes;
        let shortened = self.shortened(Dialect::Result, &answer.value, shape.as_ref(), budget, &holder).await;
        let CompactOutput { text, mut about } = CompactOutput::of(shortened);
        about.set("bytes", Raw::of(&[answer.value.bytes().len(), text.len()]));
        Ok((answer, text, about.raw()))
    }

    /// Returns the tool object for an administrator who changed the tool.
    pub(crate) fn tool_object(&self, key: &ToolKey) -> Result<Raw, Error> {
        self.object_in(&self.owner_view(), key, true)
    }

    fn object_in(&self, view: &View, key: &ToolKey, with_text_overrides: bool) -> Result<Raw, Error> {
        let found = view.tool_by_key(key).zip(view.module(&key.module));
        let (tool, module) = found.ok_or_else(|| gone(key))?;
        let object = self.object(view, module, tool);
        Ok(if with_text_overrides { self.with_text_overrides(object, key, &tool.original) } else { object }.raw())
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
        let since = self.with_tool_registry(|tool_registry| tool_registry.known_since(&tool.key)).unwrap_or_default();
        object.with("registeredAt", rfc3339(since))
    }
}

impl ToolFilter {
    fn tools<'a>(&'a self, view: &'a View) -> impl Iterator<Item = (&'a Module, &'a Tool)> {
        // Modules that need a login are listed only when named.
        let modules = view.modules().iter().filter(|module| match self.module.as_deref() {
            Some(name) => name == &*module.name,
            None => !module.needs_login,
        });
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

/// Returns the value of a result, and the description of its form.
fn read_with_meta(result: &Raw) -> (ToolOutput, Option<Raw>) {
    let about = result.object().and_then(|members| members.get("_meta")?.object()?.remove(META));
    let mut answer = ToolOutput::read(result);
    if about.is_some() {
        // Text that happens to be JSON is still text.
        answer.value = Raw::from(answer.text.as_str());
    }
    (answer, about)
}

fn words(words: &[Arc<str>]) -> Raw {
    Raw::of(&words.iter().map(|word| &**word).collect::<Vec<&str>>())
}

/// Builds the error for a tool removed between two lookups.
fn gone(key: &ToolKey) -> Error {
    Error::new(ErrorKind::ToolNotFound, format!("There is no tool `{key}`."))
}

/// Turns an error result into an error with the tool's own message.
fn require_success(name: &str, answer: ToolOutput) -> Result<ToolOutput, Error> {
    if !answer.failed {
        return Ok(answer);
    }
    let words: String = answer.text.chars().take(MESSAGE_CHARS).collect();
    let message = format!("Tool execution failed: {name}: {words}");
    Err(Error::new(ErrorKind::ToolExecution, message.trim_end_matches([':', ' '])))
}
