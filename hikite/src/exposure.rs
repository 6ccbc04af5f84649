//! Checks who can reach the server. An address that others can reach requires a token and TLS, our own or a proxy's.
//! CORS for every origin requires a token.

use hikite_config::{AuthSection, Config, Cors};

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
             (https://…), or listen on 127.0.0.1."
        )));
    }
    Ok(())
}
