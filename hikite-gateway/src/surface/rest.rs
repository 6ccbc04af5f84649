//! The REST surface: tools as JSON objects and results as plain values, for programs and people.

use std::sync::Arc;

use hikite_core::answer::Answer;
use hikite_core::caller::{Caller, Scopes};
use hikite_core::catalog::{Module, Tool};
use hikite_core::compact::Format;
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::source::{CallContext, Origin};
use hikite_core::time::rfc3339;
use hikite_core::view::View;

use super::arguments;
use crate::aside::by_cost;
use crate::command::{CallOptions, Command, Dialect, Target};
use crate::exchange::choice::with_account;
use crate::gateway::Gateway;
use crate::handle::{Holder, Part, is_kept};
use crate::present::{META, Presented, Wanted};
use crate::search::{Among, Inquiry};

/// Maximum length of a failed tool's message.
const WORDS: usize = 2000;
/// Maximum number of search hits.
const FOUND_MAX: usize = 1000;

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
pub struct Found {
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
    ) -> Result<Found, Error> {
        caller.must_have(Scopes::READ)?;
        self.settle(caller).await;
        let view = self.view_of(caller);
        let mut total = 0;
        let mut items = Vec::new();
        for (module, tool) in filter.tools(&view) {
            if (start..start.saturating_add(count)).contains(&total) {
                items.push(self.object(&view, module, tool).raw());
            }
            total += 1;
        }
        Ok(Found { items, total })
    }

    /// Returns a tool object by key or unambiguous name.
    pub async fn tool(&self, caller: &Caller, name: &str) -> Result<Raw, Error> {
        caller.must_have(Scopes::READ)?;
        let find = |view: &View| view.any_tool(name).map(|tool| tool.key.clone());
        let (snapshot, key) = self.look_up_named(caller, name, find).await?;
        self.object_in(&snapshot.view_of(caller), &key, caller.is_admin())
    }

    /// Returns tool objects with a `relevance` each, best first.
    pub async fn find_tools(
        &self,
        who: (&Caller, &Origin),
        query: &str,
        filter: &ToolFilter,
        limit: usize,
    ) -> Result<Found, Error> {
        let caller = who.0;
        let searching = self.audit_search(who).await?;
        self.settle(caller).await;
        let view = self.view_of(caller);
        let among = Among::These(filter.tools(&view).map(|(_, tool)| &tool.key).collect());
        let asked = Inquiry { queries: vec![query.to_owned()], context: None, limit: FOUND_MAX };
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
        Ok(Found { items: items.collect(), total })
    }

    /// Runs a tool and returns the value of its result. An error result becomes an error.
    pub async fn run_tool(
        &self,
        name: &str,
        parameters: Option<Raw>,
        options: CallOptions,
        context: CallContext,
    ) -> Result<Answer, Error> {
        let ran = self.run_tool_as(name, parameters, (options, Wanted::default()), context).await;
        ran.map(|(answer, _)| answer)
    }

    /// Runs a tool and returns its result in the requested form, with a description of that form. The default is the
    /// plain value, since programs read JSON. The name may be the handle of a stored result.
    pub async fn run_tool_as(
        &self,
        name: &str,
        parameters: Option<Raw>,
        (options, wanted): (CallOptions, Wanted),
        context: CallContext,
    ) -> Result<(Answer, Option<Raw>), Error> {
        self.run_tool_with(name, None, parameters, (options, wanted), context).await
    }

    /// Runs a tool with the named account and returns its result in the requested form.
    pub async fn run_tool_with(
        &self,
        name: &str,
        account: Option<&str>,
        parameters: Option<Raw>,
        (options, wanted): (CallOptions, Wanted),
        context: CallContext,
    ) -> Result<(Answer, Option<Raw>), Error> {
        let mut params = with_account(Object::default().with("name", name), account);
        let target = Target::Named(name.to_owned());
        let command = if is_kept(&Object::default().with("uri", name)) {
            let part = Part::read(&arguments(parameters.as_ref())?)?;
            Command::Fetch { uri: name.to_owned(), part, params, dialect: Dialect::Result }
        } else {
            if let Some(parameters) = parameters {
                params.set("arguments", parameters);
            }
            if wanted == Wanted::default() {
                Command::Call { target, params, options }
            } else {
                let wanted = Wanted { format: wanted.format.or(Some(Format::Raw)), ..wanted };
                Command::Execute { target, params, options, wanted, dialect: Dialect::Result }
            }
        };
        let result = self.dispatch_on("rest", command, context).await?;
        let (answer, about) =
            by_cost(result.bytes().len().saturating_mul(2), || read_with_meta(&result)).await;
        Ok((succeeded(name, answer)?, about))
    }

    /// Runs a tool and returns its value, with the compact text that a model would receive and its description.
    pub async fn run_tool_both(
        &self,
        name: &str,
        account: Option<&str>,
        parameters: Option<Raw>,
        (options, Wanted { select, .. }): (CallOptions, Wanted),
        context: CallContext,
    ) -> Result<(Answer, String, Raw), Error> {
        let mut params = with_account(Object::default().with("name", name), account);
        if let Some(parameters) = parameters.clone() {
            params.set("arguments", parameters);
        }
        let holder = Holder::of(&mut params, &context);
        let command = Command::Call { target: Target::Named(name.to_owned()), params, options };
        let result = self.dispatch_on("rest", command, context).await?;
        let read = by_cost(result.bytes().len(), || Answer::read(&result)).await;
        let mut answer = succeeded(name, read)?;
        let key = name.split_once(':').map(|(module, tool)| ToolKey::new(module, tool));
        let wanted = Wanted { format: Some(Format::Compact), select };
        let shape = self.shape_of(key.as_ref(), parameters.as_ref(), &result, &wanted, holder.caller()).await;
        if let Some(selector) = &wanted.select {
            answer.value = self.select(selector, answer.value, holder.caller()).await?;
        }
        let budget = self.limits.compact_bytes;
        let shortened = self.shortened(Dialect::Result, &answer.value, shape.as_ref(), budget, &holder).await;
        let Presented { text, mut about } = Presented::of(shortened);
        about.set("bytes", Raw::of(&[answer.value.bytes().len(), text.len()]));
        Ok((answer, text, about.raw()))
    }

    /// Returns the tool object for an administrator who changed the tool.
    pub(crate) fn tool_object(&self, key: &ToolKey) -> Result<Raw, Error> {
        self.object_in(&self.owner_view(), key, true)
    }

    fn object_in(&self, view: &View, key: &ToolKey, with_texts: bool) -> Result<Raw, Error> {
        let found = view.tool_by_key(key).zip(view.module(&key.module));
        let (tool, module) = found.ok_or_else(|| gone(key))?;
        let object = self.object(view, module, tool);
        Ok(if with_texts { self.with_texts(object, key, &tool.original) } else { object }.raw())
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
        if let Some(off) = &tool.off {
            object.set("disabledReason", off.reason());
        }
        let since = self.with_roster(|roster| roster.known_since(&tool.key)).unwrap_or_default();
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
        tools.filter(move |(_, tool)| self.lets_through(view, tool))
    }

    fn lets_through(&self, view: &View, tool: &Tool) -> bool {
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
fn read_with_meta(result: &Raw) -> (Answer, Option<Raw>) {
    let about = result.object().and_then(|members| members.get("_meta")?.object()?.remove(META));
    let mut answer = Answer::read(result);
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
    Error::new(Kind::ToolNotFound, format!("there is no tool `{key}`"))
}

/// Turns an error result into an error with the tool's own message.
fn succeeded(name: &str, answer: Answer) -> Result<Answer, Error> {
    if !answer.failed {
        return Ok(answer);
    }
    let words: String = answer.text.chars().take(WORDS).collect();
    let message = format!("Tool execution failed: {name}: {words}");
    Err(Error::new(Kind::ToolExecution, message.trim_end_matches([':', ' '])))
}
