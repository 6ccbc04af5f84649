//! Discovery of a server's authorization server. Every document must describe the URL that it was fetched for;
//! otherwise discovery fails.

use hikite_core::error::Error;
use http::Uri;
use serde_json::Value;

use super::address;
use super::fetch::MetadataFetcher;
use super::metadata::{self, ResourceDocument, ServerDocument};

/// Result of discovery: resource, scopes and authorization server.
#[derive(Clone, Debug)]
pub(super) struct DiscoveryResult {
    /// Resource identifier, exactly as the server states it.
    pub(super) resource: String,
    pub(super) scopes: Vec<String>,
    pub(super) server: ServerDocument,
    /// Set if the server must advertise PKCE. Older servers may support it without saying so.
    pub(super) must_advertise_pkce: bool,
}

/// Discovers the authorization server from the metadata URL of the challenge and the configured issuer, if any.
pub(super) async fn find(
    fetcher: &MetadataFetcher,
    told: Option<&str>,
    configured_issuer: Option<&str>,
) -> Result<DiscoveryResult, Error> {
    let Some(resource) = resource(fetcher, told).await? else {
        return legacy(fetcher, configured_issuer).await;
    };
    let issuer = match (configured_issuer, resource.authorization_servers.first()) {
        (Some(configured_issuer), Some(_)) => {
            let named = resource.authorization_servers.iter();
            let named = named.into_iter().find(|issuer| metadata::same_issuer(issuer, configured_issuer));
            named.ok_or_else(|| fetcher.failed("it no longer names the issuer in its `auth.issuer`"))?.clone()
        }
        (Some(configured_issuer), None) => configured_issuer.to_owned(),
        (None, Some(first)) => first.clone(),
        (None, None) => address::origin(&fetcher.home),
    };
    let Some(server) = server(fetcher, &issuer, None).await? else {
        return Err(fetcher.failed("its authorization server has no metadata document"));
    };
    Ok(DiscoveryResult {
        resource: resource.resource,
        scopes: resource.scopes_supported,
        server,
        must_advertise_pkce: true,
    })
}

/// Fallback for servers of 2025-03-26: the server is its own authorization server and may have no metadata.
async fn legacy(fetcher: &MetadataFetcher, configured_issuer: Option<&str>) -> Result<DiscoveryResult, Error> {
    let issuer = address::origin(&fetcher.home);
    let described = server(fetcher, &issuer, configured_issuer).await?;
    let server = described.unwrap_or_else(|| metadata::legacy(&fetcher.home));
    let resource = address::canonical(&fetcher.home);
    Ok(DiscoveryResult { resource, scopes: Vec::new(), server, must_advertise_pkce: false })
}

async fn resource(fetcher: &MetadataFetcher, told: Option<&str>) -> Result<Option<ResourceDocument>, Error> {
    let document = match told {
        Some(told) => {
            let url = fetcher.address("`resource_metadata`", told)?;
            let document = fetcher.document(&url).await?;
            Some(document.ok_or_else(|| fetcher.failed("its resource metadata cannot be found"))?)
        }
        None => first(fetcher, &metadata::resource_metadata_urls(&fetcher.home)).await?,
    };
    let Some(document) = document else { return Ok(None) };
    let document: ResourceDocument =
        serde_json::from_value(document).map_err(|_| fetcher.failed("its resource metadata is not valid"))?;
    let resource: Option<Uri> = document.resource.parse().ok().filter(|_| !document.resource.contains('#'));
    if !resource.is_some_and(|resource| address::covers(&resource, &fetcher.home)) {
        return Err(fetcher.failed("its resource metadata describes another server"));
    }
    Ok(Some(document))
}

/// Fetches the metadata of an issuer, which may also go by the configured name `also`.
async fn server(fetcher: &MetadataFetcher, issuer: &str, also: Option<&str>) -> Result<Option<ServerDocument>, Error> {
    let url = fetcher.address("issuer", issuer)?;
    let Some(document) = first(fetcher, &metadata::server_metadata_urls(&url)).await? else {
        return Ok(None);
    };
    let document: ServerDocument = serde_json::from_value(document)
        .map_err(|_| fetcher.failed("the metadata of its authorization server is not valid"))?;
    let is_known = |known: &str| metadata::same_issuer(known, &document.issuer);
    if !is_known(issuer) && !also.is_some_and(is_known) {
        return Err(fetcher.failed("the metadata of its authorization server names another issuer"));
    }
    Ok(Some(document))
}

/// Returns the first document that exists.
async fn first(fetcher: &MetadataFetcher, candidates: &[String]) -> Result<Option<Value>, Error> {
    for candidate in candidates {
        let url = fetcher.address("address", candidate)?;
        if let Some(document) = fetcher.document(&url).await? {
            return Ok(Some(document));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;

    use hikite_egress::{AllowList, EgressClient};

    use super::*;

    /// Checks that a remote server cannot make us connect to this machine.
    async fn check(told: impl Fn(u16) -> String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("it does not wait");
        let told = told(listener.local_addr().expect("bound").port());
        let home = Uri::from_static("https://mcp.example/mcp");
        let client = EgressClient::guarded(address::allowed(&home, &AllowList::default()));
        let fetcher = MetadataFetcher { name: Arc::from("far"), home, client };
        find(&fetcher, Some(&told), None).await.expect_err(&told);
        server(&fetcher, &told, None).await.expect_err(&told);
        assert!(listener.accept().is_err(), "{told} was called");
    }

    #[tokio::test]
    async fn a_server_elsewhere_leads_nobody_into_this_machine() {
        for host in [
            "127.0.0.1",
            "localhost",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[64:ff9b::7f00:1]",
        ] {
            check(|port| format!("https://{host}:{port}/x")).await;
            check(|port| format!("http://{host}:{port}/x")).await;
        }
    }
}
