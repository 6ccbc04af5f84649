//! What strangers may set going here without saying who they are: questions that are kept until they are answered. So many
//! in a minute from one place, and wrong answers count like wrong tokens.

use std::time::Duration;

use hikite_core::error::{Error, Kind};
use hikite_core::rate::Rate;

use super::desk::Desk;

const RATE: Rate = Rate { count: 60, per: Duration::from_secs(60) };

/// Whether one more may be begun from there.
pub(crate) fn begin(desk: &Desk) -> Result<(), Error> {
    look(desk)?;
    let Some(peer) = desk.peer else { return Ok(()) };
    let taken = desk.app.tries.begun.take(&peer, RATE, desk.app.started.elapsed()).0;
    taken.map_err(|wait| {
        Error::new(Kind::RateLimit, "too many logins were begun from this address").after(wait)
    })
}

/// Whether anything from there is looked at.
pub(crate) fn look(desk: &Desk) -> Result<(), Error> {
    desk.app.brake.look(desk.peer, &desk.app)
}

pub(crate) fn failed(desk: &Desk) {
    // Whether it was one too many is seen at the next try.
    let _ = desk.app.brake.note(desk.peer, &desk.app);
}
