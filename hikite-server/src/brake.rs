//! The brake on guessing: how many wrong tokens have come from an address lately, and when it may try again.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use hikite_core::rate::{Bucket, Rate};
use parking_lot::Mutex;

use crate::app::App;
use crate::refusal::whole_seconds;

/// So many wrong tokens may come within it, which is in the limits.
const SPAN: Duration = Duration::from_secs(60);
/// Addresses that are remembered; beyond it the one is forgotten that has tried least.
const ADDRESSES: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Brake(Mutex<HashMap<IpAddr, Bucket>>);

impl Brake {
    /// A wrong token came from there: an error if there were too many before it.
    pub(crate) fn note(&self, peer: Option<IpAddr>, app: &App) -> Result<(), Error> {
        let (Some(peer), Some(rate)) = (peer.map(place), rate(app)) else { return Ok(()) };
        self.take(peer, rate, app.started.elapsed()).map_err(too_many)
    }

    /// Whether anything from there is looked at.
    pub(crate) fn look(&self, peer: Option<IpAddr>, app: &App) -> Result<(), Error> {
        let (Some(peer), Some(rate)) = (peer.map(place), rate(app)) else { return Ok(()) };
        let bucket = self.0.lock().get(&peer).copied();
        // A copy: to look is not to try.
        bucket.map_or(Ok(()), |mut bucket| bucket.take(rate, app.started.elapsed())).map_err(too_many)
    }

    fn take(&self, peer: IpAddr, rate: Rate, now: Duration) -> Result<(), Duration> {
        let mut buckets = self.0.lock();
        if buckets.len() >= ADDRESSES && !buckets.contains_key(&peer) {
            make_room(&mut buckets, rate, now);
        }
        buckets.entry(peer).or_default().take(rate, now)
    }
}

fn make_room(buckets: &mut HashMap<IpAddr, Bucket>, rate: Rate, now: Duration) {
    let wait = |bucket: &Bucket| bucket.left(rate, now).until_full;
    buckets.retain(|_, bucket| wait(bucket) > Duration::ZERO);
    if buckets.len() >= ADDRESSES {
        let least = buckets.iter().min_by_key(|(_, bucket)| wait(bucket)).map(|(peer, _)| *peer);
        least.map(|peer| buckets.remove(&peer));
    }
}

/// Zero is no brake.
fn rate(app: &App) -> Option<Rate> {
    let count = app.limits.failed_logins;
    (count > 0).then_some(Rate { count, per: SPAN })
}

/// Whoever has one address of version 6 has 2^64 of them.
fn place(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

fn too_many(wait: Duration) -> Error {
    let hint = format!("check the token, and try again in {} s", whole_seconds(wait));
    Error::new(Kind::RateLimit, "too many wrong tokens have come from this address").hint(hint).after(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { count: 3, per: SPAN };
    const START: Duration = Duration::from_secs(1000);

    fn peer(text: &str) -> IpAddr {
        place(text.parse().expect("an address"))
    }

    #[test]
    fn one_address_waits_and_another_does_not() {
        let brake = Brake::default();
        for _ in 0..3 {
            assert_eq!(brake.take(peer("192.0.2.1"), RATE, START), Ok(()));
        }
        assert_eq!(brake.take(peer("192.0.2.1"), RATE, START), Err(Duration::from_secs(20)));
        assert_eq!(brake.take(peer("::ffff:192.0.2.1"), RATE, START), Err(Duration::from_secs(20)));
        assert_eq!(brake.take(peer("192.0.2.2"), RATE, START), Ok(()));
        assert_eq!(brake.take(peer("192.0.2.1"), RATE, START + SPAN), Ok(()));
    }

    #[test]
    fn a_net_of_version_6_is_one_address() {
        assert_eq!(peer("2001:db8:1:2:3:4:5:6"), peer("2001:db8:1:2::1"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
    }

    #[test]
    fn the_table_has_an_end_and_keeps_who_tried_most() {
        let brake = Brake::default();
        while brake.take(peer("192.0.2.1"), RATE, START).is_ok() {}
        for number in 0..u32::try_from(ADDRESSES).expect("small") + 50 {
            let from = IpAddr::from((0x0A00_0000 + number).to_be_bytes());
            assert_eq!(brake.take(from, RATE, START), Ok(()));
        }
        assert!(brake.0.lock().len() <= ADDRESSES);
        assert!(brake.take(peer("192.0.2.1"), RATE, START).is_err(), "it was not forgotten");
    }
}
