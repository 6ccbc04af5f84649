//! Logins to the upstream servers of a runtime.

use std::sync::Arc;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::login::{LoginRedirect, ModuleLogins};
use hikite_core::source::BoxFuture;
use hikite_upstream::Upstream;

use crate::runtime::Runtime;

impl Runtime {
    fn login_upstream(&self, module: &str) -> Result<Upstream, Error> {
        let upstream = self.upstream(module).filter(Upstream::uses_oauth);
        upstream.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("`{module}` has no login.")))
    }
}

impl ModuleLogins for Runtime {
    fn knows(&self, module: &str) -> bool {
        self.login_upstream(module).is_ok()
    }

    fn begin<'a>(&'a self, module: &'a str, redirect: &'a str) -> BoxFuture<'a, Result<LoginRedirect, Error>> {
        Box::pin(async move { self.login_upstream(module)?.begin_login(redirect).await })
    }

    fn is_pending(&self, state: &str) -> bool {
        self.upstream_awaiting_login(state).is_some()
    }

    fn finish<'a>(&'a self, query: &'a str) -> BoxFuture<'a, Result<Arc<str>, Error>> {
        Box::pin(async move {
            let state = query.split('&').find_map(|pair| pair.strip_prefix("state=")).unwrap_or_default();
            let Some((name, upstream)) = self.upstream_awaiting_login(state) else {
                let error = Error::new(ErrorKind::Validation, "The login failed: it is unknown or has expired.");
                return Err(error.hint("Start it again."));
            };
            upstream.finish_login(query).await?;
            Ok(name)
        })
    }

    fn leave<'a>(&'a self, module: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.login_upstream(module)?.log_out().await })
    }
}
