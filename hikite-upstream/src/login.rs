//! OAuth login of an upstream: its public entry points, and the list refresh after a login.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::login::LoginRedirect;
use hikite_core::source::SourceEvent;
use hikite_egress::AllowList;

use crate::oauth::Authorization;
use crate::upstream::{Upstream, UpstreamInner};

/// Interval between checks for a login through another process.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Upstream {
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
        Ok(self.inner.renew_lists().await?)
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

impl UpstreamInner {
    pub(crate) fn needs_login(&self) -> bool {
        self.authorization.as_ref().is_some_and(|authorization| authorization.is_needed())
    }

    /// Waits until somebody has logged in, here or through another process.
    pub(crate) async fn wait_for_login(&self) {
        let Some(authorization) = &self.authorization else { return std::future::pending().await };
        loop {
            tokio::select! {
                () = authorization.logged_in.notified() => return,
                // The login state that others see has changed.
                () = authorization.changed.notified() => (self.listener)(SourceEvent::ListChanged),
                () = tokio::time::sleep(POLL_INTERVAL) => {
                    if authorization.is_needed() && authorization.has_newer_tokens().await {
                        return;
                    }
                }
            }
        }
    }
}
