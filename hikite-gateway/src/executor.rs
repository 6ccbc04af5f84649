//! The executor: looks a tool, resource or prompt up in the caller's view, which decides both whether it exists and
//! whether it may be used, prepares the call, and runs it on the one path of `execute`.

mod callable;
mod prompt;
mod resource;
mod task;

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::poll;
use hikite_core::caller::{Caller, Scopes};
use hikite_core::catalog::Module;
use hikite_core::category::Category;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::permission::Permissions;
use hikite_core::signer::HmacSigner;
use hikite_core::source::{CallContext, Invocation, SourceMethod};
use hikite_core::tool_selection::preset;
use hikite_core::view::{self, View};

use crate::accounts::{AccountStore, SelectedAccount, selection};
use crate::audit::{Audit, Auditor};
use crate::cache::{Cache, CacheRequest};
use crate::call_settings::CallSettings;
use crate::catalogs::Catalogs;
use crate::command::{CallOptions, ToolTarget};
use crate::execute::{PreparedCall, execute};
use crate::lookup::{Lookup, report_wait};
use crate::meter::Meter;
use crate::resource_link::ResourceLinks;
use crate::snapshot::Snapshot;
use crate::surface::arguments;
use crate::trace::TraceStep;
use crate::viewer::Viewer;
use callable::{Callable, callable, check, in_category, look_up_in};

pub(crate) struct Executor {
    pub(crate) limits: Arc<Limits>,
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) lookup: Lookup,
    pub(crate) auditor: Arc<Auditor>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) meter: Arc<Meter>,
    /// Accounts with which services are called, if available.
    pub(crate) accounts: Option<Arc<AccountStore>>,
    /// Resource links that results contained.
    pub(crate) links: ResourceLinks,
    /// Signer of task ids.
    pub(crate) seal: HmacSigner,
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor").finish_non_exhaustive()
    }
}

impl Executor {
    /// Runs a call with an audit record of its own. `surface` names the origin of the request.
    pub(crate) async fn call_recorded(
        &self,
        surface: &'static str,
        (target, params, options): (ToolTarget, Object, CallOptions),
        context: CallContext,
    ) -> Result<Raw, Error> {
        let scopes = context.session.caller.scopes;
        let mut audit = self.auditor.open_call(surface, (&target, &params), &context).await?;
        let outcome = match context.session.caller.require(Scopes::CALL) {
            Ok(()) => self.call(target, params, options, context, &mut audit).await,
            Err(error) => Err(error),
        };
        self.auditor.close(audit, outcome, scopes).await
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
        if let Some(view) = selection::restricted_view(snapshot, (caller, module), chosen.as_ref(), allows) {
            look_up_in(&view, target)?;
            return Err(view::unknown_tool(&callable.key.to_string(), std::iter::empty()));
        }
        if let Some(chosen) = &chosen {
            audit.with_account(chosen.words(module));
        }
        Ok(CallContext { account: chosen.map(|chosen| chosen.id()), ..context })
    }

    /// Returns the account that serves a call of a module, or `None` if the module needs none or nobody has one.
    pub(crate) fn account_for(
        &self,
        caller: &Caller,
        module: &Module,
        requested: Option<&str>,
    ) -> Result<Option<SelectedAccount>, Error> {
        match (&self.accounts, module.source.provider()) {
            (Some(accounts), Some(provider)) => accounts.choose(caller, provider, requested),
            _ => Ok(None),
        }
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
            ToolTarget::Named(name) => {
                self.lookup.look_up_named(viewer, &name, |view| view.tool(&name).map(callable)).await
            }
            ToolTarget::Keyed(key) => {
                let named = |module: &Module| module.name == key.module;
                self.lookup.look_up_among(viewer, named, |view| view.tool_of(&key).map(callable)).await
            }
            ToolTarget::InCategory { category, name } => {
                // A slow server of the category delays only the tools that may be its own.
                let sure = |category: &Category| !category.depends_on_unlisted_server(&name);
                self.lookup.wait_for_category(viewer, &category, self.limits.first_list, sure).await;
                let snapshot = self.catalogs.snapshot_for(viewer);
                let callable = in_category(&snapshot.view_of(viewer.caller), &category, &name)?;
                Ok((snapshot, callable))
            }
        }
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

fn module_of<'a>(view: &'a View, name: &str) -> Result<&'a Module, Error> {
    view.module(name).ok_or_else(|| Error::new(ErrorKind::UpstreamUnavailable, format!("Server `{name}` is disabled.")))
}

fn required(params: &Object, name: &str) -> Result<String, Error> {
    params.text(name).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Error {
    Error::new(ErrorKind::Validation, format!("`{name}` is missing or not a string."))
}
