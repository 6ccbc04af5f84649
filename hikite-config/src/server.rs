//! The `server` section: listen address, surfaces, allowed hosts and origins, and the rate limit.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hikite_core::pattern::Pattern;
use hikite_core::rate::Rate;
use hikite_egress::IpNetwork;
use hikite_gateway::Surface;
use hikite_server::TrustedProxies;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checker::ConfigChecker;
use super::cors::{self, Cors, CorsFile, is_page_origin};
use super::one_or_many::OneOrMany;
use super::position::ConfigPath;
use super::rate::{self, RateFile};
use super::tls::{self, TlsFile, TlsSection};
use super::url;

pub const DEFAULT_PORT: u16 = 7300;

/// How hikite listens and what it shows to clients.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Server")]
pub(crate) struct ServerFile {
    /// The address to listen on.
    #[schemars(extend("default" = "127.0.0.1:7300"))]
    pub(crate) listen: Option<String>,
    /// The https address under which clients reach hikite: that of a proxy that speaks TLS, or its own. This or `tls`
    /// is needed to listen on anything but a loopback address. `http://localhost:PORT` is for clients on this machine
    /// only, such as in front of a container: requests to other names are then refused.
    pub(crate) public_url: Option<String>,
    /// Where the other nodes reach this one, where several share one PostgreSQL: an http or https address of this very
    /// process, not of the load balancer. Not needed by one that is alone.
    pub(crate) node_url: Option<String>,
    /// Speaks TLS itself, with this certificate.
    pub(crate) tls: Option<TlsFile>,
    /// Proxies whose word on where a request comes from is believed (`X-Forwarded-For`, `-Proto`, `-Host` and
    /// `Forwarded`): addresses, and blocks like `10.0.0.0/8`. Default: nobody's.
    pub(crate) trusted_proxies: Option<Vec<String>>,
    /// Surfaces of clients. Default: `categories` if the file has any, else `modules` and `search`.
    pub(crate) surface: Option<OneOrMany<SurfaceWord>>,
    /// Clients that take no names of tools of more than 64 characters, by the names they give themselves: globs like
    /// `my-editor*`, whatever the case. On `direct` they are shown longer names shortened. Default: none; legal names (up to
    /// 128 characters) are shown whole.
    pub(crate) short_names: Option<Vec<String>>,
    /// Names, with or without a port, under which clients may address hikite besides the local ones.
    pub(crate) allowed_hosts: Option<Vec<String>>,
    /// Origins of web pages that may speak to hikite besides the local ones, like `https://app.example`.
    pub(crate) allowed_origins: Option<Vec<String>>,
    /// Web pages that may call hikite from a browser. Default: those of `allowed_origins` and of this machine.
    pub(crate) cors: Option<CorsFile>,
    /// How often one caller may come. Default: as often as it likes.
    pub(crate) rate_limit: Option<RateFile>,
}

/// A surface: the set of tools that a client is shown.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Surface")]
pub(crate) enum SurfaceWord {
    /// Two tools that open categories and call what is in them.
    Categories,
    /// Every tool under its own name.
    Direct,
    /// Three tools that open modules, run a tool of one, and run many.
    Modules,
    /// Two tools that find tools by what they do and run them.
    Search,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSection {
    pub listen: SocketAddr,
    pub public_url: Option<String>,
    /// Node URL without a trailing slash.
    pub node_url: Option<String>,
    pub tls: Option<TlsSection>,
    /// Entries as written, with variables expanded.
    pub trusted_proxies: Vec<String>,
    /// Surfaces; never empty.
    pub surfaces: Vec<Surface>,
    /// Patterns of client names, in lower case.
    pub short_names: Vec<String>,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub cors: Cors,
    /// Rate limit per caller.
    pub rate: Option<Rate>,
}

impl ServerSection {
    /// Returns the URL at which clients reach hikite, without a trailing slash: the public URL, or else the local
    /// one.
    pub fn url(&self) -> String {
        match &self.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => self.local_url(),
        }
    }

    /// Returns the URL at which programs on this machine reach hikite.
    pub fn local_url(&self) -> String {
        let mut address = self.listen;
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        format!("{}://{address}", self.scheme())
    }

    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Returns `true` if clients reach hikite on this machine only: no public URL, or one with http.
    pub fn is_local(&self) -> bool {
        self.public_url.as_deref().is_none_or(|url| !url.starts_with("https://"))
    }

    /// Returns `true` if only loopback names may be requested, whatever the listen address: the public URL is http.
    pub fn is_loopback_only(&self) -> bool {
        self.public_url.is_some() && self.is_local()
    }

    /// Returns the networks of `trusted_proxies`.
    pub fn proxies(&self) -> TrustedProxies {
        TrustedProxies::of(self.trusted_proxies.iter().filter_map(|text| IpNetwork::parse(text)))
    }
}

impl From<SurfaceWord> for Surface {
    fn from(word: SurfaceWord) -> Self {
        match word {
            SurfaceWord::Categories => Self::Categories,
            SurfaceWord::Direct => Self::Direct,
            SurfaceWord::Modules => Self::Modules,
            SurfaceWord::Search => Self::Search,
        }
    }
}

pub(crate) fn check(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &ServerFile,
    has_categories: bool,
) -> ServerSection {
    let listen = raw.listen.as_deref().and_then(|text| listen(check, &path.key("listen"), text));
    ServerSection {
        listen: listen.unwrap_or_else(|| default_listen(check.environment.env)),
        public_url: raw.public_url.as_deref().and_then(|url| public_url(check, &path.key("public_url"), url)),
        node_url: raw.node_url.as_deref().and_then(|url| node_url(check, &path.key("node_url"), url)),
        tls: tls::check(check, &path.key("tls"), raw.tls.as_ref()),
        trusted_proxies: tls::proxies(check, &path.key("trusted_proxies"), raw.trusted_proxies.as_deref()),
        surfaces: surfaces(check, path, raw, has_categories),
        short_names: texts(check, &path.key("short_names"), raw.short_names.as_deref(), |name| {
            let bad = name.is_empty() || name.starts_with('/') || Pattern::parse(name).is_err();
            bad.then_some(("a name pattern", "Write the name of a client, or a glob such as `my-editor*`."))
        }),
        allowed_hosts: texts(check, &path.key("allowed_hosts"), raw.allowed_hosts.as_deref(), |host| {
            let bad = host.is_empty() || host.contains("://") || host.contains(['/', ' ', '*']);
            bad.then_some(("a host", "Write `example.com` or `example.com:8443`."))
        }),
        allowed_origins: texts(check, &path.key("allowed_origins"), raw.allowed_origins.as_deref(), |origin| {
            let hint = "Write `https://example.com` without a path.";
            (!is_page_origin(origin)).then_some(("an origin", hint))
        }),
        cors: cors::check(check, &path.key("cors"), raw.cors.as_ref()),
        rate: rate::check(check, &path.key("rate_limit"), raw.rate_limit.as_ref()),
    }
}

fn surfaces(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &ServerFile,
    has_categories: bool,
) -> Vec<Surface> {
    let mut surfaces: Vec<Surface> = Vec::new();
    for surface in raw.surface.iter().flat_map(OneOrMany::as_slice).map(|word| Surface::from(*word)) {
        if !surfaces.contains(&surface) {
            surfaces.push(surface);
        }
    }
    let path = path.key("surface");
    if surfaces.is_empty() && raw.surface.is_some() {
        check.report.missing(
            &path,
            "contains no surface",
            Some("Use one of `categories`, `direct`, `modules`, `search`.".into()),
        );
    }
    if surfaces.contains(&Surface::Categories) && !has_categories {
        check.report.warning(&path, "`categories` is shown, but the config has none");
    }
    if surfaces.is_empty() {
        return default_surfaces(has_categories).to_vec();
    }
    surfaces
}

/// Returns `categories` if the file has any; otherwise four tools for all modules.
fn default_surfaces(has_categories: bool) -> &'static [Surface] {
    if has_categories { &[Surface::Categories] } else { &[Surface::Modules, Surface::Search] }
}

fn listen(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, text: &str) -> Option<SocketAddr> {
    let text = check.expand(path, text)?;
    parse_listen(&text).or_else(|| check.fail(path, format!("`{text}` is not an address to listen on"), listen_hint()))
}

/// Parses an address with a port; `localhost` stands for 127.0.0.1.
pub fn parse_listen(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}").parse().ok(),
        None => text.parse().ok(),
    }
}

pub fn listen_hint() -> String {
    format!("Write `127.0.0.1:{DEFAULT_PORT}` or `[::1]:{DEFAULT_PORT}`.")
}

fn public_url(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, text: &str) -> Option<String> {
    let url = check.expand(path, text)?;
    match url_fault(&url) {
        Some((what, hint)) => check.fail(path, format!("`{url}` {what}"), hint),
        None => Some(url),
    }
}

fn node_url(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, text: &str) -> Option<String> {
    let url = check.expand(path, text)?;
    match node_fault(&url) {
        Some((what, hint)) => check.fail(path, format!("`{url}` {what}"), hint),
        None => Some(url.trim_end_matches('/').to_owned()),
    }
}

/// Returns the fault of a node URL, if any.
pub fn node_fault(url: &str) -> Option<url::UrlFault> {
    let has_path = || {
        let rest = url.split_once("://").map_or("", |(_, rest)| rest).trim_end_matches('/');
        rest.contains(['/', '?', '#']).then_some(("has a path", "Write `http://10.0.0.5:7300`."))
    };
    url::fault(url).or_else(has_path)
}

/// Returns the fault of a public URL, if any. Without TLS it must be a loopback name or address.
pub fn url_fault(url: &str) -> Option<url::UrlFault> {
    let is_safe = |rest: &str| is_loopback_host(rest.split('/').next().unwrap_or_default());
    let insecure = || {
        let hint = "Write `https://hikite.example.com`, or `http://localhost:7300` for clients on this machine only.";
        let is_secure = url.starts_with("https://") || url.strip_prefix("http://").is_some_and(is_safe);
        (!is_secure).then_some(("is not https", hint))
    };
    url::fault(url).or_else(insecure)
}

/// Returns `true` if a host, with or without port, is `localhost` or a loopback address.
pub fn is_loopback_host(host: &str) -> bool {
    let (name, _) = url::split_port(host);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns the default address from `HOST` and `PORT`. A `HOST` that is not an IP address is ignored: it is often the
/// machine's name.
fn default_listen(env: &dyn Fn(&str) -> Option<String>) -> SocketAddr {
    let host = env("HOST").and_then(|host| host.parse::<IpAddr>().ok());
    let port = env("PORT").and_then(|port| port.parse().ok());
    SocketAddr::new(host.unwrap_or(Ipv4Addr::LOCALHOST.into()), port.unwrap_or(DEFAULT_PORT))
}

fn texts(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: Option<&[String]>,
    fault: fn(&str) -> Option<(&'static str, &'static str)>,
) -> Vec<String> {
    let items = raw.unwrap_or_default().iter().enumerate();
    items
        .filter_map(|(index, text)| {
            let path = path.index(index);
            let text = check.expand(&path, text)?;
            match fault(&text) {
                Some((wanted, hint)) => check.fail(&path, format!("`{text}` is not {wanted}"), hint),
                None => Some(text.to_ascii_lowercase()),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_node_is_one_of_a_process() {
        for good in ["http://10.0.0.5:7300", "https://node-1.internal", "http://[::1]:80/", "http://a/"] {
            assert_eq!(node_fault(good), None, "{good}");
        }
        for bad in ["10.0.0.5:7300", "ftp://a", "http://", "http://a/b", "http://a?b", "http://u:p@a", "http://a:x"] {
            assert!(node_fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_public_url_is_https_or_on_this_machine() {
        for good in [
            "https://a.example",
            "http://localhost:7300",
            "http://LOCALHOST/",
            "http://127.0.0.1:80",
            "http://[::1]:7300",
        ] {
            assert_eq!(url_fault(good), None, "{good}");
        }
        for bad in [
            "http://a.example",
            "http://localhost.a.example:7300",
            "http://127.0.0.1.nip.io",
            "http://10.0.0.1",
            "http://[::2]",
            "http://0.0.0.0:7300",
            "http://localhost@a.example",
            "HTTP://localhost",
            "ftp://localhost",
        ] {
            assert!(url_fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn host_and_port_of_the_environment_stand_in() {
        for (host, port, expected) in [
            (None, None, "127.0.0.1:7300"),
            (Some("0.0.0.0"), Some("80"), "0.0.0.0:80"),
            (Some("my-laptop"), Some("x"), "127.0.0.1:7300"),
            (Some("localhost"), Some("0"), "127.0.0.1:0"),
        ] {
            let env = |name: &str| if name == "HOST" { host } else { port }.map(ToOwned::to_owned);
            assert_eq!(default_listen(&env).to_string(), expected);
        }
    }
}
