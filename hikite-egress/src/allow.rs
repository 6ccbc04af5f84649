//! Allow-list of a guarded client: addresses, networks and host names that it may reach besides the public internet.

use std::net::IpAddr;

use crate::network::{Network, is_public, meant};

/// One entry of an allow-list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed(Entry);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Network(Network),
    /// A host name, whatever it resolves to.
    Host(Box<str>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow(Vec<Allowed>);

impl Allowed {
    /// Parses `127.0.0.1`, `10.0.0.0/8`, `fd00::/8` or `internal.example`; `None` if it is none of them.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(network) = Network::parse(text) {
            return Some(Self(Entry::Network(network)));
        }
        let name = plain(text);
        let is_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        // A name that ends in a number is a misspelt address.
        let is_number =
            name.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()));
        (!is_number && name.split('.').all(is_label)).then(|| Self(Entry::Host(name.into())))
    }
}

impl Allow {
    pub fn of(entries: impl IntoIterator<Item = Allowed>) -> Self {
        Self(entries.into_iter().collect())
    }

    /// Adds further entries.
    #[must_use]
    pub fn and(mut self, entries: impl IntoIterator<Item = Allowed>) -> Self {
        self.0.extend(entries);
        self
    }

    /// Returns `true` if a request for `host` may connect to `address`.
    pub(crate) fn permits(&self, host: &str, address: IpAddr) -> bool {
        is_public(address) || {
            let (host, meant) = (plain(host), meant(address));
            self.0.iter().any(|Allowed(entry)| match entry {
                Entry::Network(network) => network.contains(meant) || network.contains(address),
                Entry::Host(name) => **name == *host,
            })
        }
    }
}

/// Normalises a host name: lower case, without the root dot.
fn plain(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entries: &[&str], host: &str, address: &str, expected: bool) {
        let allow = Allow::of(entries.iter().map(|entry| Allowed::parse(entry).expect("an entry")));
        assert_eq!(
            allow.permits(host, address.parse().expect("an address")),
            expected,
            "{entries:?} {host} {address}"
        );
    }

    #[test]
    fn only_what_is_named_gets_through() {
        check(&[], "example.com", "93.184.216.34", true);
        check(&[], "internal.example", "10.0.0.1", false);
        check(&["internal.example"], "internal.example", "10.0.0.1", true);
        check(&["Internal.Example."], "INTERNAL.example.", "10.0.0.1", true);
        check(&["internal.example"], "evil.internal.example", "10.0.0.1", false);
        check(&["internal.example"], "internal.example.evil", "10.0.0.1", false);
        check(&["127.0.0.1"], "localhost", "127.0.0.1", true);
        check(&["127.0.0.1"], "localhost", "::1", false);
        check(&["127.0.0.1"], "x", "::ffff:127.0.0.1", true);
        check(&["10.0.0.0/8"], "x", "64:ff9b::a00:1", true);
        check(&["10.0.0.0/8"], "x", "192.168.0.1", false);
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for wrong in
            ["", "*", "a b", "http://x", "10.0.0.0/33", "10.0.0.256", "10.0", "a..b", "a/8", "x:80", "*.x"]
        {
            assert_eq!(Allowed::parse(wrong), None, "{wrong}");
        }
    }
}
