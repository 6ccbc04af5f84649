//! The public URLs of this server. Tokens name one issuer; on a local installation clients may use another loopback
//! name, and are then shown that name.

use hikite_core::uri;
use hikite_identity::ResourceTarget;
use http::HeaderMap;
use http::header::HOST;

use crate::settings::OauthSettings;

const RESOURCE: &str = "/mcp";
const METADATA: &str = "/.well-known/oauth-protected-resource";

#[derive(Clone, Debug)]
pub(crate) struct PublicUrl {
    /// Base URL as used by the client, without a trailing slash.
    pub(crate) base: String,
    /// Base URL in tokens.
    issuer: String,
}

impl PublicUrl {
    pub(crate) fn of(oauth: &OauthSettings, headers: &HeaderMap) -> Self {
        let issuer = oauth.terms.issuer.to_string();
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let local = host.filter(|host| oauth.is_local && is_loopback(host));
        let scheme = issuer.split("://").next().unwrap_or("http");
        let base = local.map(|host| format!("{scheme}://{}", host.to_ascii_lowercase()));
        Self { base: base.unwrap_or_else(|| issuer.clone()), issuer }
    }

    pub(crate) fn is_https(&self) -> bool {
        self.base.starts_with("https://")
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns the metadata URL of the resource at a path.
    pub(crate) fn metadata(&self, path: &str) -> String {
        let project = path.strip_prefix("/mcp/").filter(|name| !name.is_empty() && !name.contains('/'));
        match project {
            Some(project) => format!("{}{METADATA}{RESOURCE}/{project}", self.base),
            None => format!("{}{METADATA}{RESOURCE}", self.base),
        }
    }

    /// Resolves a resource indicator: the whole server or a project; `None` if it is not ours. A trailing slash is
    /// accepted.
    pub(crate) fn resource(&self, resource: &str) -> Option<ResourceIndicator> {
        let resource = resource.split('?').next().unwrap_or_default();
        let resource = resource.strip_suffix('/').unwrap_or(resource);
        [&self.base, &self.issuer].into_iter().find_map(|base| match resource.strip_prefix(base.as_str())? {
            "" | RESOURCE | "/sse" => Some(ResourceIndicator::Whole),
            rest => project(rest.strip_prefix("/mcp/")?).map(ResourceIndicator::Project),
        })
    }

    /// Returns the single resource that a request names. Different ones would need different tokens.
    pub(crate) fn target<'a>(
        &self,
        resources: impl Iterator<Item = &'a str>,
    ) -> Result<ResourceIndicator, &'static str> {
        let mut named = ResourceIndicator::Unspecified;
        for resource in resources {
            let next = self.resource(resource).ok_or("The resource does not belong to this server.")?;
            if named != ResourceIndicator::Unspecified && named != next {
                return Err("The request names several resources. Ask for one at a time.");
            }
            named = next;
        }
        Ok(named)
    }
}

/// The resource that a request names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ResourceIndicator {
    #[default]
    Unspecified,
    Whole,
    Project(String),
}

impl ResourceIndicator {
    pub(crate) fn target(&self) -> ResourceTarget<'_> {
        match self {
            Self::Unspecified => ResourceTarget::Unspecified,
            Self::Whole => ResourceTarget::Whole,
            Self::Project(project) => ResourceTarget::Project(project),
        }
    }

    pub(crate) fn project(&self) -> Option<&str> {
        match self {
            Self::Project(project) => Some(project),
            Self::Unspecified | Self::Whole => None,
        }
    }
}

/// Decodes the project name in a URL.
fn project(part: &str) -> Option<String> {
    let is_plain = !part.is_empty() && !part.contains(['/', '#', '\\', '+']);
    let name = is_plain.then(|| uri::decode(part)).flatten()?;
    (!name.chars().any(|c| c.is_control() || c.is_whitespace() || c == '/')).then_some(name)
}

/// Returns `true` if a host, with or without port, is a loopback name or address.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"[]:.".contains(&byte);
    host.bytes().all(fine)
        && (name.eq_ignore_ascii_case("localhost")
            || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> PublicUrl {
        PublicUrl { base: "http://localhost:7300".into(), issuer: "http://127.0.0.1:7300".into() }
    }

    #[test]
    fn a_resource_is_ours_or_foreign() {
        for ours in [
            "http://localhost:7300",
            "http://localhost:7300/",
            "http://localhost:7300/mcp",
            "http://localhost:7300/mcp/",
            "http://127.0.0.1:7300/mcp?surface=direct",
            "http://127.0.0.1:7300/mcp/work",
            "http://127.0.0.1:7300/sse",
        ] {
            assert!(place().resource(ours).is_some(), "{ours}");
        }
        for foreign in [
            "",
            "/mcp",
            "http://localhost:7300.evil.example/mcp",
            "http://localhost:73000/mcp",
            "http://evil.example/mcp",
            "https://localhost:7300/mcp",
            "http://localhost:7300/mcp//",
            "http://localhost:7300/mcp/a/b",
            "http://localhost:7300/mcp#x",
            "http://localhost:7300@evil.example/mcp",
        ] {
            assert_eq!(place().resource(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_request_is_for_the_whole_or_for_one_project() {
        let at = |path: &str| format!("http://localhost:7300{path}");
        let target = |paths: &[&str]| {
            let all: Vec<String> = paths.iter().map(|path| at(path)).collect();
            place().target(all.iter().map(String::as_str))
        };
        let project = |name: &str| Ok(ResourceIndicator::Project(name.to_owned()));
        assert_eq!(target(&[]), Ok(ResourceIndicator::Unspecified));
        for whole in [&["/mcp"][..], &[""], &["/sse"], &["/mcp", "/mcp/"]] {
            assert_eq!(target(whole), Ok(ResourceIndicator::Whole), "{whole:?}");
        }
        assert_eq!(target(&["/mcp/work"]), project("work"));
        assert_eq!(target(&["/mcp/w%C3%B6rk/", "/mcp/w%C3%B6rk?surface=direct"]), project("w\u{f6}rk"));
        for wrong in [&["/mcp", "/mcp/work"][..], &["/mcp/work", "/mcp/home"], &["/mcp/a%2Fb"], &["/mcp/%00"]] {
            assert!(target(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn only_names_of_this_machine_are_taken_from_a_request() {
        for own in ["localhost", "LOCALHOST:1", "127.0.0.1:7300", "[::1]:7300", "127.0.0.2"] {
            assert!(is_loopback(own), "{own}");
        }
        for foreign in ["evil.example", "localhost.evil.example", "10.0.0.1", "", "localhost\"x", "localhost/x"] {
            assert!(!is_loopback(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_project_has_a_description_of_its_own() {
        let end = |path: &str| place().metadata(path).rsplit_once("resource").map(|(_, end)| end.to_owned());
        assert_eq!(end("/mcp/work").as_deref(), Some("/mcp/work"));
        for path in ["/mcp", "/v1/me", "/mcp/", "/mcp/a/b"] {
            assert_eq!(end(path).as_deref(), Some("/mcp"), "{path}");
        }
    }
}
