//! Open connections by address. Each address has a share, and idle connections give way to new ones, the longest idle
//! first: nobody can block others by holding idle connections.

use std::net::IpAddr;

use hikite_core::error::Error;
use hikite_core::limits::Limits;
use hikite_core::share::{Allowance, ShareHolder};
use hikite_gateway::share::{SharedSlot, SharedSlots, SlotKind, SlotUsage};
use rustix::process::{Resource, getrlimit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Activity;
use crate::login_throttle::network_of;

#[derive(Debug)]
pub(crate) struct Connections {
    places: SharedSlots<OpenConnection>,
    /// Advice on which limit to raise.
    raise: Box<str>,
}

/// An open connection.
#[derive(Debug)]
struct OpenConnection {
    accepted: Instant,
    activity: Activity,
    ending: CancellationToken,
    is_proxy: bool,
}

/// A slot in the table, held while a connection is open.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    pub(crate) activity: Activity,
    /// Cancelled when the connection is evicted.
    pub(crate) ending: CancellationToken,
    _place: SharedSlot<OpenConnection>,
}

const KIND: SlotKind = SlotKind { resource: "connections", limit: "connections", things: "connections open" };

impl Connections {
    /// Builds the table with the configured limit, reduced to what the limit of open files leaves beside upstreams and
    /// the store.
    pub(crate) fn new(limits: &Limits) -> Self {
        let files = getrlimit(Resource::Nofile).current;
        let most = files.map_or(usize::MAX, connections_of);
        let raise = match files {
            Some(files) if most < limits.connections => {
                tracing::warn!(
                    "the limit of open files is {files}, so at most {most} connections are accepted; raise it \
                     (`ulimit -n`, `LimitNOFILE=`) for the {} of `limits.connections`",
                    limits.connections
                );
                format!("the limit of open files (`ulimit -n`, `LimitNOFILE=`) is {files}; raise it")
            }
            _ => "the limit is `limits.connections`".into(),
        };
        let allowance = Allowance::of(limits.connections.min(most), limits.caller_share);
        Self { places: SharedSlots::new(KIND, allowance.without_reserve()), raise: raise.into() }
    }

    pub(crate) fn limit_hint(&self) -> &str {
        &self.raise
    }

    /// Takes a slot for a connection. A trusted proxy serves many clients: it is exempt from the share of an address,
    /// and its connections are evicted only for its own.
    pub(crate) fn take(&self, peer: IpAddr, is_proxy: bool) -> Result<ConnectionSlot, Error> {
        let holder = ShareHolder { name: network_of(peer).into(), privileged: is_proxy };
        let (activity, ending) = (Activity::new(), CancellationToken::new());
        let open =
            OpenConnection { accepted: Instant::now(), activity: activity.clone(), ending: ending.clone(), is_proxy };
        let (place, out) = self.places.take(&holder, open, |open, is_own| {
            let gives_way = is_own || !open.is_proxy;
            open.activity.idle_after().filter(|_| gives_way).map(|after| open.accepted + after)
        })?;
        if let Some(out) = out {
            out.ending.cancel();
        }
        Ok(ConnectionSlot { activity, ending, _place: place })
    }

    pub(crate) fn usage(&self) -> SlotUsage {
        self.places.usage()
    }
}

/// Returns the connections that a limit of open files allows. A quarter, at least 64, is reserved for upstreams, the
/// store and the rest.
fn connections_of(files: u64) -> usize {
    let others = (files / 4).max(64);
    usize::try_from(files.saturating_sub(others).max(16)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(connections: usize) -> Connections {
        Connections::new(&Limits { connections, ..Limits::default() })
    }

    fn peer(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn connections_leave_files_for_others() {
        assert_eq!(connections_of(64), 16);
        assert_eq!(connections_of(256), 192);
        assert_eq!(connections_of(1024), 768);
        assert!(connections_of(1 << 20) > 4096);
    }

    #[tokio::test]
    async fn idle_connections_of_one_network_give_way_and_others_get_in() {
        let connections = connections(4);
        let held: Vec<ConnectionSlot> = ["2001:db8::1", "2001:db8::2", "2001:db8::3"]
            .map(|text| connections.take(peer(text), false).expect("room"))
            .into();
        assert!(held[0].ending.is_cancelled(), "the third one is over its share");
        assert!(!held[1].ending.is_cancelled());
        for other in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
            drop(connections.take(peer(other), false).expect("room"));
        }
        assert_eq!(connections.usage().top, [("2001:db8::/64".into(), 2)]);
    }

    #[tokio::test]
    async fn a_request_of_nobody_in_particular_gives_way() {
        let connections = connections(2);
        let slow = connections.take(peer("192.0.2.1"), false).expect("room");
        let _body = slow.activity.begin();
        let other = connections.take(peer("192.0.2.2"), false).expect("room");
        assert!(connections.take(peer("192.0.2.1"), false).is_ok() && slow.ending.is_cancelled());
        assert!(!other.ending.is_cancelled());
    }

    #[tokio::test]
    async fn connections_in_use_stay_and_a_proxy_has_no_share() {
        let connections = connections(4);
        let busy: Vec<_> = (0..2)
            .map(|_| {
                let place = connections.take(peer("192.0.2.1"), false).expect("room");
                place.activity.mark_authenticated();
                (place.activity.begin(), place)
            })
            .collect();
        assert!(connections.take(peer("192.0.2.1"), false).is_err(), "its share is in use");
        drop(busy);
        let proxied: Vec<_> = (0..5).map(|_| connections.take(peer("10.0.0.1"), true).expect("room")).collect();
        assert_eq!(proxied.iter().filter(|place| place.ending.is_cancelled()).count(), 1, "its own gave way");
    }
}
