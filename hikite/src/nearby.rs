//! How a command of this program reaches the hikite that runs on this machine: at the address of the config, and with
//! TLS only if it shows the very certificate that the config names, which nobody else need have signed.

use anyhow::{Context, Result};
use hikite_egress::{Client, Pin};

use crate::config::Config;

/// A client that believes the certificate of the config and no other.
pub(crate) fn client(config: &Config) -> Result<Client> {
    let Some(tls) = &config.server.tls else { return Ok(Client::new()) };
    let file = tls.cert_file.display();
    let pem = std::fs::read(&tls.cert_file).with_context(|| format!("cannot read `{file}`"))?;
    let pin = Pin::read(&pem).with_context(|| format!("`{file}` holds no certificate in PEM form"))?;
    Ok(Client::pinned(pin))
}
