//! Validates URLs. Only `http` and `https` are accepted; URLs with credentials are refused, because URLs end up in
//! logs.
//!
//! The rules are ours because the client reads URLs with `http::Uri`. The crate `url` repairs what it reads, such as
//! spaces and backslashes, and would accept what the client then refuses.

/// Message and hint for an invalid URL.
pub(crate) type UrlFault = (&'static str, &'static str);

pub(crate) fn fault(url: &str) -> Option<UrlFault> {
    let scheme_hint = "Write `https://…` or `http://…`.";
    let Some((scheme, rest)) = url.split_once("://") else { return Some(("is not a URL", scheme_hint)) };
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Some(("is neither http nor https", scheme_hint));
    }
    if !rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)) {
        return Some(("contains characters that are not allowed in a URL", "Encode them, for example as `%20`."));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Some(("contains credentials", "Put them in `headers`: `\"Authorization\": \"Basic …\"`."));
    }
    let (host, port) = split_port(authority);
    if host.is_empty() {
        return Some(("has no host", scheme_hint));
    }
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return Some(("has an invalid port", "A port is a number up to 65535."));
    }
    None
}

/// Returns the URL without its query and fragment.
pub(crate) fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// Returns the URL for messages, without its query, which may hold a key, and without credentials before an `@`.
pub(crate) fn without_secrets(url: &str) -> String {
    let url = without_query(url);
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://***@{rest}"),
        _ => url.to_owned(),
    }
}

pub(crate) fn split_port(authority: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        let address = host.parse::<std::net::Ipv6Addr>().map_or("", |_| host);
        return (address, (!rest.is_empty()).then(|| rest.strip_prefix(':').unwrap_or("?")));
    }
    match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn only_plain_web_addresses_pass() {
        for (url, expected) in [
            ("https://example.com/mcp?a=b#c", None),
            ("http://127.0.0.1:3000", None),
            ("HTTP://[::1]:80/x", None),
            ("example.com", Some("is not a URL")),
            ("ftp://example.com", Some("is neither http nor https")),
            ("https://", Some("has no host")),
            ("https://:80/", Some("has no host")),
            ("https://[x]/", Some("has no host")),
            ("https://a:b@example.com/", Some("contains credentials")),
            ("https://example.com:99999/", Some("has an invalid port")),
            ("https://[::1]80/", Some("has an invalid port")),
            ("https://exa mple.com/", Some("contains characters that are not allowed in a URL")),
            ("https://日本.example/", Some("contains characters that are not allowed in a URL")),
        ] {
            assert_eq!(fault(url).map(|(message, _)| message), expected, "{url}");
        }
    }
}
