//! The `server` section: where hikite listens, what it shows, and whom it lets speak to it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hikite_gateway::Surface;
use schemars::JsonSchema;
use serde::Deserialize;

use super::check::Check;
use super::file::OneOrMany;
use super::place::Path;

pub const DEFAULT_PORT: u16 = 7300;

/// How hikite listens and what it shows to clients.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Server")]
pub(crate) struct ServerFile {
    /// The address to listen on.
    #[schemars(extend("default" = "127.0.0.1:7300"))]
    pub(crate) listen: Option<String>,
    /// What clients are shown. Default: `categories` if the file has any, else `direct`.
    pub(crate) surface: Option<OneOrMany<SurfaceWord>>,
    /// Names, with or without a port, under which clients may address hikite besides the local ones.
    pub(crate) allowed_hosts: Option<Vec<String>>,
    /// Origins of web pages that may speak to hikite besides the local ones, like `https://app.example`.
    pub(crate) allowed_origins: Option<Vec<String>>,
}

/// What a client is shown.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Surface")]
pub(crate) enum SurfaceWord {
    /// Two tools that open categories and call what is in them.
    Categories,
    /// Every tool under its own name.
    Direct,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSection {
    pub listen: SocketAddr,
    /// Never empty.
    pub surfaces: Vec<Surface>,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
}

impl From<SurfaceWord> for Surface {
    fn from(word: SurfaceWord) -> Self {
        match word {
            SurfaceWord::Categories => Self::Categories,
            SurfaceWord::Direct => Self::Direct,
        }
    }
}

pub(crate) fn check(
    check: &mut Check<'_, '_>,
    path: &Path<'_>,
    raw: &ServerFile,
    has_categories: bool,
) -> ServerSection {
    let listen = raw.listen.as_deref().and_then(|text| listen(check, &path.key("listen"), text));
    ServerSection {
        listen: listen.unwrap_or_else(|| default_listen(check.outside.env)),
        surfaces: surfaces(check, path, raw, has_categories),
        allowed_hosts: texts(check, &path.key("allowed_hosts"), raw.allowed_hosts.as_deref(), |host| {
            let bad = host.is_empty() || host.contains("://") || host.contains(['/', ' ', '*']);
            bad.then_some(("a host", "write `example.com` or `example.com:8443`"))
        }),
        allowed_origins: texts(
            check,
            &path.key("allowed_origins"),
            raw.allowed_origins.as_deref(),
            |origin| {
                let host = origin.split_once("://").map(|(_, host)| host).unwrap_or_default();
                let bad = host.is_empty() || host.contains(['/', ' ', '*']);
                bad.then_some(("an origin", "write `https://example.com`, without a path"))
            },
        ),
    }
}

fn surfaces(
    check: &mut Check<'_, '_>,
    path: &Path<'_>,
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
        check.report.missing(&path, "names no surface", Some("one of `categories`, `direct`".into()));
    }
    if surfaces.contains(&Surface::Categories) && !has_categories {
        check.report.warning(&path, "`categories` is shown, but the file has none");
    }
    if surfaces.is_empty() {
        surfaces.push(if has_categories { Surface::Categories } else { Surface::Direct });
    }
    surfaces
}

fn listen(check: &mut Check<'_, '_>, path: &Path<'_>, text: &str) -> Option<SocketAddr> {
    let text = check.expand(path, text)?;
    let address = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.clone(),
    };
    let hint = format!("write `127.0.0.1:{DEFAULT_PORT}` or `[::1]:{DEFAULT_PORT}`");
    let parsed = address.parse().ok();
    parsed.or_else(|| check.fail(path, format!("`{text}` is not an address to listen on"), hint))
}

/// `HOST` and `PORT` count where the file says nothing. `HOST` is often the machine's name: then it does not.
fn default_listen(env: &dyn Fn(&str) -> Option<String>) -> SocketAddr {
    let host = env("HOST").and_then(|host| host.parse::<IpAddr>().ok());
    let port = env("PORT").and_then(|port| port.parse().ok());
    SocketAddr::new(host.unwrap_or(Ipv4Addr::LOCALHOST.into()), port.unwrap_or(DEFAULT_PORT))
}

fn texts(
    check: &mut Check<'_, '_>,
    path: &Path<'_>,
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
