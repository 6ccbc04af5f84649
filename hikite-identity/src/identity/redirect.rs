//! Redirect URIs of OAuth clients, which receive authorization codes. Parsed by hand and strictly: anything unusual is
//! refused, so that nobody parses it differently than we do. The crate `url` would repair it instead.

use std::net::IpAddr;

const URI_BYTES_MAX: usize = 2000;
/// Schemes that execute something or do not belong to an app.
const REFUSED_SCHEMES: [&str; 17] = [
    "javascript",
    "data",
    "vbscript",
    "file",
    "blob",
    "about",
    "filesystem",
    "view-source",
    "ws",
    "wss",
    "ftp",
    "mailto",
    "tel",
    "sms",
    "intent",
    "content",
    "jar",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedirectUri<'a> {
    uri: &'a str,
    scheme: &'a str,
    /// Includes the brackets of an IPv6 address; empty for a scheme without a host.
    host: &'a str,
    port: Option<&'a str>,
    /// Path and query.
    rest: &'a str,
}

impl<'a> RedirectUri<'a> {
    /// Parses a redirect URI. The error says what is wrong with it.
    pub fn read(uri: &'a str) -> Result<Self, &'static str> {
        if uri.len() > URI_BYTES_MAX {
            return Err("it is too long");
        }
        if !uri.bytes().all(|byte| byte.is_ascii_graphic()) || uri.contains(['\\', '"', '<', '>', '`']) {
            return Err("it contains characters that are not allowed in a URI");
        }
        if uri.contains('#') {
            return Err("it has a fragment");
        }
        let (scheme, after) = uri.split_once(':').ok_or("it has no scheme")?;
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
        if !scheme.starts_with(|c: char| c.is_ascii_lowercase()) || !scheme.bytes().all(is_letter) {
            return Err("its scheme is not valid or not in lowercase");
        }
        if REFUSED_SCHEMES.contains(&scheme) {
            return Err("its scheme cannot open an app");
        }
        let (authority, rest) = match after.strip_prefix("//") {
            Some(after) => after.split_at(after.find(['/', '?']).unwrap_or(after.len())),
            None => ("", after),
        };
        let (host, port) = split(authority)?;
        let redirect = Self { uri, scheme, host, port, rest };
        match scheme {
            "http" if redirect.is_loopback() => Ok(redirect),
            "http" => Err("it is not https"),
            "https" if is_host(host) => Ok(redirect),
            "https" => Err("it has no host"),
            _ if host.is_empty() || is_host(host) => Ok(redirect),
            _ => Err("its host is not valid"),
        }
    }

    /// Returns `true` for an address on the machine of the browser.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = |address: IpAddr| address.is_loopback();
        self.scheme == "http" && (self.host == "localhost" || address.parse().is_ok_and(is_loopback))
    }

    /// Returns `true` for the private scheme of an app.
    pub fn is_private(&self) -> bool {
        !matches!(self.scheme, "http" | "https")
    }

    /// Returns `true` if a program on the machine of the browser receives the code. Nobody can tell which program
    /// listens there, so a public client needs consent every time (RFC 8252, section 8.6).
    pub fn is_native(&self) -> bool {
        self.is_loopback() || self.is_private()
    }

    /// Returns the exact recipient for display: the origin with its port, or the scheme of an app.
    pub fn recipient(&self) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        match self.host {
            "" => format!("{}:", self.scheme),
            host => format!("{}://{host}{port}", self.scheme),
        }
    }

    /// Returns the recipient as stored in a consent. The port of a loopback address varies and is left out.
    pub fn place(&self) -> String {
        match self.port.filter(|_| !self.is_loopback()) {
            Some(port) => format!("{}://{}:{port}", self.scheme, self.host),
            None if self.host.is_empty() => format!("{}:", self.scheme),
            None => format!("{}://{}", self.scheme, self.host),
        }
    }

    /// Returns the source expression for the `form-action` directive of a CSP: with the port, and the scheme alone
    /// where browsers would not accept the host.
    pub fn source(&self) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
        if self.is_private() || self.host.is_empty() || !self.host.bytes().all(plain) {
            return format!("{}:", self.scheme);
        }
        match self.port {
            Some(port) => format!("{}://{}:{port}", self.scheme, self.host),
            None => format!("{}://{}", self.scheme, self.host),
        }
    }

    /// Returns `true` if this equals the registered URI, except for the port of a loopback address.
    pub fn is(&self, registered: &str) -> bool {
        if self.uri == registered {
            return true;
        }
        let same = |other: RedirectUri<'_>| {
            self.is_loopback() && other.is_loopback() && (self.host, self.rest) == (other.host, other.rest)
        };
        RedirectUri::read(registered).is_ok_and(same)
    }
}

fn split(authority: &str) -> Result<(&str, Option<&str>), &'static str> {
    if authority.contains('@') {
        return Err("it contains a user name");
    }
    let end = if authority.starts_with('[') {
        authority.find(']').ok_or("its host is not valid")? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, port) = authority.split_at(end);
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok((host, None)),
        Some(number) if number.parse::<u16>().is_ok_and(|number| number > 0) && !number.starts_with('+') => {
            Ok((host, Some(number)))
        }
        _ => Err("its port is not valid"),
    }
}

/// Returns `true` for a valid host in lower case, so that one host has one spelling.
fn is_host(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    if let Some(address) = inner {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    (1..=253).contains(&host.len()) && host.bytes().all(fine) && !host.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_lead_to_a_site_this_machine_or_an_app_are_taken() {
        for (fine, place) in [
            ("https://app.example/cb", "https://app.example"),
            ("https://app.example:8443/cb?x=1", "https://app.example:8443"),
            ("http://127.0.0.1:3000/callback", "http://127.0.0.1"),
            ("http://localhost/callback", "http://localhost"),
            ("http://[::1]:9/", "http://[::1]"),
            ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor://anysphere.cursor-mcp"),
            ("com.example.app:/callback", "com.example.app:"),
        ] {
            assert_eq!(RedirectUri::read(fine).map(|redirect| redirect.place()), Ok(place.into()), "{fine}");
        }
        for wrong in [
            "",
            "/cb",
            "app.example/cb",
            "//app.example/cb",
            "http://app.example/cb",
            "http://127.0.0.1.evil.example/",
            "http://localhost.evil.example/",
            "http://localhost@evil.example/",
            "https://user:pw@app.example/cb",
            "https://app.example/cb#x",
            "https://app.example\\@evil.example/",
            "https://",
            "https:///cb",
            "https://APP.example/cb",
            "https://app.example:0/",
            "https://app.example:99999/",
            "https://app.example:+80/",
            "https://app.example/\"><script>",
            "https://app.example/a b",
            "https://exämple/",
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "file:///etc/passwd",
            "blob:https://x",
            "1x:/cb",
        ] {
            assert!(RedirectUri::read(wrong).is_err(), "{wrong}");
        }
        assert!(RedirectUri::read(&format!("https://a.example/{}", "x".repeat(URI_BYTES_MAX))).is_err());
    }

    #[test]
    fn an_address_is_the_registered_one_letter_by_letter_but_for_a_loopback_port() {
        let is = |given: &str, registered: &str| RedirectUri::read(given).expect("an address").is(registered);
        assert!(is("https://a.example/cb", "https://a.example/cb"));
        assert!(is("http://127.0.0.1:5000/cb", "http://127.0.0.1/cb"));
        assert!(is("http://localhost:5000/cb", "http://localhost:3118/cb"));
        for (given, registered) in [
            ("https://a.example/cb/", "https://a.example/cb"),
            ("https://a.example/cb?x", "https://a.example/cb"),
            ("https://a.example:444/cb", "https://a.example/cb"),
            ("https://b.a.example/cb", "https://a.example/cb"),
            ("http://127.0.0.1:5000/other", "http://127.0.0.1/cb"),
            ("http://localhost:5000/cb", "http://127.0.0.1:5000/cb"),
            ("app://x/cb", "app://y/cb"),
        ] {
            assert!(!is(given, registered), "{given} {registered}");
        }
    }

    #[test]
    fn a_policy_for_forms_names_what_a_browser_understands() {
        for (uri, source) in [
            ("https://app.example/cb", "https://app.example"),
            ("http://127.0.0.1:3000/cb", "http://127.0.0.1:3000"),
            ("http://[::1]:3000/cb", "http:"),
            ("cursor://x/cb", "cursor:"),
            ("https://a_b.example/", "https:"),
        ] {
            assert_eq!(RedirectUri::read(uri).expect("an address").source(), source);
        }
    }
}
