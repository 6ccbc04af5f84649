//! Protection against DNS rebinding and foreign web pages: the Host must be ours, and an Origin must be ours or
//! configured. Configured origins may read responses (CORS).

use std::net::IpAddr;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use hikite_core::error::{Error, ErrorKind};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST, HeaderValue, ORIGIN,
    VARY,
};
use http::{HeaderMap, Method, StatusCode};

use crate::error_response::error_response;
use crate::proxy::ForwardedHost;

#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Own host names, without port, besides the loopback ones.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call the server.
    pub origins: Vec<String>,
    /// Allows any web page. It still needs a token: browsers attach no credentials.
    pub any_origin: bool,
    /// Set if bound to a non-loopback address: any IP address is then a valid host.
    pub reachable: bool,
}

const METHODS: &str = "GET, POST, PUT, PATCH, DELETE";
/// Request headers that pages may send.
const REQUEST_HEADERS: &str = "authorization, content-type, hikite-project, last-event-id, mcp-method, mcp-name, \
    mcp-protocol-version, mcp-session-id, traceparent, tracestate, x-request-id";
/// Response headers that pages may read.
const ANSWER_HEADERS: &str = "mcp-session-id, ratelimit-limit, ratelimit-policy, ratelimit-remaining, \
    ratelimit-reset, retry-after, www-authenticate, x-request-id";
/// Cache time of a preflight response, in seconds.
const PREFLIGHT_AGE: &str = "600";

/// Checks Host and Origin. Returns the allowed origin, if there is one, or the response to a preflight or refused
/// request.
pub(crate) fn check(origins: &Origins, request: &Request) -> Result<Option<HeaderValue>, Response> {
    let forwarded_host = request.extensions().get::<ForwardedHost>().map(|forwarded_host| &*forwarded_host.0);
    let page = origins.check(request.headers(), forwarded_host).map_err(|what| {
        let error = Error::new(ErrorKind::Authorization, format!("The {what} of this request is not allowed."));
        let hint = "If it is yours, add it to `server.allowed_hosts`, `server.allowed_origins` or `server.cors`.";
        error_response(error.hint(hint))
    })?;
    // A preflight request carries no token.
    let is_preflight =
        request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    match page {
        Some(page) if is_preflight => Err(preflight(page)),
        page => Ok(page),
    }
}

/// Adds the CORS headers for an allowed origin.
pub(crate) fn allow(mut response: Response, page: Option<HeaderValue>) -> Response {
    if let Some(page) = page {
        set_cors_headers(response.headers_mut(), page);
    }
    response
}

fn preflight(origin: HeaderValue) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    set_cors_headers(headers, origin);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(REQUEST_HEADERS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_AGE));
    response
}

/// Sets the CORS headers. Credentials are never allowed: a page sends its token explicitly.
fn set_cors_headers(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("Origin"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(ANSWER_HEADERS));
}

impl Origins {
    /// Returns the allowed origin, if the request has one, or the name of the header that is not allowed. The host that
    /// a trusted proxy received must be ours as well.
    fn check(&self, headers: &HeaderMap, forwarded_host: Option<&str>) -> Result<Option<HeaderValue>, &'static str> {
        let host = single(headers, HOST).map_err(|()| "Host")?.ok_or("Host")?;
        if !self.is_own_host(host) || forwarded_host.is_some_and(|forwarded_host| !self.is_own_host(forwarded_host)) {
            return Err("Host");
        }
        let host = forwarded_host.unwrap_or(host);
        match single(headers, ORIGIN).map_err(|()| "Origin")? {
            None => Ok(None),
            Some(_) if self.any_origin => Ok(Some(HeaderValue::from_static("*"))),
            Some(origin) if self.is_own_origin(origin, host) => Ok(headers.get(ORIGIN).cloned()),
            Some(_) => Err("Origin"),
        }
    }

    /// Returns `true` for configured origins, loopback, and the requested host itself. Other IP addresses are not
    /// trusted as origins.
    fn is_own_origin(&self, origin: &str, forwarded_host: &str) -> bool {
        if self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            return true;
        }
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let unreachable = Self { reachable: false, ..self.clone() };
        host.is_some_and(|host| host.eq_ignore_ascii_case(forwarded_host) || unreachable.is_own_host(host))
    }

    fn is_own_host(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else { return false };
        let is = |own: &String| own.eq_ignore_ascii_case(name) || own.eq_ignore_ascii_case(host);
        if name.eq_ignore_ascii_case("localhost") || self.hosts.iter().any(is) {
            return true;
        }
        // An IP address cannot be rebound, because no DNS is involved.
        match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || self.reachable,
            Err(_) => false,
        }
    }
}

/// Returns the only value of a header; an error if it is repeated.
fn single(headers: &HeaderMap, name: http::HeaderName) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

fn without_port(host: &str) -> Option<&str> {
    if host.starts_with('[') {
        let end = host.find(']')?;
        let rest = &host[end + 1..];
        return (rest.is_empty() || is_port(rest.strip_prefix(':')?)).then(|| &host[..=end]);
    }
    match host.split_once(':') {
        Some((name, port)) => is_port(port).then_some(name),
        None => Some(host),
    }
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(origins: &Origins, host: &[&str], origin: &[&str]) -> Result<(), &'static str> {
        let mut headers = HeaderMap::new();
        for value in host {
            headers.append(HOST, value.parse().expect("a value"));
        }
        for value in origin {
            headers.append(ORIGIN, value.parse().expect("a value"));
        }
        origins.check(&headers, None).map(|_| ())
    }

    #[test]
    fn loopback_is_ours_and_foreign_names_are_not() {
        let own = Origins { hosts: vec!["mcp.example".into()], ..Origins::default() };
        for host in ["localhost", "LOCALHOST:7300", "127.0.0.1:7300", "[::1]:7300", "mcp.example:443"] {
            assert_eq!(check(&own, &[host], &[]), Ok(()), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "10.0.0.1", "localhost:x", "[::1", "127.0.0.1.nip.io"] {
            assert_eq!(check(&own, &[host], &[]), Err("Host"), "{host}");
        }
        assert_eq!(check(&own, &[], &[]), Err("Host"));
        assert_eq!(check(&own, &["localhost", "evil.example"], &[]), Err("Host"));
    }

    #[test]
    fn an_origin_must_be_ours_too() {
        let own = Origins { origins: vec!["https://app.example".into()], ..Origins::default() };
        for origin in ["http://localhost:5173", "http://127.0.0.1", "https://app.example"] {
            assert_eq!(check(&own, &["localhost"], &[origin]), Ok(()), "{origin}");
        }
        for origin in ["null", "http://evil.example", "file://", "https://app.example.evil.example", "localhost"] {
            assert_eq!(check(&own, &["localhost"], &[origin]), Err("Origin"), "{origin}");
        }
        assert_eq!(check(&own, &["localhost"], &["http://localhost", "http://localhost"]), Err("Origin"));
        let reachable = Origins { reachable: true, ..own };
        assert_eq!(check(&reachable, &["192.0.2.1:7300"], &["http://192.0.2.1:7300"]), Ok(()));
        assert_eq!(check(&reachable, &["192.0.2.1:7300"], &["http://203.0.113.5"]), Err("Origin"));
    }

    #[test]
    fn any_origin_still_means_our_own_host() {
        let open = Origins { any_origin: true, ..Origins::default() };
        for origin in ["https://anything.example", "null", "http://localhost"] {
            assert_eq!(check(&open, &["localhost"], &[origin]), Ok(()), "{origin}");
        }
        assert_eq!(check(&open, &["evil.example"], &["https://anything.example"]), Err("Host"));
        assert_eq!(check(&open, &["localhost"], &["http://a", "http://b"]), Err("Origin"));
    }
}
