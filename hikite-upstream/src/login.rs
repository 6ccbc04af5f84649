//! An upstream that people log in to: the way from the outside to its authorization, and what happens to its lists once
//! somebody did.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use hikite_core::login::Begun;
use hikite_core::source::Event;
use hikite_egress::Allow;

use crate::oauth::Authorization;
use crate::upstream::{Inner, Upstream};

/// How often it is looked whether somebody logged in through another process.
const LOOK: Duration = Duration::from_secs(1);

impl Upstream {
    /// Whether it is logged in to at all: not a program, and not one with credentials in its headers.
    pub fn logs_in(&self) -> bool {
        self.inner.authorization.is_some()
    }

    /// Begins a login; the browser is to come back to `redirect`.
    pub async fn begin_login(&self, redirect: &str) -> Result<Begun, Error> {
        self.authorization()?.begin(redirect).await
    }

    /// Whether a login of this state has begun here and is not over.
    pub fn awaits_login(&self, state: &str) -> bool {
        self.inner.authorization.as_ref().is_some_and(|authorization| authorization.awaits(state))
    }

    /// Ends a login with the query that the browser brought.
    pub async fn finish_login(&self, query: &str) -> Result<(), Error> {
        self.authorization()?.finish(query).await
    }

    /// Takes back what a login gave.
    pub async fn leave_login(&self) -> Result<(), Error> {
        self.authorization()?.leave().await
    }

    /// Reads the lists now, as after a login.
    pub async fn relist(&self) -> Result<(), Error> {
        self.inner.renew_lists().await
    }

    /// What the documents of its login may be read from, beside the public internet.
    pub fn allow(&self, egress: &Allow) {
        if let Some(authorization) = &self.inner.authorization {
            authorization.allow(egress);
        }
    }

    fn authorization(&self) -> Result<&Arc<Authorization>, Error> {
        self.inner.authorization.as_ref().ok_or_else(|| {
            let message = format!("`{}` is not logged in to", self.inner.definition.name);
            Error::new(Kind::Validation, message).hint("its credentials stand in the config, or it has none")
        })
    }
}

impl Inner {
    pub(crate) fn needs_login(&self) -> bool {
        self.authorization.as_ref().is_some_and(|authorization| authorization.is_needed())
    }

    /// Resolves once somebody logged in, here or through another process.
    pub(crate) async fn let_in(&self) {
        let Some(authorization) = &self.authorization else { return std::future::pending().await };
        loop {
            tokio::select! {
                () = authorization.news.notified() => return,
                // What others see of it has changed.
                () = authorization.changed.notified() => (self.listener)(Event::ListChanged),
                () = tokio::time::sleep(LOOK) => {
                    if authorization.is_needed() && authorization.has_news().await {
                        return;
                    }
                }
            }
        }
    }
}
