//! A service as a source of tools: a module file that was read, and what it takes to call what it describes.

mod about;
mod account;
mod call;
mod fetch;
mod leg;
mod listing;
mod multipart;
mod pace;
mod page;
mod parameter;
mod place;
mod prompt;
mod request;
mod resource;
mod review;
mod send;
mod shape;
mod slot;
#[cfg(test)]
pub(crate) mod tests;
mod tool;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::answer::{Answer, result_of};
use hikite_core::caller::SessionId;
use hikite_core::compact::{Shape, compact, parse};
use hikite_core::credential::Exchanger;
use hikite_core::error::{Error, Kind};
use hikite_core::fault::{Fault, step};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::Listing;
use hikite_core::risk::Risk;
use hikite_core::source::{BoxFuture, CallContext, Invocation, Method, Source, State};
use hikite_core::view;
use hikite_egress::Client;
use http::HeaderMap;
use serde_json::{Map, Value, json};

use crate::expression::{Expression, Names};
use crate::file::{File, Language};
use crate::scope::Scope;
pub use about::About;
use account::Addresses;
use call::{Call, choose};
use fetch::Asked;
use pace::Pace;
use parameter::SITE;
use prompt::Prompt;
use resource::Resource;
pub use review::{Review, review};
use send::{Again, Refusals};
use tool::{Reader, Tool, Work};

/// Where an answer of a part of a list says how to go on.
const META: &str = "hikite/page";

/// What a service needs of the house.
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
    headers: HeaderMap,
    pace: Pace,
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
    /// Reads a module file. All that is wrong with it is told at once; programs in it are looked at by their first use, or
    /// by `problems`.
    pub fn read(yaml: &str, settings: &Settings) -> Result<Self, Vec<Fault>> {
        let file = File::read(yaml)?;
        let mut reader = Reader { file: &file, definitions: file.defs.as_str().into(), faults: Vec::new() };
        let mut tools = Vec::new();
        for (name, written) in file.tools.iter() {
            if let Some(tool) = reader.tool(name, written) {
                tools.push((name.to_owned(), tool));
            }
        }
        let names = reader.names(HashSet::new());
        let resources = resources(&file, &tools, &mut reader);
        let mut prompts = Vec::new();
        for (name, written) in file.prompts.iter() {
            match Prompt::new(name, written) {
                Ok(prompt) => prompts.push(prompt),
                Err(wrong) => reader.fault(format!("/prompts{}", step(name)), wrong),
            }
        }
        let headers = headers(&file, &mut reader, &names);
        if !is_name(&file.module) {
            reader.fault(
                "/module",
                "a name is made of small letters, digits and `_`, and begins with a letter",
            );
        }
        let addresses = Addresses::new(file.base.clone(), file.resolve.iter(), &names);
        let addresses = match addresses {
            Ok(addresses) if reader.faults.is_empty() => addresses,
            Ok(_) => return Err(reader.faults),
            Err(wrong) => {
                reader.fault("/base", wrong);
                return Err(reader.faults);
            }
        };
        let expression = |text: &Option<String>| text.as_ref().map(|text| Expression::new(text, &names));
        let mut service = Self {
            name: file.module.as_str().into(),
            title: file.title.clone(),
            description: file.description.get(settings.language).to_owned(),
            provider: file.provider.as_deref().map(Into::into),
            addresses,
            headers,
            pace: Pace::new(&file.limits),
            again: Again { also: expression(&file.retry.also), rule: file.retry.clone() },
            refusals: Refusals {
                message: expression(&file.errors.message),
                code: expression(&file.errors.code),
            },
            tools,
            resources,
            prompts,
            listing: Arc::default(),
            language: settings.language,
            client: settings.client.clone(),
            exchanger: Arc::clone(&settings.exchanger),
            answer_bytes: settings.limits.answer_bytes,
        };
        service.listing = Arc::new(service.offer(file.api_version.as_deref(), file.docs.as_deref()));
        Ok(service)
    }

    /// What is wrong with its programs, each by the tool it belongs to.
    pub fn problems(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (name, tool) in &self.tools {
            let wrong = tool.expressions().into_iter().filter_map(Expression::problem);
            faults.extend(wrong.map(|wrong| Fault::new(format!("/tools{}", step(name)), wrong)));
        }
        let others = [&self.again.also, &self.refusals.message, &self.refusals.code].into_iter().flatten();
        let lookups = self.addresses.lookups.iter().flat_map(|lookup| lookup.expressions());
        faults
            .extend(others.chain(lookups).filter_map(Expression::problem).map(|wrong| Fault::new("", wrong)));
        faults
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }

    /// Its tools by name, each with its risk, whether it has a compact form, and whether it pages.
    pub fn tools(&self) -> impl Iterator<Item = (&str, Risk, bool, bool)> {
        self.tools.iter().map(|(name, tool)| (name.as_str(), tool.risk, tool.has_shape(), tool.is_paged()))
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
        let Some(next) = fetched.next else { return Ok(result) };
        let meta = Object::default().with(META, Object::default().with("next_cursor", next.as_str()));
        Ok(result.object().unwrap_or_default().with("_meta", meta).raw())
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
        let arguments = Raw::of(&Value::Object(arguments)).object().unwrap_or_default();
        let made = self.shape(&resource.tool, &arguments, &result).map(|made| Shape::Made(Arc::new(made)));
        let text = compact(&parse(&Answer::read(&result).value), made.as_ref(), usize::MAX).text;
        let content = json!({ "uri": uri, "mimeType": resource.mime, "text": text });
        Ok(Raw::of(&json!({ "contents": [content] })))
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
        format!("{what}: the owner of this hikite puts its token into `providers.{provider}` of the config")
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

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn call(&self, invocation: Invocation, context: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        Box::pin(self.answer(invocation, context))
    }

    fn shape(&self, tool: &str, arguments: &Object, result: &Raw) -> Option<Value> {
        let tool = self.tool(tool).ok()?;
        let given = parse(&arguments.raw());
        let scope = tool.scope(if let Value::Object(given) = given { given } else { Map::new() }).ok()?;
        let value = parse(&Answer::read(result).value);
        let shaped = tool.shaped(&value, &scope).inspect_err(|error| {
            tracing::debug!(module = %self.name, %error, "an answer does not have the shape that its module names");
        });
        let mut shaped = shaped.ok()??;
        let next = result.object()?.get("_meta").and_then(Raw::object);
        let next = next.and_then(|meta| meta.get(META)?.object()?.text("next_cursor"));
        if let (Some(next), Some(members)) = (&next, shaped.as_object_mut()) {
            members.insert("next_cursor".into(), Value::from(next.as_str()));
        } else if let (Some(next), Value::String(text)) = (&next, &mut shaped) {
            text.push_str(&format!("\n\nnext_cursor: {next}"));
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
    /// The arguments as expressions see them: with defaults, and without nulls.
    fn scope(&self, given: Map<String, Value>) -> Result<Scope<'static>, Error> {
        let mut scope = Scope::default();
        for (name, schema) in self.schema["properties"].as_object().into_iter().flatten() {
            if let Some(default) = schema.get("default") {
                scope.set(name, default.clone());
            }
        }
        for (name, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
            scope.set(&name, value);
        }
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

fn resources(file: &File, tools: &[(String, Tool)], reader: &mut Reader<'_>) -> Vec<Resource> {
    let mut resources = Vec::new();
    for (name, written) in file.resources.iter() {
        let at = format!("/resources{}", step(name));
        let resource = match Resource::new(name, written) {
            Ok(resource) => resource,
            Err(wrong) => {
                reader.fault(at, wrong);
                continue;
            }
        };
        match tools.iter().find(|(tool, _)| *tool == resource.tool) {
            None => {
                reader.fault(format!("{at}/tool"), format!("`{}` is no tool of this module", resource.tool))
            }
            Some((_, tool)) => {
                for name in resource.names().filter(|name| tool.schema["properties"].get(name).is_none()) {
                    reader.fault(
                        format!("{at}/uri"),
                        format!("`{{{name}}}` is no parameter of `{}`", resource.tool),
                    );
                }
            }
        }
        resources.push(resource);
    }
    resources
}

fn headers(file: &File, reader: &mut Reader<'_>, names: &Names) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in file.headers.iter() {
        let made = request::header(name, value, names).and_then(|(header, places)| {
            let value = places.header(&Scope::default()).map_err(|error| error.message.to_string())?;
            Ok((header, http::HeaderValue::try_from(value).map_err(|_| "it cannot be sent".to_owned())?))
        });
        match made {
            Ok((header, value)) => drop(headers.insert(header, value)),
            Err(wrong) => reader.fault(format!("/headers{}", step(name)), wrong),
        }
    }
    headers
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}
