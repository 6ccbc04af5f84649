//! Client addresses behind proxies. `X-Forwarded-*` and `Forwarded` are trusted only from configured proxies; the chain
//! is walked from our end up to the first address that is not one of them.

use std::net::{IpAddr, SocketAddr};

use axum::extract::Request;
use hikite_egress::IpNetwork;
use http::HeaderMap;
use http::header::{FORWARDED, HeaderName};

use crate::connection::ClientAddress;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
/// Maximum hops that are walked.
const HOPS_MAX: usize = 32;

/// The trusted proxies.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<IpNetwork>);

/// The host that the client requested from a trusted proxy, stored in the extensions of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForwardedHost(pub(crate) Box<str>);

impl TrustedProxies {
    pub fn of(networks: impl IntoIterator<Item = IpNetwork>) -> Self {
        Self(networks.into_iter().collect())
    }

    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(address))
    }
}

/// Replaces the client address and scheme of a request by those that a trusted proxy forwarded.
pub(crate) fn apply_forwarding(proxies: &TrustedProxies, request: &mut Request) {
    if proxies.0.is_empty() {
        return;
    }
    let Some(peer) = request.extensions().get::<ClientAddress>().copied() else { return };
    if !proxies.trusts(peer.address) {
        return;
    }
    let forwarding_info = forwarding_info(proxies, peer.address, request.headers());
    let is_secure = forwarding_info.is_secure.unwrap_or(peer.is_secure);
    let (client, asked) = (forwarding_info.client, forwarding_info.host.map(|host| ForwardedHost(host.into())));
    request.extensions_mut().insert(ClientAddress { address: client, is_secure });
    if let Some(asked) = asked {
        request.extensions_mut().insert(asked);
    }
}

/// The forwarding data of a request.
#[derive(Debug, PartialEq, Eq)]
struct ForwardingInfo<'a> {
    client: IpAddr,
    is_secure: Option<bool>,
    host: Option<&'a str>,
}

fn forwarding_info<'a>(proxies: &TrustedProxies, peer: IpAddr, headers: &'a HeaderMap) -> ForwardingInfo<'a> {
    let plain = walk(proxies, peer, elements(headers, &FOR).map(address));
    let standard = walk(proxies, peer, elements(headers, &FORWARDED).map(|hop| address(member(hop, "for")?)));
    let client = match (plain, standard) {
        // A proxy that writes one of the headers may pass on a forged value of the other.
        (Some(one), Some(other)) if one != other => peer,
        (Some(client), _) | (None, Some(client)) => client,
        (None, None) => peer,
    };
    let last = elements(headers, &FORWARDED).next();
    let proto = elements(headers, &PROTO).next().or_else(|| member(last?, "proto"));
    let is_secure = proto.and_then(|proto| match proto {
        _ if proto.eq_ignore_ascii_case("https") => Some(true),
        _ if proto.eq_ignore_ascii_case("http") => Some(false),
        _ => None,
    });
    let host = elements(headers, &HOST).next().or_else(|| member(last?, "host"));
    ForwardingInfo { client, is_secure, host }
}

/// Returns the first address from our end that is not a trusted proxy; `None` without a chain.
fn walk(proxies: &TrustedProxies, peer: IpAddr, chain: impl Iterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
    let mut chain = chain.take(HOPS_MAX).peekable();
    chain.peek()?;
    let mut client = peer;
    for hop in chain {
        // An unreadable hop was written by the last readable one.
        let Some(hop) = hop else { break };
        client = hop;
        if !proxies.trusts(hop) {
            break;
        }
    }
    Some(client)
}

/// Returns the elements of a list header, last one first, across repeated headers.
fn elements<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values: Vec<&str> = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default()).collect();
    values.into_iter().rev().flat_map(|value| value.rsplit(',')).map(str::trim)
}

/// Returns one parameter of a `Forwarded` element, without quotes.
fn member<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.into_iter().find(|(key, _)| key.trim().eq_ignore_ascii_case(name))?;
    let value = value.trim();
    Some(value.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(value))
}

/// Parses an address with or without port; names and `unknown` yield `None`.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse::<IpAddr>().ok();
    let address = address.or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn proxies() -> TrustedProxies {
        TrustedProxies::of(["10.0.0.0/8", "127.0.0.1", "fd00::/8"].map(|text| IpNetwork::parse(text).expect("a block")))
    }

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, HeaderValue::from_str(value).expect("a value"));
        }
        headers
    }

    #[track_caller]
    fn check(all: &[(&'static str, &str)], expected: &str) {
        let peer = IpAddr::from([127, 0, 0, 1]);
        let client = forwarding_info(&proxies(), peer, &headers(all)).client;
        assert_eq!(client.to_string(), expected, "{all:?}");
    }

    #[test]
    fn the_chain_is_walked_from_our_end() {
        check(&[], "127.0.0.1");
        check(&[("x-forwarded-for", "192.0.2.7")], "192.0.2.7");
        check(&[("x-forwarded-for", "203.0.113.9, 192.0.2.7, 10.1.1.1")], "192.0.2.7");
        check(&[("x-forwarded-for", "203.0.113.9"), ("x-forwarded-for", "192.0.2.7,10.1.1.1")], "192.0.2.7");
        check(&[("x-forwarded-for", "10.2.2.2, 10.1.1.1")], "10.2.2.2");
        check(&[("x-forwarded-for", "192.0.2.7:4711")], "192.0.2.7");
        check(&[("x-forwarded-for", "[2001:db8::1]:4711, fd00::1")], "2001:db8::1");
        check(&[("x-forwarded-for", "::ffff:192.0.2.7")], "192.0.2.7");
        check(&[("forwarded", "for=203.0.113.9, for=\"[2001:db8::1]:1\";proto=https, for=10.0.0.3")], "2001:db8::1");
    }

    #[test]
    fn what_cannot_be_read_is_not_walked_over() {
        check(&[("x-forwarded-for", "203.0.113.9, unknown, 10.1.1.1")], "10.1.1.1");
        check(&[("x-forwarded-for", "203.0.113.9, evil.example")], "127.0.0.1");
        check(&[("x-forwarded-for", "203.0.113.9,")], "127.0.0.1");
        check(&[("forwarded", "for=_hidden")], "127.0.0.1");
        check(&[("forwarded", "by=203.0.113.9")], "127.0.0.1");
        let long = format!("203.0.113.9{}", ", 10.0.0.1".repeat(100));
        check(&[("x-forwarded-for", &long)], "10.0.0.1");
    }

    #[test]
    fn two_headers_that_disagree_are_not_believed() {
        check(&[("x-forwarded-for", "192.0.2.7"), ("forwarded", "for=203.0.113.9")], "127.0.0.1");
        check(&[("x-forwarded-for", "192.0.2.7"), ("forwarded", "for=192.0.2.7")], "192.0.2.7");
    }

    #[test]
    fn scheme_and_host_are_those_of_the_nearest_proxy() {
        let of = |all: &[(&'static str, &str)]| {
            let (proxies, headers) = (proxies(), headers(all));
            let forwarding_info = forwarding_info(&proxies, IpAddr::from([127, 0, 0, 1]), &headers);
            (forwarding_info.is_secure, forwarding_info.host.map(ToOwned::to_owned))
        };
        assert_eq!(of(&[]), (None, None));
        assert_eq!(of(&[("x-forwarded-proto", "HTTPS")]), (Some(true), None));
        assert_eq!(of(&[("x-forwarded-proto", "https, http")]), (Some(false), None));
        assert_eq!(of(&[("x-forwarded-proto", "gopher")]), (None, None));
        let host = Some("mcp.example".to_owned());
        assert_eq!(of(&[("x-forwarded-host", "evil.example, mcp.example")]), (None, host.clone()));
        assert_eq!(of(&[("forwarded", "host=mcp.example;proto=https")]), (Some(true), host));
    }
}
