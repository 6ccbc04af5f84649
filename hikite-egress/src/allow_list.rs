//! Allow-list of a guarded client: addresses, networks and host names that it may reach besides the public internet.

use std::net::IpAddr;

use crate::network::{IpNetwork, effective_address, is_public};

/// One entry of an allow-list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedAddress(AddressPattern);

#[derive(Clone, Debug, PartialEq, Eq)]
enum AddressPattern {
    Network(IpNetwork),
    /// A host name, whatever it resolves to.
    Host(Box<str>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(Vec<AllowedAddress>);

impl AllowedAddress {
    /// Parses `127.0.0.1`, `10.0.0.0/8`, `fd00::/8` or `internal.example`; `None` if it is none of them.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(network) = IpNetwork::parse(text) {
            return Some(Self(AddressPattern::Network(network)));
        }
        let name = normalized(text);
        let is_label = |label: &str| {
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        // A name that ends in a number is a misspelt address.
        let is_number = name.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()));
        (!is_number && name.split('.').all(is_label)).then(|| Self(AddressPattern::Host(name.into())))
    }
}

impl AllowList {
    pub fn of(entries: impl IntoIterator<Item = AllowedAddress>) -> Self {
        Self(entries.into_iter().collect())
    }

    /// Adds further entries.
    #[must_use]
    pub fn and(mut self, entries: impl IntoIterator<Item = AllowedAddress>) -> Self {
        self.0.extend(entries);
        self
    }

    /// Returns `true` if a request for `host` may connect to `address`.
    pub(crate) fn permits(&self, host: &str, address: IpAddr) -> bool {
        is_public(address) || {
            let (host, effective_address) = (normalized(host), effective_address(address));
            self.0.iter().any(|AllowedAddress(entry)| match entry {
                AddressPattern::Network(network) => network.contains(effective_address) || network.contains(address),
                AddressPattern::Host(name) => **name == *host,
            })
        }
    }
}

/// Normalises a host name: lower case, without the root dot.
fn normalized(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entries: &[&str], host: &str, address: &str, expected: bool) {
        let allow = AllowList::of(entries.iter().map(|entry| AllowedAddress::parse(entry).expect("an entry")));
        assert_eq!(allow.permits(host, address.parse().expect("an address")), expected, "{entries:?} {host} {address}");
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
        for wrong in ["", "*", "a b", "http://x", "10.0.0.0/33", "10.0.0.256", "10.0", "a..b", "a/8", "x:80", "*.x"] {
            assert_eq!(AllowedAddress::parse(wrong), None, "{wrong}");
        }
    }
}
