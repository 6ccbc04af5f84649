//! Requests about resources: reads, subscriptions, skills and directories.

use std::sync::Arc;

use hikite_core::caller::Session;
use hikite_core::catalog::Module;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::permission::Permissions;
use hikite_core::source::{CallContext, Invocation, SourceMethod};
use hikite_core::view::View;

use super::{Executor, module_of, required};
use crate::accounts::selection;
use crate::audit::Audit;
use crate::cache::CacheRequest;
use crate::call_settings::CallSettings;
use crate::execute::{PreparedCall, execute};
use crate::request::without_query;
use crate::snapshot::Snapshot;

impl Executor {
    /// Finds the module of a resource: the one that lists it, the one that gave the caller a link to it, or the only
    /// possible one.
    async fn module_of_resource(&self, session: &Session, uri: &str) -> Result<(Arc<Snapshot>, Arc<str>), Error> {
        let given = self.links.module_of(&session.caller, uri);
        let find = |view: &View| match view.resource(uri) {
            Ok(module) => Ok(named(module)),
            Err(error) => given.clone().filter(|module| view.shows_module(module)).ok_or(error),
        };
        let listed = self.lookup.look_up(session, find).await;
        if !listed.as_ref().is_err_and(|error| error.kind == ErrorKind::NotFound) {
            return listed;
        }
        let snapshot = self.catalogs.snapshot_for(session);
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
        if let Some(view) = selection::restricted_view(&snapshot, (&caller, module), chosen.as_ref(), allows) {
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
}

fn named(module: &Module) -> Arc<str> {
    Arc::clone(&module.name)
}
