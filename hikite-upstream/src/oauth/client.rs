//! OAuth client identity at an authorization server: configured, a client metadata document, or dynamically registered.
//! Credentials from one server are never sent to another.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hikite_core::error::Error;
use hikite_core::login::CLIENT_NAME;
use hikite_core::owner_secrets::{OwnerSecrets, Signer};
use hikite_core::secret::Secret;
use http::header::HeaderValue;
use serde::Deserialize;
use serde_json::{Value, json};

use super::fetch::MetadataFetcher;
use super::form;
use super::metadata::ServerDocument;
use super::tokens::TokenOrigin;
use super::{ConfiguredClient, OAuthSettings, address, random};

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Lifetime of a client assertion in seconds.
const ASSERTION_LIFE: u64 = 60;

/// A client as one authorization server knows it.
#[derive(Clone, Debug)]
pub(super) struct OAuthClient {
    pub(super) id: String,
    proof: ClientAuthentication,
}

/// Client authentication method.
#[derive(Clone)]
enum ClientAuthentication {
    None,
    Basic(Secret),
    Post(Secret),
    Signed(Arc<dyn Signer>),
}

impl fmt::Debug for ClientAuthentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Basic(_) => "Basic",
            Self::Post(_) => "Post",
            Self::Signed(_) => "Signed",
        })
    }
}

/// Stored client registration.
#[derive(Deserialize)]
struct ClientRegistration {
    client_id: String,
    client_secret: Option<String>,
    /// Seconds since 1970; zero for never.
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
    /// Scopes of the registration.
    #[serde(default)]
    scopes: Vec<String>,
}

impl OAuthClient {
    /// Returns the client for a login with this redirect URI, and registers one if necessary.
    pub(super) async fn find(
        access: &OAuthSettings,
        fetcher: &MetadataFetcher,
        server: &ServerDocument,
        (redirect, scopes): (&str, &[String]),
        now: u64,
    ) -> Result<Self, Error> {
        if let Some(fixed) = &access.client {
            bind(access, fetcher, &fixed.id, server).await?;
            return Ok(Self::fixed(fixed, server));
        }
        if let Some(document) = access.document.as_ref().filter(|document| document.redirect == redirect)
            && server.client_id_metadata_document_supported
        {
            return Ok(Self { id: document.url.clone(), proof: ClientAuthentication::None });
        }
        let name = name_of(&server.issuer, redirect);
        if let Some(stored) = access.keep.load(&name).await?
            && let Some(known) = ClientRegistration::known(&stored, scopes, now)
        {
            return Ok(Self::registered(known, server));
        }
        let answer = register(fetcher, server, redirect, scopes).await?;
        access.keep.save(&name, &Secret::hidden(answer.to_string())).await?;
        let registered = serde_json::from_value(answer);
        let registered =
            registered.map_err(|_| fetcher.failed("the response to the client registration is not valid"))?;
        Ok(Self::registered(registered, server))
    }

    /// Returns the client that a token was issued to, if it is still known.
    pub(super) async fn of_token(
        access: &OAuthSettings,
        server: &ServerDocument,
        bound: &TokenOrigin,
    ) -> Result<Option<Self>, Error> {
        let id = bound.client_id.as_str();
        if let Some(fixed) = &access.client {
            return Ok((fixed.id == id).then(|| Self::fixed(fixed, server)));
        }
        if access.document.as_ref().is_some_and(|document| document.url == id) {
            return Ok(Some(Self { id: id.to_owned(), proof: ClientAuthentication::None }));
        }
        let stored = access.keep.load(&name_of(&server.issuer, &bound.redirect)).await?;
        let known: Option<ClientRegistration> = stored.and_then(|stored| serde_json::from_str(stored.expose()).ok());
        Ok(known.filter(|known| known.client_id == id).map(|known| Self::registered(known, server)))
    }

    fn fixed(fixed: &ConfiguredClient, server: &ServerDocument) -> Self {
        let proof = match (&fixed.signer, &fixed.secret) {
            (Some(signer), _) => ClientAuthentication::Signed(Arc::clone(signer)),
            (None, Some(secret)) => with_secret(secret.clone(), None, server),
            (None, None) => ClientAuthentication::None,
        };
        Self { id: fixed.id.clone(), proof }
    }

    fn registered(known: ClientRegistration, server: &ServerDocument) -> Self {
        let method = known.token_endpoint_auth_method.as_deref();
        let proof = match known.client_secret {
            Some(secret) => with_secret(Secret::hidden(secret), method, server),
            None => ClientAuthentication::None,
        };
        Self { id: known.client_id, proof }
    }

    /// Adds client authentication to a token request. Returns the `Authorization` header, if one is needed.
    pub(super) fn sign(
        &self,
        pairs: &mut Vec<(&'static str, String)>,
        issuer: &str,
        now: u64,
    ) -> Result<Option<HeaderValue>, Error> {
        match &self.proof {
            ClientAuthentication::None => pairs.push(("client_id", self.id.clone())),
            ClientAuthentication::Post(secret) => {
                pairs.push(("client_id", self.id.clone()));
                pairs.push(("client_secret", secret.expose().to_owned()));
            }
            ClientAuthentication::Signed(signer) => {
                let now = now / 1000;
                let claims = json!({
                    "iss": self.id, "sub": self.id, "aud": issuer, "jti": URL_SAFE_NO_PAD.encode(random()?),
                    "iat": now, "exp": now + ASSERTION_LIFE,
                });
                pairs.push(("client_id", self.id.clone()));
                pairs.push(("client_assertion_type", ASSERTION.to_owned()));
                pairs.push(("client_assertion", signer.sign(&claims)?));
            }
            ClientAuthentication::Basic(secret) => {
                let both = format!("{}:{}", form::escape(&self.id), form::escape(secret.expose()));
                let value = format!("Basic {}", STANDARD.encode(both));
                return Ok(HeaderValue::try_from(value).ok().map(|mut value| {
                    value.set_sensitive(true);
                    value
                }));
            }
        }
        Ok(None)
    }
}

impl ClientRegistration {
    /// Parses a stored registration. Returns `None` if it has expired or lacks a scope.
    fn known(stored: &Secret, scopes: &[String], now: u64) -> Option<Self> {
        let known: Self = serde_json::from_str(stored.expose()).ok()?;
        let is_over = known.client_secret_expires_at.is_some_and(|end| end > 0 && end <= now / 1000);
        (scopes.iter().all(|scope| known.scopes.contains(scope)) && !is_over).then_some(known)
    }
}

/// Chooses the authentication method: the registered one, else the first that the server supports.
fn with_secret(secret: Secret, method: Option<&str>, server: &ServerDocument) -> ClientAuthentication {
    let supported = server.token_endpoint_auth_methods_supported.as_deref();
    let takes = |method: &str| match supported {
        Some(supported) => supported.iter().any(|known| known == method),
        None => method == "client_secret_basic",
    };
    match method {
        Some("client_secret_basic") => ClientAuthentication::Basic(secret),
        Some("client_secret_post") => ClientAuthentication::Post(secret),
        Some("none") => ClientAuthentication::None,
        _ if takes("client_secret_basic") => ClientAuthentication::Basic(secret),
        _ if takes("client_secret_post") => ClientAuthentication::Post(secret),
        _ if takes("none") => ClientAuthentication::None,
        _ => ClientAuthentication::Basic(secret),
    }
}

/// Binds the configured client to its issuer: the configured one, else the first that it was used with.
async fn bind(
    access: &OAuthSettings,
    fetcher: &MetadataFetcher,
    id: &str,
    server: &ServerDocument,
) -> Result<(), Error> {
    if access.issuer.is_some() {
        return Ok(());
    }
    let stored = access.keep.load("bound").await?;
    let stored: Value = stored.and_then(|stored| serde_json::from_str(stored.expose()).ok()).unwrap_or_default();
    if stored["client_id"] == id {
        return if stored["issuer"] == server.issuer.as_str() {
            Ok(())
        } else {
            let error = fetcher.failed("its `auth.client_id` belongs to another authorization server");
            Err(error.hint(format!("Set the right one in `mcpServers.{}.auth.issuer`.", fetcher.name)))
        };
    }
    let bound = json!({ "client_id": id, "issuer": server.issuer });
    access.keep.save("bound", &Secret::hidden(bound.to_string())).await
}

/// Registers a client (RFC 7591) and returns the record to store.
async fn register(
    fetcher: &MetadataFetcher,
    server: &ServerDocument,
    redirect: &str,
    scopes: &[String],
) -> Result<Value, Error> {
    let Some(endpoint) = &server.registration_endpoint else {
        let hint = format!("Register hikite there and set `mcpServers.{}.auth.client_id`.", fetcher.name);
        return Err(fetcher.failed("its authorization server does not register clients").hint(hint));
    };
    let endpoint = fetcher.address("`registration_endpoint`", endpoint)?;
    let supported = server.token_endpoint_auth_methods_supported.as_deref();
    let takes = |method: &str| supported.is_some_and(|known| known.iter().any(|known| known == method));
    let method = ["none", "client_secret_basic", "client_secret_post"].into_iter().find(|way| takes(way));
    let near = redirect.parse().is_ok_and(|redirect| address::is_loopback(&redirect));
    let mut asked = json!({
        "client_name": CLIENT_NAME,
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method.unwrap_or("client_secret_basic"),
        "application_type": if near { "native" } else { "web" },
    });
    if !scopes.is_empty() {
        asked["scope"] = scopes.join(" ").into();
    }
    let (status, answer) = fetcher.post(&endpoint, "application/json", asked.to_string(), None).await?;
    let known = answer["client_id"].as_str().filter(|id| !id.is_empty() && status.is_success());
    let Some(id) = known else {
        let error = fetcher.failed(&format!("its authorization server rejected the client registration ({status})"));
        return Err(error.hint(format!("Set `mcpServers.{}.auth.client_id`.", fetcher.name)));
    };
    Ok(json!({
        "client_id": id,
        "client_secret": answer["client_secret"].as_str(),
        "client_secret_expires_at": answer["client_secret_expires_at"].as_u64(),
        "token_endpoint_auth_method": answer["token_endpoint_auth_method"].as_str(),
        "scopes": scopes,
    }))
}

/// Deletes a registration that the server no longer knows.
pub(super) async fn forget(keep: &dyn OwnerSecrets, bound: &TokenOrigin) -> Result<(), Error> {
    keep.forget(&name_of(&bound.issuer, &bound.redirect)).await
}

fn name_of(issuer: &str, redirect: &str) -> String {
    format!("client {issuer} {redirect}")
}
