//! Validates URLs that servers name: `https`, or `http` on loopback or the server's own host. The guarded client judges
//! the resolved addresses, not this module.

use std::net::IpAddr;

use hikite_egress::{AllowList, AllowedAddress};
use http::Uri;
use http::uri::Scheme;

/// Maximum length of a URL.
const LENGTH: usize = 2_000;

/// Returns the URL if a server at `home` may send us there.
pub(super) fn checked(home: &Uri, text: &str) -> Option<Uri> {
    if text.len() > LENGTH || text.contains('#') {
        return None;
    }
    let url: Uri = text.parse().ok()?;
    let authority = url.authority()?;
    let plain_is_right = || {
        let near = is_loopback(home) && is_loopback(&url);
        let same = home.scheme() == Some(&Scheme::HTTP) && same_host(home, &url);
        near || same
    };
    let scheme_is_right = match url.scheme_str()? {
        "https" => true,
        "http" => plain_is_right(),
        _ => false,
    };
    (scheme_is_right && !authority.as_str().contains('@')).then_some(url)
}

/// Returns the addresses that the guarded client may reach for a server at `home`: the configured IP address, and
/// loopback for a loopback server. A host name grants nothing: it may resolve differently tomorrow.
pub(super) fn allowed(home: &Uri, by_owner: &AllowList) -> AllowList {
    let mut texts = Vec::new();
    if is_loopback(home) {
        texts.extend(["127.0.0.0/8".to_owned(), "::1".to_owned()]);
    }
    let host = bare(home);
    if host.parse::<IpAddr>().is_ok() {
        texts.push(host.to_owned());
    }
    by_owner.clone().and(texts.iter().filter_map(|text| AllowedAddress::parse(text)))
}

pub(super) fn is_loopback(url: &Uri) -> bool {
    let host = bare(url);
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_name = host.eq_ignore_ascii_case("localhost");
    is_name || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Returns scheme, host and port.
pub(super) fn origin(url: &Uri) -> String {
    let authority = url.authority().map_or("", |authority| authority.as_str());
    format!("{}://{authority}", url.scheme_str().unwrap_or("https"))
}

pub(crate) fn same_origin(one: &Uri, other: &Uri) -> bool {
    let same_place = || same_host(one, other) && port(one) == port(other);
    one.scheme() == other.scheme() && (one.authority() == other.authority() || same_place())
}

/// Returns `true` if a token for `resource` is valid for `home`: same origin, and a path prefix.
pub(super) fn covers(resource: &Uri, home: &Uri) -> bool {
    let front = resource.path().trim_end_matches('/');
    let rest = home.path().strip_prefix(front);
    same_origin(resource, home) && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the canonical resource URI of the server: without query, `/` path and uppercase host.
pub(super) fn canonical(home: &Uri) -> String {
    let path = if home.path() == "/" { "" } else { home.path() };
    format!("{}{path}", origin(home).to_ascii_lowercase())
}

fn same_host(one: &Uri, other: &Uri) -> bool {
    bare(one).eq_ignore_ascii_case(bare(other))
}

fn bare(url: &Uri) -> &str {
    url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

fn port(url: &Uri) -> u16 {
    url.port_u16().unwrap_or(if url.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().expect(text)
    }

    #[track_caller]
    fn check(home: &str, target: &str, expected: bool) {
        assert_eq!(checked(&uri(home), target).is_some(), expected, "{home} {target}");
    }

    #[test]
    fn plain_addresses_are_for_the_same_host_and_for_this_machine() {
        check("https://mcp.example/mcp", "https://as.example/x", true);
        check("https://mcp.example/mcp", "http://as.example/x", false);
        check("https://mcp.example/mcp", "http://mcp.example/x", false);
        check("https://mcp.example/mcp", "http://localhost/x", false);
        check("http://10.0.0.5:9/mcp", "http://10.0.0.5:8/x", true);
        check("http://10.0.0.5:9/mcp", "http://10.0.0.6:8/x", false);
        check("http://localhost:9/mcp", "http://127.0.0.1:8/x", true);
        check("http://[::1]:9/mcp", "http://LOCALHOST:8/x", true);
        check("http://127.0.0.1:9/mcp", "http://evil.example/x", false);
    }

    #[test]
    fn what_is_no_web_address_is_refused() {
        for target in [
            "",
            "/x",
            "as.example",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/html,x",
            "https://user:word@as.example/",
            "https://as.example/#part",
            "ftp://as.example/",
        ] {
            check("https://mcp.example/mcp", target, false);
        }
        check("https://mcp.example/", &format!("https://as.example/{}", "x".repeat(LENGTH)), false);
    }

    #[test]
    fn a_resource_covers_what_is_below_it() {
        let covers = |resource: &str, home: &str| super::covers(&uri(resource), &uri(home));
        assert!(covers("https://a.example", "https://a.example/mcp"));
        assert!(covers("https://a.example/mcp", "https://A.example:443/mcp"));
        assert!(covers("https://a.example/mcp/", "https://a.example/mcp"));
        assert!(covers("https://a.example/mcp", "https://a.example/mcp/x"));
        assert!(!covers("https://a.example/mcp", "https://a.example/mcpx"));
        assert!(!covers("https://a.example/mcp/x", "https://a.example/mcp"));
        assert!(!covers("https://b.example/mcp", "https://a.example/mcp"));
        assert!(!covers("http://a.example/mcp", "https://a.example/mcp"));
        assert!(!covers("https://a.example:8443/mcp", "https://a.example/mcp"));
    }

    #[test]
    fn a_name_gives_no_way_in() {
        let none = AllowList::default();
        assert_eq!(allowed(&uri("https://mcp.example/"), &none), none);
        assert_ne!(allowed(&uri("http://10.0.0.5/"), &none), none);
        assert_ne!(allowed(&uri("http://localhost/"), &none), none);
    }

    #[test]
    fn a_server_is_named_without_its_query() {
        assert_eq!(canonical(&uri("https://A.example/Mcp?key=1")), "https://a.example/Mcp");
        assert_eq!(canonical(&uri("https://a.example/")), "https://a.example");
    }
}
