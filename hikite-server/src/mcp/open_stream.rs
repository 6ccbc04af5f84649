//! Long-lived event streams: of sessions, of the HTTP+SSE transport and of subscriptions. Each takes a slot. A caller
//! over its share is refused; when all slots are taken, the oldest stream of the largest holder ends.

use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::error::Error;
use hikite_core::limits::Limits;
use hikite_core::share::{Allowance, ShareHolder};
use hikite_gateway::share::{SharedSlot, SharedSlots, SlotKind, SlotUsage};
use hikite_identity::People;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::app::App;

#[derive(Debug)]
pub(crate) struct OpenStreams(SharedSlots<OpenStream>);

/// An open stream.
#[derive(Debug)]
struct OpenStream {
    caller: Caller,
    since: Instant,
    ending: CancellationToken,
}

/// A slot, held by the body of a stream.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    /// Cancelled when the stream must end: on shutdown, on eviction, or when its caller loses access.
    pub(crate) ending: CancellationToken,
    _place: SharedSlot<OpenStream>,
}

const KIND: SlotKind = SlotKind { resource: "streams", limit: "streams", things: "event streams open" };

impl OpenStreams {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self(SharedSlots::new(KIND, Allowance::of(limits.streams, limits.caller_share)))
    }

    /// Takes a slot for one more stream of this caller.
    pub(crate) fn take(app: &Arc<App>, caller: &Caller) -> Result<StreamSlot, Error> {
        let ending = app.stopping.child_token();
        let open = OpenStream { caller: caller.clone(), since: Instant::now(), ending: ending.clone() };
        let oldest = |open: &OpenStream, is_own: bool| (!is_own).then_some(open.since);
        let (place, out) = app.streams.0.take(&ShareHolder::from(caller), open, oldest)?;
        if let Some(out) = out {
            out.ending.cancel();
        }
        Ok(StreamSlot { ending, _place: place })
    }

    /// Ends the streams of callers who were locked out or removed, or whose token was revoked.
    pub(crate) fn end_revoked(&self, people: &People) {
        self.end_where(|caller| !people.is_still_valid(caller));
    }

    /// Ends the streams of the callers for whom `is_over` returns `true`.
    pub(crate) fn end_where(&self, is_over: impl Fn(&Caller) -> bool) {
        self.0.for_each(|open| {
            if is_over(&open.caller) {
                open.ending.cancel();
            }
        });
    }

    pub(crate) fn usage(&self) -> SlotUsage {
        self.0.usage()
    }
}
