//! OAuth logins to upstream servers: the settings from the config, our client identity, and token storage in the
//! vault.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hikite_config::{AccessConfig, Config, GrantWord, ServerConfig};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::login::{CALLBACK, DOCUMENT};
use hikite_core::owner_secrets::{OwnerSecrets, Signer};
use hikite_core::secret::Secret;
use hikite_core::source::BoxFuture;
use hikite_identity::SecretStore;
use hikite_store::Lease;
use hikite_upstream::{ClientMetadataDocument, ConfiguredClient, GrantType, OAuthSettings};
use hikite_vault::SigningKey;
use parking_lot::Mutex;
use serde_json::Value;

use crate::token;

/// Vault field; each name holds one secret.
const FIELD: &str = "kept";
/// Maximum time one process may hold the lease to refresh a token.
const LEASE_TTL: Duration = Duration::from_secs(60);

/// Returns the login settings of a server; `None` if it needs no login.
pub(crate) fn of(
    config: &Config,
    server: &ServerConfig,
    secret_store: &Arc<SecretStore>,
) -> Result<Option<OAuthSettings>> {
    let Some(access) = &server.access else { return Ok(None) };
    let base = config.server.url();
    // Only others reach a public address, so only that one can describe hikite as a client.
    let document = (config.server.public_url.is_some() && base.starts_with("https://"))
        .then(|| ClientMetadataDocument { url: format!("{base}{DOCUMENT}"), redirect: format!("{base}{CALLBACK}") });
    let name = &server.name;
    Ok(Some(OAuthSettings {
        grant: match access.grant {
            GrantWord::AuthorizationCode => GrantType::AuthorizationCode,
            GrantWord::ClientCredentials => GrantType::ClientCredentials,
        },
        client: client(access).with_context(|| format!("`mcpServers.{name}.auth.private_key_file`"))?,
        scopes: access.scopes.clone(),
        issuer: access.issuer.clone(),
        document,
        login_hint: format!(
            "Log in with `hikite login {name}` or at {base}/connect/{name}. For a server with an API \
             key, check the credentials in `mcpServers.{name}.headers`."
        ),
        egress: config.egress.rules(),
        keep: Arc::new(UpstreamTokenStore::new(secret_store, name)?),
    }))
}

fn client(access: &AccessConfig) -> Result<Option<ConfiguredClient>> {
    let Some(id) = access.client_id.clone() else { return Ok(None) };
    let signer = match &access.private_key {
        Some(pem) => Some(Arc::new(JwtSigner(SigningKey::from_pem(pem)?)) as Arc<dyn Signer>),
        None => None,
    };
    Ok(Some(ConfiguredClient { id, secret: access.client_secret.clone(), signer }))
}

#[derive(Debug)]
struct JwtSigner(SigningKey);

impl Signer for JwtSigner {
    fn sign(&self, claims: &Value) -> Result<String, Error> {
        self.0.sign("JWT", claims).map_err(|why| Error::new(ErrorKind::Internal, why.to_string()))
    }
}

/// Tokens of one upstream server, stored in the vault.
#[derive(Debug)]
struct UpstreamTokenStore {
    secret_store: Arc<SecretStore>,
    account: String,
    /// Lease holder id, unique to this process and server.
    holder: String,
    lease: Mutex<Option<Lease>>,
}

impl UpstreamTokenStore {
    fn new(secret_store: &Arc<SecretStore>, server: &str) -> Result<Self> {
        let holder = BASE64_URL_SAFE_NO_PAD.encode(token::random_key()?);
        Ok(Self {
            secret_store: Arc::clone(secret_store),
            account: format!("upstream:{server}"),
            holder,
            lease: Mutex::default(),
        })
    }
}

impl OwnerSecrets for UpstreamTokenStore {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Secret>, Error>> {
        Box::pin(
            async move { Ok(self.secret_store.get(&self.account, name, FIELD).await?.map(|stored| stored.secret)) },
        )
    }

    fn save<'a>(&'a self, name: &'a str, secret: &'a Secret) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.secret_store.set((&self.account, name, FIELD), secret))
    }

    fn forget<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.secret_store.remove(&self.account, Some(name)).await.map(drop) })
    }

    fn claim(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async move {
            let lease = self.secret_store.store().leases().take(&self.account, &self.holder, LEASE_TTL).await?;
            let is_ours = lease.is_some();
            *self.lease.lock() = lease;
            Ok(is_ours)
        })
    }

    fn done(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let lease = self.lease.lock().take();
            if let Some(lease) = lease
                && let Err(error) = self.secret_store.store().leases().release(&lease).await
            {
                tracing::debug!(%error, "failed to release a lease");
            }
        })
    }
}
