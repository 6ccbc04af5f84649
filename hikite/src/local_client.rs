//! HTTP client with which commands reach the hikite instance on this machine. It uses the address of the config and,
//! with TLS, trusts only the certificate that the config names; no certificate authority is needed.

use anyhow::{Context, Result};
use hikite_config::Config;
use hikite_egress::{EgressClient, PinnedCertificate};

/// Returns a client that trusts the certificate of the config and no other.
pub(crate) fn client(config: &Config) -> Result<EgressClient> {
    let Some(tls) = &config.server.tls else { return Ok(EgressClient::new()) };
    let file = tls.cert_file.display();
    let pem = std::fs::read(&tls.cert_file).with_context(|| format!("cannot read `{file}`"))?;
    let pin =
        PinnedCertificate::read(&pem).with_context(|| format!("`{file}` contains no certificate in PEM format"))?;
    Ok(EgressClient::pinned(pin))
}
