//! Throttle of logins that anonymous visitors start: stored challenges are limited per minute and address, and wrong
//! answers count as failed authentications.

use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::rate::Rate;

use super::context::OauthContext;

const RATE: Rate = Rate { count: 60, per: Duration::from_secs(60) };

/// Checks whether this address may start another login.
pub(crate) fn begin(context: &OauthContext) -> Result<(), Error> {
    look(context)?;
    let Some(peer) = context.peer else { return Ok(()) };
    let taken = context.app.attempt_limits.challenges.take(&peer, RATE, context.app.started.elapsed()).0;
    taken
        .map_err(|wait| Error::new(ErrorKind::RateLimit, "Too many logins were started from this address.").after(wait))
}

/// Checks the login throttle of this address.
pub(crate) fn look(context: &OauthContext) -> Result<(), Error> {
    context.app.login_throttle.look(context.peer)
}

pub(crate) fn failed(context: &OauthContext) {
    // The limit is enforced at the next attempt.
    let _ = context.app.login_throttle.note(context.peer);
}
