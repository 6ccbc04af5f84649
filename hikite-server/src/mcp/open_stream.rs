//! Event streams that stay open: a session's own, that of the old transport, and that of a listener. Each takes a place;
//! a caller with too many is refused, and where all places are taken the oldest stream of whoever has most ends.

use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::error::Error;
use hikite_core::limits::Limits;
use hikite_core::share::{Allowance, ShareHolder};
use hikite_gateway::People;
use hikite_gateway::share::{Place, PlaceKind, Places, Usage};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::app::App;

#[derive(Debug)]
pub(crate) struct OpenStreams(Places<Open>);

/// One of them.
#[derive(Debug)]
struct Open {
    caller: Caller,
    since: Instant,
    ending: CancellationToken,
}

/// Held by the body of a stream.
#[derive(Debug)]
pub(crate) struct StreamPlace {
    /// Fires when the stream must end: we stop, it gives way, or its caller may stay no longer.
    pub(crate) ending: CancellationToken,
    _place: Place<Open>,
}

const KIND: PlaceKind = PlaceKind { resource: "streams", limit: "streams", things: "event streams open" };

impl OpenStreams {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self(Places::new(KIND, Allowance::of(limits.streams, limits.caller_share)))
    }

    /// A place for one more stream of this caller.
    pub(crate) fn take(app: &Arc<App>, caller: &Caller) -> Result<StreamPlace, Error> {
        let ending = app.stopping.child_token();
        let open = Open { caller: caller.clone(), since: Instant::now(), ending: ending.clone() };
        let oldest = |open: &Open, is_own: bool| (!is_own).then_some(open.since);
        let (place, out) = app.streams.0.take(&ShareHolder::from(caller), open, oldest)?;
        if let Some(out) = out {
            out.ending.cancel();
        }
        Ok(StreamPlace { ending, _place: place })
    }

    /// Ends the streams of callers who were locked out, removed, or lost their token.
    pub(crate) fn end_gone(&self, people: &People) {
        self.end_where(|caller| !people.still_knows(caller));
    }

    /// Ends the streams of these callers.
    pub(crate) fn end_where(&self, is_over: impl Fn(&Caller) -> bool) {
        self.0.for_each(|open| {
            if is_over(&open.caller) {
                open.ending.cancel();
            }
        });
    }

    pub(crate) fn usage(&self) -> Usage {
        self.0.usage()
    }
}
