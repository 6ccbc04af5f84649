//! Checks who can reach the server. An address that others can reach requires a token and TLS, our own or a proxy's.
//! Without TLS it serves only loopback names, as in a container whose port is published on this machine. CORS for every
//! origin requires a token.

use hikite_config::{AuthSection, Config, Cors, ServerSection, is_loopback_host};

use crate::cli::InvalidSetup;

/// Refuses a config that anybody on the network, or any web page, could use.
pub(crate) fn check(config: &Config) -> Result<(), InvalidSetup> {
    if config.server.cors == Cors::Any && matches!(config.auth, AuthSection::None) {
        return Err(InvalidSetup(
            "`auth.mode` is \"none\" and `server.cors` allows every web page: any page could use your tools\nhint: \
             Remove `auth.mode`, or list the allowed pages in `server.cors.origin`."
                .into(),
        ));
    }
    if config.server.is_loopback_only() {
        loopback_only(&config.server)?;
    }
    let listen = config.server.listen;
    if listen.ip().is_loopback() {
        return Ok(());
    }
    if matches!(config.auth, AuthSection::None) {
        return Err(InvalidSetup(format!(
            "`auth.mode` is \"none\" and {listen} is reachable from other machines\nhint: Remove `auth.mode`, or \
             listen on 127.0.0.1."
        )));
    }
    if config.server.public_url.is_none() && config.server.tls.is_none() {
        return Err(InvalidSetup(format!(
            "{listen} is reachable from other machines, and tokens would be sent over plain HTTP\nhint: Set a \
             certificate in `server.tls`, or use a TLS proxy and set its address in `server.public_url` \
             (https://…), or listen on 127.0.0.1. In a container whose port is published on 127.0.0.1, set \
             `server.public_url` to http://localhost:{}.",
            listen.port()
        )));
    }
    Ok(())
}

/// Refuses settings that contradict a public URL without TLS: other names for hikite, other nodes, a certificate.
fn loopback_only(server: &ServerSection) -> Result<(), InvalidSetup> {
    let node = server.node_url.iter().filter_map(|url| url.split_once("://")).map(|(_, host)| ("node_url", host));
    let named = server.allowed_hosts.iter().map(|host| ("allowed_hosts", host.as_str())).chain(node);
    let tls = server.tls.iter().map(|_| ("tls", ""));
    match named.filter(|(_, host)| !is_loopback_host(host)).chain(tls).next() {
        None => Ok(()),
        Some((key, _)) => Err(InvalidSetup(format!(
            "`server.public_url` is `{}`, which is for this machine only, but `server.{key}` is for others\nhint: \
             Remove `server.{key}`, or set `server.public_url` to an https address.",
            server.url()
        ))),
    }
}
