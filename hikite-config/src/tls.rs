//! The `server.tls` and `server.trusted_proxies` settings, and TLS versions for both directions. Certificate files
//! are read when the server is set up: a command that serves nobody needs no key.

use std::path::PathBuf;

use hikite_egress::{IpNetwork, MinTls};
use hikite_server::ServerTls;
use schemars::JsonSchema;
use serde::Deserialize;

use super::checker::ConfigChecker;
use super::position::ConfigPath;

/// TLS without a proxy: the certificate that clients are shown, and its key. Both files are read again when they change.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tls")]
pub(crate) struct TlsFile {
    /// The certificate and those that signed it, as PEM.
    pub(crate) cert_file: String,
    /// Its private key, as PEM.
    pub(crate) key_file: String,
    /// The oldest version of TLS that clients may speak.
    #[schemars(extend("default" = "1.3"))]
    pub(crate) min_version: Option<VersionWord>,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "TlsVersion")]
pub(crate) enum VersionWord {
    #[serde(rename = "1.2")]
    V1_2,
    #[serde(rename = "1.3")]
    V1_3,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSection {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    pub min: MinTls,
}

impl TlsSection {
    /// Reads both files; the error names the invalid one.
    pub fn read(&self) -> Result<ServerTls, String> {
        let read = |key: &str, file: &PathBuf| {
            let shown = file.display();
            std::fs::read(file).map_err(|error| format!("`server.tls.{key}`: cannot read `{shown}`: {error}"))
        };
        let (chain, key) = (read("cert_file", &self.cert_file)?, read("key_file", &self.key_file)?);
        ServerTls::read(&chain, &key, self.min).map_err(|fault| {
            let (name, file) = if fault.is_certificate_error() {
                ("cert_file", &self.cert_file)
            } else {
                ("key_file", &self.key_file)
            };
            format!("`server.tls.{name}`: `{}` {fault}", file.display())
        })
    }
}

impl From<VersionWord> for MinTls {
    fn from(word: VersionWord) -> Self {
        match word {
            VersionWord::V1_2 => Self::V1_2,
            VersionWord::V1_3 => Self::V1_3,
        }
    }
}

pub(crate) fn check(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: Option<&TlsFile>,
) -> Option<TlsSection> {
    let raw = raw?;
    let cert_file = check.expand(&path.key("cert_file"), &raw.cert_file)?;
    let key_file = check.expand(&path.key("key_file"), &raw.key_file)?;
    let min = raw.min_version.map_or_else(MinTls::default, Into::into);
    Some(TlsSection { cert_file: check.resolve(&cert_file), key_file: check.resolve(&key_file), min })
}

/// Checks addresses and networks. Host names are refused, because they may resolve to anything.
pub(crate) fn proxies(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: Option<&[String]>) -> Vec<String> {
    let written = raw.unwrap_or_default().iter().enumerate();
    let proxies = written.filter_map(|(index, text)| {
        let path = path.index(index);
        let text = check.expand(&path, text)?;
        if IpNetwork::parse(&text).is_none() {
            let hint = "Write `127.0.0.1` or `10.0.0.0/8`.";
            return check.fail(&path, format!("`{text}` is not an address or an address block"), hint);
        }
        Some(text)
    });
    proxies.collect()
}
