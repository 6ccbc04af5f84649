//! An upstream MCP server as a `Source`: the public face of this crate, and the end of its connections.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use hikite_core::caller::SessionId;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::Listing;
use hikite_core::login::LoginRedirect;
use hikite_core::source::{BoxFuture, CallContext, Invocation, Source, SourceListener, SourceState};
use hikite_egress::AllowList;
use tokio::time::Instant;

use crate::connection::{ConnectionNotice, subscription};
use crate::count_guard::CountGuard;
use crate::definition::{UpstreamDefinition, UpstreamTransport};
use crate::oauth::Authorization;
use crate::upstream::{Environment, UpstreamInner};
use crate::{call, list_change, lists, login, refresh};

#[derive(Clone, Debug)]
pub struct Upstream {
    pub(crate) inner: Arc<UpstreamInner>,
}

impl Upstream {
    /// Starts an upstream. Serves the cached lists at once, and fetches them in the background if they are missing or
    /// expired.
    pub fn start(definition: UpstreamDefinition, environment: Environment, listener: SourceListener) -> Self {
        let inner = Arc::new_cyclic(|weak: &Weak<UpstreamInner>| {
            let weak = Weak::clone(weak);
            let notices = Arc::new(move |connection_notice| {
                if let Some(inner) = weak.upgrade() {
                    notice(&inner, connection_notice);
                }
            });
            UpstreamInner::new(definition, environment, listener, notices)
        });
        inner.tasks.spawn(refresh::run(Arc::clone(&inner)));
        inner.tasks.spawn(stop_idle_processes(Arc::clone(&inner)));
        Self { inner }
    }

    /// Returns `true` if the upstream uses OAuth: it is remote, without credentials in its headers.
    pub fn uses_oauth(&self) -> bool {
        self.inner.authorization.is_some()
    }

    /// Begins a login. The authorization server redirects the browser to `redirect`.
    pub async fn begin_login(&self, redirect: &str) -> Result<LoginRedirect, Error> {
        self.authorization()?.begin(redirect).await
    }

    /// Returns `true` if a login with this state is pending here.
    pub fn has_pending_login(&self, state: &str) -> bool {
        self.inner.authorization.as_ref().is_some_and(|authorization| authorization.is_pending(state))
    }

    /// Completes a login with the query of the redirect.
    pub async fn finish_login(&self, query: &str) -> Result<(), Error> {
        self.authorization()?.finish(query).await
    }

    /// Logs out: drops the tokens of a login.
    pub async fn log_out(&self) -> Result<(), Error> {
        self.authorization()?.log_out().await
    }

    /// Fetches the lists now, as after a login.
    pub async fn refresh_lists(&self) -> Result<(), Error> {
        Ok(refresh::renew(&self.inner).await?)
    }

    /// Sets the private addresses that OAuth documents may be fetched from, in addition to the public internet.
    pub fn allow(&self, egress: &AllowList) {
        if let Some(authorization) = &self.inner.authorization {
            authorization.allow(egress);
        }
    }

    fn authorization(&self) -> Result<&Arc<Authorization>, Error> {
        self.inner.authorization.as_ref().ok_or_else(|| {
            let message = format!("`{}` does not need a login.", self.inner.definition.name);
            Error::new(ErrorKind::Validation, message).hint("Its credentials are in the config, or it has none.")
        })
    }
}

impl Source for Upstream {
    fn listing(&self) -> Option<Arc<Listing>> {
        self.inner.lists.listing.load_full()
    }

    fn listing_of(&self, session: SessionId) -> Option<Arc<Listing>> {
        lists::of_session(&self.inner, session)
    }

    fn state(&self) -> SourceState {
        if login::is_needed(&self.inner) {
            SourceState::NeedsLogin { provider: Arc::clone(&self.inner.definition.name) }
        } else {
            let state = self.inner.state.lock().clone();
            // A running server whose lists cannot be read reports why.
            let is_refused = matches!(state, SourceState::Failing { answers: true, .. });
            if self.inner.slots.is_running() && !is_refused { SourceState::Running } else { state }
        }
    }

    fn kind(&self) -> &'static str {
        match self.inner.definition.transport {
            UpstreamTransport::Stdio { .. } => "stdio",
            UpstreamTransport::Http { .. } => "http",
            UpstreamTransport::Sse { .. } => "sse",
        }
    }

    fn place(&self) -> Object {
        self.inner.definition.place.clone()
    }

    fn stderr(&self) -> Vec<String> {
        self.inner.stderr.lines()
    }

    fn stop(&self) {
        stop(&self.inner, "stopped");
    }

    fn restart(&self) {
        stop(&self.inner, "restarted");
        *self.inner.state.lock() = SourceState::Idle;
        self.inner.restarted.notify_one();
    }

    fn login_hint(&self) -> Option<String> {
        self.inner.definition.access.as_ref().map(|access| access.login_hint.clone())
    }

    fn is_queued(&self) -> bool {
        self.inner.queued.load(Ordering::Relaxed) > 0
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        let mut first_attempt_done = self.inner.lists.first_attempt_done.subscribe();
        Box::pin(async move {
            let _wanted = CountGuard::new(&self.inner.waiting_requests);
            let _ = first_attempt_done.wait_for(|first_attempt_done| *first_attempt_done).await;
        })
    }

    fn call(&self, invocation: Invocation, context: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        // The only place where a call leaves this crate.
        Box::pin(async move { Ok(call::call(&self.inner, invocation, context).await?) })
    }

    fn roots_changed(&self, session: SessionId) {
        let owned = self.inner.slots.live_of(session);
        if let Some(connection) = owned.filter(|connection| !connection.is_stateless()) {
            connection.notify("notifications/roots/list_changed", None);
        }
    }

    fn release(&self, session: SessionId) {
        self.inner.levels.forget(session);
        let owned = self.inner.slots.owned.lock().remove(&session);
        if let Some(slot) = owned {
            let name = &self.inner.definition.name;
            slot.end(Error::new(ErrorKind::Cancelled, format!("The session that `{name}` served has ended.")));
        }
        if let Some(connection) = self.inner.slots.shared.open_connection() {
            subscription::release(&connection, session);
        }
    }

    fn close(&self, drain: Duration) -> BoxFuture<'_, ()> {
        Box::pin(close(&self.inner, drain))
    }
}

fn notice(upstream: &Arc<UpstreamInner>, notice: ConnectionNotice) {
    match notice {
        ConnectionNotice::ListChanged(connection) => {
            upstream.tasks.spawn(list_change::reread_announced(Arc::clone(upstream), connection));
        }
        ConnectionNotice::AskedBack => lists::record_server_asks(upstream),
        ConnectionNotice::Event(event) => (upstream.listener)(event),
    }
}

/// Closes all connections and resets crashes and backoff.
fn stop(upstream: &UpstreamInner, how: &str) {
    let reason = || {
        let message = format!("`{}` was {how} by an admin.", upstream.definition.name);
        Error::new(ErrorKind::UpstreamUnavailable, message)
    };
    for (_, slot) in upstream.slots.owned.lock().drain() {
        slot.end(reason());
    }
    upstream.crashes.forget();
    upstream.slots.shared.reset(reason());
}

async fn stop_idle_processes(upstream: Arc<UpstreamInner>) {
    if !upstream.definition.transport.is_stdio() {
        return;
    }
    let idle_stop = upstream.environment.limits.idle_stop;
    let mut tick = tokio::time::interval((idle_stop / 4).max(Duration::from_millis(20)));
    while upstream.closed.run_until_cancelled(tick.tick()).await.is_some() {
        let Some(before) = Instant::now().checked_sub(idle_stop) else { continue };
        for slot in upstream.slots.all() {
            if slot.stop_if_idle(before) {
                tracing::debug!(module = &*upstream.definition.name, "stopped because it was idle");
            }
        }
    }
}

async fn close(upstream: &UpstreamInner, drain: Duration) {
    let slots: Vec<_> =
        upstream.slots.owned.lock().drain().map(|(_, slot)| slot).chain([Arc::clone(&upstream.slots.shared)]).collect();
    let busy = || upstream.calls.load(Ordering::Relaxed) > 0;
    let deadline = Instant::now() + drain;
    while busy() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let reason = || {
        let name = &upstream.definition.name;
        Error::new(ErrorKind::UpstreamUnavailable, format!("`{name}` is shutting down."))
    };
    for slot in &slots {
        slot.end(reason());
    }
    // Closed one by one before the common token, so that each server receives its cancellations.
    for connection in upstream.slots.take_alive() {
        connection.close(reason());
    }
    upstream.closed.cancel();
    upstream.tasks.close();
    upstream.tasks.wait().await;
}
