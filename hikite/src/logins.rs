//! Logins to the upstream servers of a runtime.

use std::sync::Arc;

use hikite_core::error::{Error, Kind};
use hikite_core::login::{Begun, Logins};
use hikite_core::source::BoxFuture;
use hikite_upstream::Upstream;

use crate::house::House;

impl House {
    fn logged_in_to(&self, module: &str) -> Result<Upstream, Error> {
        let upstream = self.upstream(module).filter(Upstream::logs_in);
        upstream
            .ok_or_else(|| Error::new(Kind::NotFound, format!("there is nothing to log in to: `{module}`")))
    }
}

impl Logins for House {
    fn knows(&self, module: &str) -> bool {
        self.logged_in_to(module).is_ok()
    }

    fn begin<'a>(&'a self, module: &'a str, redirect: &'a str) -> BoxFuture<'a, Result<Begun, Error>> {
        Box::pin(async move { self.logged_in_to(module)?.begin_login(redirect).await })
    }

    fn awaits(&self, state: &str) -> bool {
        self.awaiting(state).is_some()
    }

    fn finish<'a>(&'a self, query: &'a str) -> BoxFuture<'a, Result<Arc<str>, Error>> {
        Box::pin(async move {
            let state = query.split('&').find_map(|pair| pair.strip_prefix("state=")).unwrap_or_default();
            let Some((name, upstream)) = self.awaiting(state) else {
                let error = Error::new(Kind::Validation, "the login failed: it is not known, or over");
                return Err(error.hint("begin it again"));
            };
            upstream.finish_login(query).await?;
            Ok(name)
        })
    }

    fn leave<'a>(&'a self, module: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.logged_in_to(module)?.leave_login().await })
    }
}
