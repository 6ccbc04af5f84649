//! Under which of our names a request came, and which addresses are ours. Tokens carry one name alone; on this machine
//! clients may use another, and are then told that one.

use http::HeaderMap;
use http::header::HOST;

use super::Oauth;

const RESOURCE: &str = "/mcp";
const METADATA: &str = "/.well-known/oauth-protected-resource";

#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// As the client calls us, without a slash at the end.
    pub(crate) base: String,
    /// As tokens call us.
    issuer: String,
}

impl Place {
    pub(crate) fn of(oauth: &Oauth, headers: &HeaderMap) -> Self {
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

    /// Where it is described what this address asks for.
    pub(crate) fn metadata(&self, path: &str) -> String {
        let project = path.strip_prefix("/mcp/").filter(|name| !name.is_empty() && !name.contains('/'));
        match project {
            Some(project) => format!("{}{METADATA}{RESOURCE}/{project}", self.base),
            None => format!("{}{METADATA}{RESOURCE}", self.base),
        }
    }

    /// Whether a client means us: the house, its one address, or a project there; a slash at the end is forgiven.
    pub(crate) fn is_ours(&self, resource: &str) -> bool {
        let resource = resource.split('?').next().unwrap_or_default();
        let resource = resource.strip_suffix('/').unwrap_or(resource);
        [&self.base, &self.issuer].into_iter().any(|base| {
            let Some(rest) = resource.strip_prefix(base.as_str()) else { return false };
            let project =
                || rest.strip_prefix("/mcp/").is_some_and(|name| !name.is_empty() && is_plain(name));
            matches!(rest, "" | RESOURCE | "/sse") || project()
        })
    }
}

fn is_plain(name: &str) -> bool {
    !name.contains(['/', '#', '\\'])
}

/// Whether a host, with or without a port, is this machine.
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

    fn place() -> Place {
        Place { base: "http://localhost:7300".into(), issuer: "http://127.0.0.1:7300".into() }
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
            assert!(place().is_ours(ours), "{ours}");
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
            assert!(!place().is_ours(foreign), "{foreign}");
        }
    }

    #[test]
    fn only_names_of_this_machine_are_taken_from_a_request() {
        for own in ["localhost", "LOCALHOST:1", "127.0.0.1:7300", "[::1]:7300", "127.0.0.2"] {
            assert!(is_loopback(own), "{own}");
        }
        for foreign in
            ["evil.example", "localhost.evil.example", "10.0.0.1", "", "localhost\"x", "localhost/x"]
        {
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
