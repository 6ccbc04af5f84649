//! Throttle of logins that anonymous visitors start: stored challenges are limited per minute and address, and wrong
//! answers count as failed authentications.

use std::time::Duration;

use hikite_core::error::{Error, Kind};
use hikite_core::rate::Rate;

use super::desk::Desk;

const RATE: Rate = Rate { count: 60, per: Duration::from_secs(60) };

/// Checks whether this address may start another login.
pub(crate) fn begin(desk: &Desk) -> Result<(), Error> {
    look(desk)?;
    let Some(peer) = desk.peer else { return Ok(()) };
    let taken = desk.app.tries.begun.take(&peer, RATE, desk.app.started.elapsed()).0;
    taken.map_err(|wait| {
        Error::new(Kind::RateLimit, "too many logins were begun from this address").after(wait)
    })
}

/// Checks the login throttle of this address.
pub(crate) fn look(desk: &Desk) -> Result<(), Error> {
    desk.app.brake.look(desk.peer, &desk.app)
}

pub(crate) fn failed(desk: &Desk) {
    // The limit is enforced at the next attempt.
    let _ = desk.app.brake.note(desk.peer, &desk.app);
}
