//! Dispatch of commands: one lookup in the caller's view decides both whether a thing exists and whether it may be
//! used; then it is executed.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::poll;
use hikite_core::call_policy::{CallPolicy, ToolHints};
use hikite_core::caller::{Scopes, Session};
use hikite_core::catalog::{Module, Tool, schema_of};
use hikite_core::category::{Category, CategoryLookup};
use hikite_core::check::{ArgumentChecker, CheckOutcome};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::permission::Permissions;
use hikite_core::source::{CallContext, Invocation, SourceMethod, SourceState};
use hikite_core::tool_selection::{PresetArgument, preset};
use hikite_core::view::{self, View};
use hikite_core::violation;

use crate::accounts::selection;
use crate::audit::Audit;
use crate::cache::CacheRequest;
use crate::call_result::CallResult;
use crate::call_settings::CallSettings;
use crate::command::{CallOptions, Command, ToolTarget};
use crate::execute::{PreparedCall, execute};
use crate::gateway::Gateway;
use crate::handle::is_stored_result;
use crate::off_worker::off_worker;
use crate::request::without_query;
use crate::snapshot::Snapshot;
use crate::surface::{self, Surfaces, arguments, describe};
use crate::task;
use crate::trace::TraceStep;
use crate::viewer::Viewer;
use crate::wait::report_wait;

/// A tool that may be called, with everything needed to call it.
struct Callable {
    key: ToolKey,
    arguments: Arc<[PresetArgument]>,
    /// Definition shown to the caller and the checker of the arguments; `None` until the server has returned its tool
    /// list.
    shown: Option<(Raw, Arc<ArgumentChecker>)>,
    hints: ToolHints,
    policy: CallPolicy,
    /// Name of the call in the audit record.
    what: String,
}

impl Gateway {
    /// Handles `tools/call` on the given surfaces.
    pub async fn call_tool(
        &self,
        surfaces: Surfaces,
        params: Object,
        context: CallContext,
    ) -> Result<CallResult, Error> {
        let (outcome, failure) = match surface::translate(surfaces, params) {
            Ok((command, failure)) => (self.dispatch_on(failure.surface(), command, context).await, failure),
            Err(misread) => {
                self.audit_misread(&misread, &context).await?;
                (Err(misread.error), misread.failure)
            }
        };
        outcome.map_or_else(|error| failure.render(error), |result| Ok(result.into()))
    }

    pub async fn dispatch(&self, command: Command, context: CallContext) -> Result<Raw, Error> {
        self.dispatch_on("", command, context).await
    }

    /// Runs a command and records it whatever its outcome. `surface` names the origin of the request.
    pub(crate) async fn dispatch_on(
        &self,
        surface: &'static str,
        command: Command,
        context: CallContext,
    ) -> Result<Raw, Error> {
        let scopes = context.session.caller.scopes;
        let mut audit = self.audit(surface, &command, &context).await?;
        let outcome = match context.session.caller.require(command.scope()) {
            Ok(()) => self.perform(command, context, &mut audit).await,
            Err(error) => Err(error),
        };
        let is_recorded = audit.is_recorded();
        audit.close(&outcome);
        let outcome = if is_recorded { self.release(outcome).await } else { outcome };
        if scopes.contains(Scopes::READ) { outcome } else { outcome.map_err(without_name_hints) }
    }

    async fn perform(&self, command: Command, context: CallContext, audit: &mut Audit<'_>) -> Result<Raw, Error> {
        // Everything but a call is boxed, so that the future of a call stays small.
        match command {
            Command::Call { target, params, options } => self.call(target, params, options, context, audit).await,
            Command::Describe { category, names } => {
                Box::pin(self.describe((&*context.session).into(), &category, names.as_deref())).await
            }
            Command::Search { requested, detail, params } => {
                Ok(Box::pin(self.discover(&requested, detail, params, &context, audit)).await)
            }
            Command::Open(opening) => Box::pin(self.open(opening, context)).await,
            Command::Execute { target, params, options, wanted, dialect } => {
                let how = (options, wanted, dialect);
                Box::pin(self.execute_with_output(target, params, how, context, audit)).await
            }
            Command::Batch(batch) => self.batch(batch, context, audit).await,
            Command::Fetch { uri, part, params, dialect } => {
                Box::pin(self.fetch(uri, (part, dialect), params, context, audit)).await
            }
            Command::FetchPrompt { module, name, params } => {
                Box::pin(self.fetch_prompt(module, name, params, context, audit)).await
            }
            Command::Read { params } if is_stored_result(&params) => {
                Box::pin(self.read_stored_result(params, context, audit)).await
            }
            Command::Read { params } => {
                Box::pin(self.resource(SourceMethod::ReadResource, params, context, audit)).await
            }
            Command::Subscribe { params } => {
                Box::pin(self.resource(SourceMethod::Subscribe, params, context, audit)).await
            }
            Command::Unsubscribe { params } => {
                Box::pin(self.resource(SourceMethod::Unsubscribe, params, context, audit)).await
            }
            Command::Skill { params } => Box::pin(self.resource(SourceMethod::GetSkill, params, context, audit)).await,
            Command::Directory { params } => {
                Box::pin(self.resource(SourceMethod::ReadDirectory, params, context, audit)).await
            }
            Command::Prompt { params } => Box::pin(self.prompt(params, context, audit)).await,
            Command::Complete { params } => Box::pin(self.complete(params, context, audit)).await,
            Command::Task { method, params } => Box::pin(self.task(method, params, context, audit)).await,
        }
    }

    async fn describe(&self, viewer: Viewer<'_>, name: &str, names: Option<&[String]>) -> Result<Raw, Error> {
        self.wait_for_category(viewer, name, self.limits.first_list, Category::has_listed_server).await;
        // A category with some tools available waits only briefly for the rest.
        self.wait_for_category(viewer, name, self.list_wait(), |_| false).await;
        let snapshot = self.snapshot_for(viewer);
        let view = snapshot.view_of(viewer.caller);
        let category = find_category(&view, name)?;
        describe(category, names).map_err(|error| explain_missing(&view, category, error))
    }

    pub(crate) async fn call(
        &self,
        target: ToolTarget,
        mut params: Object,
        options: CallOptions,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let in_category = matches!(target, ToolTarget::InCategory { .. });
        let requested = selection::requested(&mut params)?;
        let original_target = target.clone();
        let (snapshot, callable) = self.find_with_progress(&context, target).await?;
        audit.found(&callable.key);
        let view = snapshot.view_of(&context.session.caller);
        let module = module_of(&view, &callable.key.module)?;
        let context = if module.source.provider().is_some() {
            self.with_account(&snapshot, (module, &callable, &original_target), requested.as_deref(), context, audit)?
        } else {
            context
        };
        params.set("name", &*callable.key.tool);
        if !callable.arguments.is_empty() {
            let mut arguments = arguments(params.get("arguments"))?;
            preset(&callable.arguments, &mut arguments);
            params.set("arguments", arguments);
        }
        let mut step = TraceStep::begin(self.meter.tracer(), "check arguments", &context.origin);
        check(&callable, &mut params).await.inspect_err(|error| step.fail(error.code()))?;
        drop(step);
        let takes_tasks = task::accepts_task(&params, &context);
        let caller = takes_tasks.then(|| context.session.caller.clone());
        let gate = snapshot.gate(module);
        let policy = callable.policy.or(module.policy);
        let mut terms = CallSettings::new(&gate.throttle, &self.limits, policy, callable.hints, options);
        let cache = policy.cache.filter(|_| callable.hints.read_only && self.cache.is_on());
        terms.cache_request = cache
            .and_then(|ttl| CacheRequest::new(snapshot.state(module), SourceMethod::CallTool, &params, &context, ttl));
        let invocation = Invocation { method: SourceMethod::CallTool, params };
        let call = PreparedCall { what: callable.what, terms, invocation };
        let session = Arc::clone(&context.session);
        let outcome = execute(&self.cache, gate, module, call, context, audit).await;
        if let Ok(result) = &outcome {
            self.links.note(&session.caller, &module.name, result);
        }
        let outcome = match caller {
            Some(caller) => outcome.map(|result| self.seal_task_id(result, &callable.key, &caller)),
            None => outcome,
        };
        outcome.map_err(|error| if in_category { error.named("UpstreamCallError") } else { error })
    }

    /// Selects the account of a call. A tool that the account does not allow looks absent.
    fn with_account(
        &self,
        snapshot: &Snapshot,
        (module, callable, target): (&Module, &Callable, &ToolTarget),
        requested: Option<&str>,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<CallContext, Error> {
        let caller = &context.session.caller;
        let chosen = self.account_for(caller, module, requested)?;
        let risk = snapshot.view_of(caller).tool_by_key(&callable.key).map(|tool| tool.risk).unwrap_or_default();
        let allows = |mask: &Permissions| mask.allows(&callable.key, risk);
        if let Some(view) = Self::restricted_view(snapshot, (caller, module), chosen.as_ref(), allows) {
            look_up_in(&view, target)?;
            return Err(view::unknown_tool(&callable.key.to_string(), std::iter::empty()));
        }
        if let Some(chosen) = &chosen {
            audit.with_account(chosen.words(module));
        }
        Ok(CallContext { account: chosen.map(|chosen| chosen.id()), ..context })
    }

    /// Finds the tool, and reports progress to the client while the first list of its module is awaited.
    async fn find_with_progress(
        &self,
        context: &CallContext,
        target: ToolTarget,
    ) -> Result<(Arc<Snapshot>, Callable), Error> {
        let mut finding = pin!(self.find((&*context.session).into(), target));
        match poll!(&mut finding) {
            Poll::Ready(found) => found,
            Poll::Pending => Box::pin(report_wait(&*context.back, finding)).await,
        }
    }

    /// Finds the tool, waiting for the first list of its module where that is not known yet.
    async fn find(&self, viewer: Viewer<'_>, target: ToolTarget) -> Result<(Arc<Snapshot>, Callable), Error> {
        match target {
            ToolTarget::Named(name) => self.look_up_named(viewer, &name, |view| view.tool(&name).map(callable)).await,
            ToolTarget::Keyed(key) => {
                let named = |module: &Module| module.name == key.module;
                self.look_up_among(viewer, named, |view| view.tool_of(&key).map(callable)).await
            }
            ToolTarget::InCategory { category, name } => {
                // A slow server of the category delays only the tools that may be its own.
                let sure = |category: &Category| !category.depends_on_unlisted_server(&name);
                self.wait_for_category(viewer, &category, self.limits.first_list, sure).await;
                let snapshot = self.snapshot_for(viewer);
                let callable = in_category(&snapshot.view_of(viewer.caller), &category, &name)?;
                Ok((snapshot, callable))
            }
        }
    }

    /// Finds the module of a resource: the one that lists it, the one that gave the caller a link to it, or the only
    /// possible one.
    async fn module_of_resource(&self, session: &Session, uri: &str) -> Result<(Arc<Snapshot>, Arc<str>), Error> {
        let given = self.links.module_of(&session.caller, uri);
        let find = |view: &View| match view.resource(uri) {
            Ok(module) => Ok(named(module)),
            Err(error) => given.clone().filter(|module| view.shows_module(module)).ok_or(error),
        };
        let listed = self.look_up(session, find).await;
        if !listed.as_ref().is_err_and(|error| error.kind == ErrorKind::NotFound) {
            return listed;
        }
        let snapshot = self.snapshot_for(session);
        let module = snapshot.view_of(&session.caller).module_for_unlisted(uri).map(named)?;
        Ok((snapshot, module))
    }

    pub(crate) async fn resource(
        &self,
        method: SourceMethod,
        mut params: Object,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let requested = selection::requested(&mut params)?;
        let uri = required(&params, "uri")?;
        let caller = context.session.caller.clone();
        let (snapshot, module) = self.module_of_resource(&context.session, &uri).await?;
        let view = snapshot.view_of(&caller);
        let module = module_of(&view, &module)?;
        let chosen = self.account_for(&caller, module, requested.as_deref())?;
        let allows = |mask: &Permissions| mask.allows_module(&module.name);
        if let Some(view) = Self::restricted_view(&snapshot, (&caller, module), chosen.as_ref(), allows) {
            view.resource(&uri)?;
            return Err(Error::new(ErrorKind::NotFound, format!("There is no resource `{uri}`.")));
        }
        let context = CallContext { account: chosen.map(|chosen| chosen.id()), ..context };
        let what = format!("{} {}", method.name(), without_query(&uri));
        let gate = snapshot.gate(module);
        let terms = match method {
            SourceMethod::ReadResource => {
                let policy = module.resources;
                let cache = policy.cache.filter(|_| self.cache.is_on());
                let cache_request =
                    cache.and_then(|ttl| CacheRequest::new(snapshot.state(module), method, &params, &context, ttl));
                CallSettings { cache_request, ..CallSettings::for_read(&gate.throttle, &self.limits, policy) }
            }
            _ => CallSettings::plain(&gate.throttle),
        };
        let call = PreparedCall { what, terms, invocation: Invocation { method, params } };
        execute(&self.cache, gate, module, call, context, audit).await
    }

    async fn prompt(&self, mut params: Object, context: CallContext, audit: &mut Audit<'_>) -> Result<Raw, Error> {
        let name = required(&params, "name")?;
        let (snapshot, (module, own)) =
            self.look_up_named(&*context.session, &name, |view| prompt_of(view, &name)).await?;
        params.set("name", &*own);
        let invocation = Invocation { method: SourceMethod::GetPrompt, params };
        self.pass_on(&snapshot, &module, format!("prompts/get {name}"), invocation, context, audit).await
    }

    async fn complete(&self, mut params: Object, context: CallContext, audit: &mut Audit<'_>) -> Result<Raw, Error> {
        let reference = params.get("ref").and_then(Raw::object).ok_or_else(|| missing("ref"))?;
        let session = &*context.session;
        let (snapshot, module) = match reference.text("type").as_deref() {
            Some("ref/prompt") => {
                let name = required(&reference, "name")?;
                let (snapshot, (module, own)) =
                    self.look_up_named(session, &name, |view| prompt_of(view, &name)).await?;
                params.set("ref", reference.with("name", &*own));
                (snapshot, module)
            }
            Some("ref/resource") => {
                let uri = required(&reference, "uri")?;
                self.look_up(session, |view| view.resource(&uri).map(named)).await?
            }
            _ => return Err(missing("ref.type")),
        };
        let invocation = Invocation { method: SourceMethod::Complete, params };
        self.pass_on(&snapshot, &module, "completion/complete".into(), invocation, context, audit).await
    }

    /// Executes an invocation that needs nothing but its module.
    pub(crate) async fn pass_on(
        &self,
        snapshot: &Snapshot,
        module: &str,
        what: String,
        invocation: Invocation,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let view = snapshot.view_of(&context.session.caller);
        let module = module_of(&view, module)?;
        let gate = snapshot.gate(module);
        let call = PreparedCall { what, terms: CallSettings::plain(&gate.throttle), invocation };
        let session = Arc::clone(&context.session);
        let outcome = execute(&self.cache, gate, module, call, context, audit).await;
        if let Ok(result) = &outcome {
            self.links.note(&session.caller, &module.name, result);
        }
        outcome
    }
}

/// Removes hints that name tools or resources, for callers without the read scope.
fn without_name_hints(error: Error) -> Error {
    let of_a_name = matches!(error.kind, ErrorKind::ToolNotFound | ErrorKind::NotFound | ErrorKind::Validation);
    Error { hint: error.hint.filter(|_| !of_a_name), ..error }
}

fn named(module: &Module) -> Arc<str> {
    Arc::clone(&module.name)
}

/// Returns the module of a prompt and its own name there.
fn prompt_of(view: &View, name: &str) -> Result<(Arc<str>, Arc<str>), Error> {
    view.prompt(name).map(|(module, prompt)| (named(module), Arc::clone(&prompt.item.name)))
}

/// Explains why a category is incomplete: a server with an unreadable list, one that is unreachable, or one that needs
/// a login.
fn explain_missing(view: &View, category: &Category, error: Error) -> Error {
    let missing: Vec<&Module> = category.missing.iter().filter_map(|missing| view.module(&missing.server)).collect();
    let unreadable = missing.iter().find_map(|module| match module.source.state() {
        SourceState::Failing { reason, answers: true, .. } => Some(reason),
        _ => None,
    });
    if let Some(reason) = unreadable {
        return Error { message: reason.into(), ..error }.named("SchemaFetchError");
    }
    if error.kind != ErrorKind::UpstreamUnavailable {
        return error;
    }
    let whys: Vec<Error> = missing.iter().map(|module| module.unlisted_error()).collect();
    let Some(first) = whys.first() else { return error };
    let told: Vec<&str> = whys.iter().map(|why| &*why.message).collect();
    let message = format!("{} {}", error.message, told.join(" "));
    // A single login may be all that is missing.
    let login = whys.iter().all(|why| why.kind == ErrorKind::AccountRequired);
    let hint = if login { first.hint.clone() } else { error.hint.clone() };
    let kind = if login { ErrorKind::AccountRequired } else { error.kind };
    Error { kind, message: message.into(), hint, ..error }
}

fn find_category<'a>(view: &'a View, name: &str) -> Result<&'a Category, Error> {
    view.category(name).map_err(|error| error.named("UnknownCategory"))
}

fn in_category(view: &View, category: &str, name: &str) -> Result<Callable, Error> {
    let category = find_category(view, category)?;
    let what = format!("{}/{name}", category.rule.name);
    match category.find(name) {
        CategoryLookup::Found(entry) => Ok(Callable {
            key: entry.key.clone(),
            arguments: Arc::clone(&entry.arguments),
            shown: view.tool_by_key(&entry.key).map(|tool| (entry.definition.clone(), Arc::clone(&tool.checker))),
            hints: entry.hints,
            policy: entry.policy,
            what,
        }),
        // No annotation is assumed for a tool whose definition is unknown.
        CategoryLookup::Unlisted { key, arguments, policy } => {
            Ok(Callable { key, arguments: arguments.into(), shown: None, hints: ToolHints::default(), policy, what })
        }
        CategoryLookup::Disabled(off) => Err(off.error(name).named("ToolDisabled")),
        CategoryLookup::ServerUnlisted(server) => {
            let untold = view.listed_module(&server).map(drop).err();
            Err(untold.unwrap_or_else(|| view::unknown_tool(name, [].into_iter())).named("UpstreamUnavailable"))
        }
        CategoryLookup::Unknown => {
            let known = category.enabled().map(|entry| &*entry.name);
            let error = view::unknown_tool(name, known).named("UnknownTool");
            let hint = format!("`get-category-tools` with `{}` lists its tools.", category.rule.name);
            Err(if error.hint.is_some() { error } else { error.hint(hint) })
        }
    }
}

/// Repeats a lookup in another view.
fn look_up_in(view: &View, target: &ToolTarget) -> Result<(), Error> {
    match target {
        ToolTarget::Named(name) => view.tool(name).map(drop),
        ToolTarget::Keyed(key) => view.tool_of(key).map(drop),
        ToolTarget::InCategory { category, name } => in_category(view, category, name).map(drop),
    }
}

fn callable(tool: &Tool) -> Callable {
    Callable {
        key: tool.key.clone(),
        arguments: Arc::clone(&tool.arguments),
        shown: Some((tool.definition.clone(), Arc::clone(&tool.checker))),
        hints: tool.hints,
        policy: tool.policy,
        what: tool.key.to_string(),
    }
}

/// Validates the arguments against the tool's own schema. A failure carries the schema shown to the caller, so that a
/// model can correct itself.
async fn check(callable: &Callable, params: &mut Object) -> Result<(), Error> {
    let Some((definition, checker)) = &callable.shown else { return Ok(()) };
    let arguments = params.get("arguments");
    let verdict = off_worker(checker.cost(arguments), || checker.check(arguments)).await;
    if let Some(problem) = checker.problem_once() {
        tracing::warn!(tool = %callable.key, problem, "the tool's schema is invalid; its arguments are not checked");
    }
    match verdict {
        Ok(CheckOutcome::AsSent) => Ok(()),
        Ok(CheckOutcome::Changed(arguments)) => {
            params.set("arguments", arguments);
            Ok(())
        }
        Err(faults) => {
            let hint = "Correct the arguments; `schema` is the schema they must match.";
            Err(Error { schema: schema_of(definition), ..violation::error(&faults).hint(hint) })
        }
    }
}

fn module_of<'a>(view: &'a View, name: &str) -> Result<&'a Module, Error> {
    view.module(name).ok_or_else(|| Error::new(ErrorKind::UpstreamUnavailable, format!("Server `{name}` is disabled.")))
}

fn required(params: &Object, name: &str) -> Result<String, Error> {
    params.text(name).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Error {
    Error::new(ErrorKind::Validation, format!("`{name}` is missing or not a string."))
}
