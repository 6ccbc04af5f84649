//! The login throttle: counts failed authentications per address and says when to try again.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::rate::Rate;
use tokio::time::Instant;

use crate::bucket::Buckets;
use crate::error_response::whole_seconds;

/// Window of the throttle; the count is a configured limit.
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct LoginThrottle {
    failures: Buckets<IpAddr>,
    /// Allowed failures; `None` disables the throttle.
    rate: Option<Rate>,
    started: Instant,
}

impl LoginThrottle {
    /// Allows `count` failures per window; zero disables the throttle.
    pub(crate) fn new(count: u32, started: Instant) -> Self {
        let rate = (count > 0).then_some(Rate { count, per: WINDOW });
        Self { failures: Buckets::default(), rate, started }
    }

    /// Records a failed authentication; an error if there were too many before it.
    pub(crate) fn note(&self, peer: Option<IpAddr>) -> Result<(), Error> {
        let (Some(peer), Some(rate)) = (peer.map(place), self.rate) else { return Ok(()) };
        self.failures.take(&peer, rate, self.started.elapsed()).0.map_err(too_many)
    }

    /// Returns an error while requests from this address are refused.
    pub(crate) fn look(&self, peer: Option<IpAddr>) -> Result<(), Error> {
        let (Some(peer), Some(rate)) = (peer.map(place), self.rate) else { return Ok(()) };
        self.failures.look(&peer, rate, self.started.elapsed()).map_err(too_many)
    }
}

/// Formats an IPv4 address, or the /64 network of an IPv6 address.
pub(crate) fn network_of(peer: IpAddr) -> String {
    match place(peer) {
        IpAddr::V6(address) => format!("{address}/64"),
        address @ IpAddr::V4(_) => address.to_string(),
    }
}

/// Maps an IPv6 address to its /64 network, because one subscriber has all 2^64 addresses of it.
pub(crate) fn place(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

fn too_many(wait: Duration) -> Error {
    let hint = format!("Check the token, and try again in {} s.", whole_seconds(wait));
    Error::new(ErrorKind::RateLimit, "Too many wrong tokens were sent from this address.").hint(hint).after(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> IpAddr {
        place(text.parse().expect("an address"))
    }

    #[test]
    fn a_net_of_version_6_is_one_address() {
        assert_eq!(peer("2001:db8:1:2:3:4:5:6"), peer("2001:db8:1:2::1"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
    }
}
