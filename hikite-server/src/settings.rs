//! The settings of the server that a config reload may change.

use std::sync::Arc;

use hikite_core::json::Object;
use hikite_core::pattern::Pattern;
use hikite_core::rate::Rate;
use hikite_core::secret::Secret;
use hikite_egress::EgressClient;
use hikite_gateway::Surfaces;
use hikite_identity::TokenTerms;
use serde_json::Value;

use crate::origin::Origins;
use crate::proxy::TrustedProxies;
use crate::tls::ServerTls;

/// The settings that a config reload may change.
#[derive(Debug)]
pub struct ServerSettings {
    pub auth: Auth,
    /// OAuth for users and their clients; `None` disables all of its routes.
    pub oauth: Option<Arc<OauthSettings>>,
    pub origins: Origins,
    /// The proxies whose forwarding headers are trusted.
    pub proxies: TrustedProxies,
    /// The server certificate; `None` serves plaintext HTTP.
    pub tls: Option<ServerTls>,
    /// The surfaces of a client that does not choose any.
    pub surfaces: Surfaces,
    /// Client names that accept no tool names over 64 characters.
    pub short_names: Vec<Pattern>,
    /// Request rate limit per caller; `None` is unlimited.
    pub rate: Option<Rate>,
    /// Token that grants access to `/metrics` only.
    pub metrics_token: Option<Secret>,
    /// Client ID metadata document for the authorization servers of upstreams, if this instance has a public address.
    pub document: Option<Value>,
}

impl ServerSettings {
    /// Returns the surfaces for a client with this `clientInfo`.
    pub(crate) fn surfaces_for(&self, surfaces: Surfaces, client: Option<&Object>) -> Surfaces {
        if self.short_names.is_empty() {
            return surfaces;
        }
        let name = client.and_then(|client| client.text("name")).unwrap_or_default().to_ascii_lowercase();
        surfaces.with_short_names(self.short_names.iter().any(|pattern| pattern.matches(&name)))
    }
}

/// Authentication of callers without an account.
#[derive(Clone, Debug)]
pub enum Auth {
    /// The holder of the local token is the owner.
    Token(Secret),
    /// No authentication: whoever connects is the owner. Allowed only on loopback addresses and only if configured.
    None,
}

/// The OAuth settings.
#[derive(Clone, Debug)]
pub struct OauthSettings {
    /// Issuer and lifetime of tokens.
    pub terms: TokenTerms,
    /// `true` if there is no public name; then any loopback name that a client uses is accepted.
    pub is_local: bool,
    pub cimd: ClientMetadataMode,
    /// `true` if dynamic client registration is allowed.
    pub registration: bool,
    /// HTTP client for client ID metadata documents, whose addresses are chosen by strangers.
    pub client: EgressClient,
}

/// Support for client ID metadata documents (CIMD).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMetadataMode {
    /// Well-known clients use their bundled metadata; others are fetched.
    Auto,
    /// All are fetched; bundled metadata is the fallback.
    On,
    Off,
}
