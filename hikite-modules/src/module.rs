//! A service module as a `Source`: a parsed module file and everything needed to call its tools.

mod account;
mod call;
mod fetch;
mod listing;
mod login;
mod multipart;
mod page;
mod parameter;
mod placeholder;
mod prompt;
mod rate_limiter;
mod read;
mod request;
mod resource;
mod review;
mod send;
mod shape;
mod summary;
#[cfg(test)]
pub(crate) mod tests;
mod tool;
mod tool_request;
mod value_template;
mod verify;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::SessionId;
use hikite_core::compact::{Shape, compact, parse};
use hikite_core::credential::CredentialProvider;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::Listing;
use hikite_core::risk::Risk;
use hikite_core::source::{BoxFuture, CallContext, Invocation, Source, SourceMethod, SourceState};
use hikite_core::tool_output::{ToolOutput, with_next_cursor, wrap_value};
use hikite_core::view;
use hikite_egress::EgressClient;
use http::HeaderMap;
use serde_json::{Map, Value, json};

use crate::file::TextLanguage;
use crate::scope::VariableScope;
use account::BaseUrls;
use call::{ServiceCall, choose};
use fetch::PageOptions;
use parameter::SITE;
use prompt::ServicePrompt;
use rate_limiter::RateLimiters;
use resource::ServiceResource;
pub use review::{ModuleReview, review};
use send::{ErrorExpressions, RetryRules};
pub use summary::ToolSummary;
use tool::{ServiceTool, ToolExecution};

/// Dependencies of a service.
#[derive(Clone, Debug)]
pub struct ServiceSettings {
    pub client: EgressClient,
    pub credential_provider: Arc<dyn CredentialProvider>,
    pub limits: Arc<Limits>,
    pub language: TextLanguage,
}

pub struct Service {
    pub name: Arc<str>,
    title: String,
    description: String,
    provider: Option<Arc<str>>,
    addresses: BaseUrls,
    /// Verification request for credentials.
    probe: Option<request::RequestTemplate>,
    headers: HeaderMap,
    rate_limiters: RateLimiters,
    retry: RetryRules,
    error_expressions: ErrorExpressions,
    tools: Vec<(String, ServiceTool)>,
    resources: Vec<ServiceResource>,
    prompts: Vec<ServicePrompt>,
    listing: Arc<Listing>,
    language: TextLanguage,
    client: EgressClient,
    credential_provider: Arc<dyn CredentialProvider>,
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
            tracing::debug!(module = %self.name, %error, "a response does not match the shape in its module");
        });
        shaped.ok()?
    }

    #[cfg(test)]
    fn requests(&self) -> impl Iterator<Item = &request::RequestTemplate> {
        self.tools.iter().flat_map(|(_, tool)| tool.requests()).chain(&self.probe)
    }

    fn tool(&self, name: &str) -> Result<&ServiceTool, Error> {
        let found = self.tools.iter().find(|(other, _)| other == name).map(|(_, tool)| tool);
        found.ok_or_else(|| view::unknown_tool(name, self.tools.iter().map(|(name, _)| name.as_str())))
    }

    async fn call_tool(&self, mut params: Object, context: &CallContext) -> Result<Raw, Error> {
        let name = params.text("name").unwrap_or_default();
        let arguments = params.remove("arguments").map(|raw| parse(&raw)).unwrap_or_default();
        let arguments = if let Value::Object(members) = arguments { members } else { Map::new() };
        self.run(&name, arguments, context).await
    }

    async fn run(&self, name: &str, arguments: Map<String, Value>, context: &CallContext) -> Result<Raw, Error> {
        let tool = self.tool(name)?;
        let scope = tool.scope(arguments)?;
        let page_options = PageOptions::of(&scope);
        let site = scope.get(SITE).as_str().map(str::to_owned);
        let call = ServiceCall::new(self, context, tool.risk != Risk::Read, site);
        let fetched = Box::pin(call.run(tool, &scope, &page_options)).await?;
        let result = wrap_value(&fetched.value);
        Ok(match fetched.next {
            Some(next) => with_next_cursor(&result, &next),
            None => result,
        })
    }

    async fn read_resource(&self, params: &Object, context: &CallContext) -> Result<Raw, Error> {
        let uri = params.text("uri").unwrap_or_default();
        let mut found = self.resources.iter().filter_map(|resource| Some((resource, resource.arguments(&uri)?)));
        let (resource, arguments) = found.next().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("{} has nothing at this address.", self.title))
                .hint("List the resource templates to see valid addresses.")
        })?;
        let result = self.run(&resource.tool, arguments.clone(), context).await?;
        let arguments = Raw::of(&Value::Object(arguments));
        let made = self.shape(&resource.tool, Some(&arguments), &result).map(|made| Shape::Prepared(Arc::new(made)));
        let text = compact(&parse(&ToolOutput::read(&result).value), made.as_ref(), usize::MAX).text;
        let read = json!({ "uri": uri, "mimeType": resource.mime, "text": text });
        Ok(Raw::of(&json!({ "contents": [read] })))
    }

    fn get_prompt(&self, params: &Object) -> Result<Raw, Error> {
        let name = params.text("name").unwrap_or_default();
        let prompt = self.prompts.iter().find(|prompt| prompt.name == name);
        let prompt = prompt.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("There is no prompt `{name}`.")))?;
        let arguments = params.get("arguments").and_then(Raw::object).unwrap_or_default();
        prompt.result(&arguments, self.language)
    }

    fn no_account(&self) -> Error {
        Error::new(ErrorKind::AccountRequired, format!("No account with {} is connected.", self.title))
            .hint(self.how_to_connect("Connect one"))
    }

    fn how_to_connect(&self, what: &str) -> String {
        let provider = self.provider.as_deref().unwrap_or_default();
        format!(
            "{what}: the owner of this hikite runs `hikite account add {provider}`, or sets a token in \
             `providers.{provider}` of the config."
        )
    }

    async fn answer(&self, invocation: Invocation, context: CallContext) -> Result<Raw, Error> {
        match invocation.method {
            SourceMethod::CallTool => self.call_tool(invocation.params, &context).await,
            SourceMethod::ReadResource => self.read_resource(&invocation.params, &context).await,
            SourceMethod::GetPrompt => self.get_prompt(&invocation.params),
            SourceMethod::Complete => Ok(Raw::of(&json!({ "completion": { "values": [], "hasMore": false } }))),
            method => {
                Err(Error::new(ErrorKind::MethodNotFound, format!("Modules do not support `{}`.", method.name())))
            }
        }
    }
}

impl Source for Service {
    fn listing(&self) -> Option<Arc<Listing>> {
        Some(Arc::clone(&self.listing))
    }

    fn state(&self) -> SourceState {
        match &self.provider {
            Some(provider) if !self.credential_provider.knows(provider) => {
                SourceState::NeedsLogin { provider: Arc::clone(provider) }
            }
            _ => SourceState::Running,
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
        let answer = ToolOutput::read(result);
        if answer.failed {
            return None;
        }
        let arguments = arguments.map(parse).and_then(|arguments| arguments.as_object().cloned()).unwrap_or_default();
        let mut shaped = self.project(tool, arguments, &parse(&answer.value))?;
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

impl ServiceTool {
    /// Returns the scope of expressions: the arguments with defaults and without nulls.
    fn scope(&self, arguments: Map<String, Value>) -> Result<VariableScope<'static>, Error> {
        let mut members = Map::new();
        for (name, schema) in self.schema["properties"].as_object().into_iter().flatten() {
            if let Some(default) = schema.get("default") {
                members.insert(name.clone(), default.clone());
            }
        }
        members.extend(arguments.into_iter().filter(|(_, value)| !value.is_null()));
        let scope = VariableScope::of(members);
        if self.one_of.is_empty() {
            return Ok(scope);
        }
        let count = self.one_of.iter().filter(|name| !scope.get(name).is_null()).count();
        if count == 1 {
            return Ok(scope);
        }
        let names = self.one_of.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        Err(Error::new(ErrorKind::Validation, format!("Exactly one of {names} must be given, not {count}.")))
    }

    fn shaped(&self, value: &Value, arguments: &VariableScope<'_>) -> Result<Option<Value>, Error> {
        let mut scope = VariableScope::within(arguments);
        let shapes = match &self.work {
            ToolExecution::Compute { shapes, .. } => shapes,
            ToolExecution::Choose(choices) => &choose(choices, arguments)?.shapes,
            ToolExecution::Steps { steps, shapes, .. } => {
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
