//! A service module as a `Source`: a parsed module file and everything needed to call its tools.

mod about;
mod account;
mod call;
mod fetch;
mod leg;
mod listing;
mod login;
mod multipart;
mod pace;
mod page;
mod parameter;
mod place;
mod prompt;
mod read;
mod request;
mod resource;
mod review;
mod send;
mod shape;
mod slot;
#[cfg(test)]
pub(crate) mod tests;
mod tool;
mod verify;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::answer::{Answer, result_of, with_next};
use hikite_core::caller::SessionId;
use hikite_core::compact::{Shape, compact, parse};
use hikite_core::credential::Exchanger;
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::Listing;
use hikite_core::risk::Risk;
use hikite_core::source::{BoxFuture, CallContext, Invocation, Method, Source, State};
use hikite_core::view;
use hikite_egress::Client;
use http::HeaderMap;
use serde_json::{Map, Value, json};

use crate::file::Language;
use crate::scope::Scope;
pub use about::About;
use account::Addresses;
use call::{Call, choose};
use fetch::Asked;
use pace::Paces;
use parameter::SITE;
use prompt::Prompt;
use resource::Resource;
pub use review::{Review, review};
use send::{Again, Refusals};
use tool::{Tool, Work};

/// Dependencies of a service.
#[derive(Clone, Debug)]
pub struct Settings {
    pub client: Client,
    pub exchanger: Arc<dyn Exchanger>,
    pub limits: Arc<Limits>,
    pub language: Language,
}

pub struct Service {
    pub name: Arc<str>,
    title: String,
    description: String,
    provider: Option<Arc<str>>,
    addresses: Addresses,
    /// Verification request for credentials.
    probe: Option<request::Request>,
    headers: HeaderMap,
    paces: Paces,
    again: Again,
    refusals: Refusals,
    tools: Vec<(String, Tool)>,
    resources: Vec<Resource>,
    prompts: Vec<Prompt>,
    listing: Arc<Listing>,
    language: Language,
    client: Client,
    exchanger: Arc<dyn Exchanger>,
    answer_bytes: usize,
}

impl Service {
    pub fn description(&self) -> &str {
        &self.description
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }

    /// Projects a tool's result to its output shape. Returns `None` if the result does not fit the shape.
    pub fn project(&self, tool: &str, arguments: Map<String, Value>, answer: &Value) -> Option<Value> {
        let tool = self.tool(tool).ok()?;
        let scope = tool.scope(arguments).ok()?;
        let shaped = tool.shaped(answer, &scope).inspect_err(|error| {
            tracing::debug!(module = %self.name, %error, "an answer does not have the shape that its module names");
        });
        shaped.ok()?
    }

    #[cfg(test)]
    fn requests(&self) -> impl Iterator<Item = &request::Request> {
        self.tools.iter().flat_map(|(_, tool)| tool.requests()).chain(&self.probe)
    }

    fn tool(&self, name: &str) -> Result<&Tool, Error> {
        let found = self.tools.iter().find(|(other, _)| other == name).map(|(_, tool)| tool);
        found.ok_or_else(|| view::unknown_tool(name, self.tools.iter().map(|(name, _)| name.as_str())))
    }

    async fn call_tool(&self, mut params: Object, context: &CallContext) -> Result<Raw, Error> {
        let name = params.text("name").unwrap_or_default();
        let arguments = params.remove("arguments").map(|raw| parse(&raw)).unwrap_or_default();
        let arguments = if let Value::Object(members) = arguments { members } else { Map::new() };
        self.run(&name, arguments, context).await
    }

    async fn run(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        context: &CallContext,
    ) -> Result<Raw, Error> {
        let tool = self.tool(name)?;
        let scope = tool.scope(arguments)?;
        let asked = Asked::of(&scope);
        let site = scope.get(SITE).as_str().map(str::to_owned);
        let call = Call::new(self, context, tool.risk != Risk::Read, site);
        let fetched = Box::pin(call.run(tool, &scope, &asked)).await?;
        let result = result_of(&fetched.value);
        Ok(match fetched.next {
            Some(next) => with_next(&result, &next),
            None => result,
        })
    }

    async fn read_resource(&self, params: &Object, context: &CallContext) -> Result<Raw, Error> {
        let uri = params.text("uri").unwrap_or_default();
        let mut found =
            self.resources.iter().filter_map(|resource| Some((resource, resource.arguments(&uri)?)));
        let (resource, arguments) = found.next().ok_or_else(|| {
            Error::new(Kind::NotFound, format!("{} has nothing at this address", self.title))
                .hint("list the templates of resources for the addresses there are")
        })?;
        let result = self.run(&resource.tool, arguments.clone(), context).await?;
        let arguments = Raw::of(&Value::Object(arguments));
        let made =
            self.shape(&resource.tool, Some(&arguments), &result).map(|made| Shape::Made(Arc::new(made)));
        let text = compact(&parse(&Answer::read(&result).value), made.as_ref(), usize::MAX).text;
        let read = json!({ "uri": uri, "mimeType": resource.mime, "text": text });
        Ok(Raw::of(&json!({ "contents": [read] })))
    }

    fn get_prompt(&self, params: &Object) -> Result<Raw, Error> {
        let name = params.text("name").unwrap_or_default();
        let prompt = self.prompts.iter().find(|prompt| prompt.name == name);
        let prompt =
            prompt.ok_or_else(|| Error::new(Kind::NotFound, format!("there is no prompt `{name}`")))?;
        let given = params.get("arguments").and_then(Raw::object).unwrap_or_default();
        prompt.result(&given, self.language)
    }

    fn no_account(&self) -> Error {
        Error::new(Kind::AccountRequired, format!("no account with {} is connected", self.title))
            .hint(self.how_to_connect("connect one"))
    }

    fn how_to_connect(&self, what: &str) -> String {
        let provider = self.provider.as_deref().unwrap_or_default();
        format!(
            "{what}: the owner of this hikite runs `hikite account add {provider}`, or puts a token into \
             `providers.{provider}` of the config"
        )
    }

    async fn answer(&self, invocation: Invocation, context: CallContext) -> Result<Raw, Error> {
        match invocation.method {
            Method::CallTool => self.call_tool(invocation.params, &context).await,
            Method::ReadResource => self.read_resource(&invocation.params, &context).await,
            Method::GetPrompt => self.get_prompt(&invocation.params),
            Method::Complete => Ok(Raw::of(&json!({ "completion": { "values": [], "hasMore": false } }))),
            method => Err(Error::new(Kind::MethodNotFound, format!("modules know no `{}`", method.name()))),
        }
    }
}

impl Source for Service {
    fn listing(&self) -> Option<Arc<Listing>> {
        Some(Arc::clone(&self.listing))
    }

    fn state(&self) -> State {
        match &self.provider {
            Some(provider) if !self.exchanger.knows(provider) => {
                State::NeedsLogin { provider: Arc::clone(provider) }
            }
            _ => State::Running,
        }
    }

    fn kind(&self) -> &'static str {
        "service"
    }

    fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn call(&self, invocation: Invocation, context: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        Box::pin(self.answer(invocation, context))
    }

    fn shape(&self, tool: &str, arguments: Option<&Raw>, result: &Raw) -> Option<Value> {
        let answer = Answer::read(result);
        if answer.failed {
            return None;
        }
        let given = arguments.map(parse).and_then(|given| given.as_object().cloned()).unwrap_or_default();
        let mut shaped = self.project(tool, given, &parse(&answer.value))?;
        match (&answer.next, &mut shaped) {
            (Some(next), Value::Object(members)) => {
                members.insert("next_cursor".into(), Value::from(next.as_str()));
            }
            (Some(next), Value::String(text)) => text.extend(["\n\nnext_cursor: ", next]),
            _ => {}
        }
        Some(shaped)
    }

    fn roots_changed(&self, _: SessionId) {}

    fn release(&self, _: SessionId) {}

    fn close(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Tool {
    /// Returns the scope of expressions: the arguments with defaults and without nulls.
    fn scope(&self, given: Map<String, Value>) -> Result<Scope<'static>, Error> {
        let mut members = Map::new();
        for (name, schema) in self.schema["properties"].as_object().into_iter().flatten() {
            if let Some(default) = schema.get("default") {
                members.insert(name.clone(), default.clone());
            }
        }
        members.extend(given.into_iter().filter(|(_, value)| !value.is_null()));
        let scope = Scope::of(members);
        if self.one_of.is_empty() {
            return Ok(scope);
        }
        let count = self.one_of.iter().filter(|name| !scope.get(name).is_null()).count();
        if count == 1 {
            return Ok(scope);
        }
        let names = self.one_of.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        Err(Error::new(Kind::Validation, format!("exactly one of {names} must be given, not {count}")))
    }

    fn shaped(&self, value: &Value, arguments: &Scope<'_>) -> Result<Option<Value>, Error> {
        let mut scope = Scope::within(arguments);
        let shapes = match &self.work {
            Work::Compute { shapes, .. } => shapes,
            Work::Choose(choices) => &choose(choices, arguments)?.shapes,
            Work::Steps { steps, shapes, .. } => {
                for one in steps {
                    scope.set(&one.id, value.get(&one.id).cloned().unwrap_or_default());
                }
                shapes
            }
        };
        for shape in shapes {
            let holds = shape.when.as_ref().map_or(Ok(true), |when| when.holds(value, &scope))?;
            if holds {
                return shape.apply(value, &scope).map(Some);
            }
        }
        Ok(None)
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("name", &self.name).finish_non_exhaustive()
    }
}
