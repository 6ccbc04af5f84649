//! OAuth client for remote servers, as specified in the authorization part of MCP: discovery, login, token renewal. A
//! token is sent only to the server it was issued for; tokens of our own clients never reach this module.

mod address;
mod challenge;
mod client;
mod discovery;
mod endpoint;
mod fetch;
mod form;
mod login;
mod metadata;
mod pending;
mod renew;
mod tokens;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hikite_core::error::{Error, ErrorKind};
use hikite_core::owner_secrets::{OwnerSecrets, Signer};
use hikite_core::secret::Secret;
use hikite_egress::{AllowList, EgressClient};
use http::header::{AUTHORIZATION, HeaderValue};
use http::{HeaderMap, Request, StatusCode, Uri};
use parking_lot::Mutex;
use tokio::sync::Notify;

use self::challenge::BearerChallenge;
use self::fetch::MetadataFetcher;
use self::pending::PendingLogins;
use self::renew::CachedTokens;
use self::tokens::TokenSet;
use crate::error::{FailureReason, UpstreamError};

/// OAuth settings of a remote server.
#[derive(Clone, Debug)]
pub struct OAuthSettings {
    pub grant: GrantType,
    /// Client that an administrator registered.
    pub client: Option<ConfiguredClient>,
    /// Requested scopes. If empty, those that the server names.
    pub scopes: Vec<String>,
    /// The only authorization server to use, if configured.
    pub issuer: Option<String>,
    /// Our published client metadata document.
    pub document: Option<ClientMetadataDocument>,
    /// Login instructions for a person.
    pub login_hint: String,
    /// Private addresses that may be reached, in addition to the public internet.
    pub egress: AllowList,
    pub keep: Arc<dyn OwnerSecrets>,
}

/// A client registered in advance.
#[derive(Clone, Debug)]
pub struct ConfiguredClient {
    pub id: String,
    pub secret: Option<Secret>,
    /// Signs client assertions, in place of a secret.
    pub signer: Option<Arc<dyn Signer>>,
}

/// Our client metadata document. Its URL is our client id.
#[derive(Clone, Debug)]
pub struct ClientMetadataDocument {
    pub url: String,
    /// The only redirect URI in the document.
    pub redirect: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrantType {
    /// A person logs in with a browser.
    #[default]
    AuthorizationCode,
    /// hikite authenticates by itself.
    ClientCredentials,
}

/// OAuth state of one server, shared by all its connections.
#[derive(Debug)]
pub(crate) struct Authorization {
    name: Arc<str>,
    access: OAuthSettings,
    fetcher: MetadataFetcher,
    state: Mutex<AuthorizationState>,
    /// Held while a token is renewed.
    renewal_lock: tokio::sync::Mutex<()>,
    /// Set once stored tokens have been looked up.
    is_loaded: AtomicBool,
    /// Set if a person must log in first.
    needed: AtomicBool,
    /// Notified when `needed` changes.
    pub(crate) changed: Notify,
    /// Notified after a login.
    pub(crate) logged_in: Notify,
}

#[derive(Debug, Default)]
struct AuthorizationState {
    tokens: Option<Arc<TokenSet>>,
    /// Challenge of the latest refusal.
    challenge: BearerChallenge,
    /// Scopes that a call needed in addition to those of the token.
    more: Vec<String>,
    /// Refusals for missing scopes of tokens that had them all, and the last such token.
    refused_repeatedly: (u32, Option<Arc<TokenSet>>),
    pending: PendingLogins,
}

/// Tokens that a request was sent with.
pub(crate) type SentTokens = Option<Arc<TokenSet>>;

impl Authorization {
    pub(crate) fn new(name: Arc<str>, home: Uri, access: OAuthSettings) -> Self {
        let client = EgressClient::guarded(address::allowed(&home, &access.egress));
        let fetcher = MetadataFetcher { name: Arc::clone(&name), home, client };
        Self {
            name,
            access,
            fetcher,
            state: Mutex::default(),
            renewal_lock: tokio::sync::Mutex::default(),
            is_loaded: AtomicBool::new(false),
            needed: AtomicBool::new(false),
            changed: Notify::new(),
            logged_in: Notify::new(),
        }
    }

    /// Sets the private addresses that documents may be fetched from, in addition to the public internet.
    pub(crate) fn allow(&self, egress: &AllowList) {
        self.fetcher.client.allow(address::allowed(&self.fetcher.home, egress));
    }

    pub(crate) fn is_needed(&self) -> bool {
        self.needed.load(Ordering::Relaxed)
    }

    /// Clears the need for a login after the server granted access.
    pub(crate) fn opened(&self) {
        if self.needed.swap(false, Ordering::Relaxed) {
            self.changed.notify_one();
        }
    }

    /// Adds the access token to a request to the server, if there is one.
    pub(crate) async fn attach_token<B>(&self, request: &mut Request<B>) -> Result<SentTokens, Error> {
        if !address::same_origin(request.uri(), &self.fetcher.home) {
            return Ok(None);
        }
        let tokens = match self.cached_tokens() {
            CachedTokens::Ready(tokens) => tokens,
            // Boxed to keep it out of the future of a call that has a valid token.
            CachedTokens::NeedsLoad => Box::pin(self.current()).await?,
        };
        let Some(tokens) = tokens else { return Ok(None) };
        let value = HeaderValue::try_from(format!("Bearer {}", tokens.access.expose()));
        let mut value = value.map_err(|_| self.fetcher.failed("its token cannot be sent in a header"))?;
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
        Ok(Some(tokens))
    }

    /// Returns `true` if a response demands a login or more scopes.
    pub(crate) fn is_refusal(status: StatusCode, headers: &HeaderMap) -> bool {
        status == StatusCode::UNAUTHORIZED
            || (status == StatusCode::FORBIDDEN && BearerChallenge::read(headers).wants_more_scopes())
    }

    /// Handles a refusal. Returns `Ok` if the request can be retried with a newer token.
    pub(crate) async fn refused(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        sent_tokens: SentTokens,
    ) -> Result<(), UpstreamError> {
        let challenge = BearerChallenge::read(headers);
        let _turn = self.renewal_lock.lock().await;
        // Another request may have renewed the token.
        let current = self.state.lock().tokens.clone();
        if current.is_some() && current != sent_tokens {
            return Ok(());
        }
        let wants_more = status == StatusCode::FORBIDDEN;
        self.state.lock().challenge = challenge.clone();
        if !wants_more && self.load_stored(sent_tokens.as_deref()).await? {
            return Ok(());
        }
        if self.access.grant == GrantType::ClientCredentials {
            return Ok(self.request_client_credentials(&challenge, sent_tokens.as_deref()).await?);
        }
        match sent_tokens {
            Some(sent_tokens) if wants_more => Err(self.step_up(&challenge, &sent_tokens)),
            Some(sent_tokens) => self.renew_refused(&sent_tokens, &challenge).await,
            None => Err(self.login_required()),
        }
    }

    /// Records the scopes that a call lacked, so that the next login requests them too, and returns the error.
    fn step_up(&self, challenge: &BearerChallenge, sent_tokens: &Arc<TokenSet>) -> UpstreamError {
        let mut state = self.state.lock();
        if challenge.scopes.iter().all(|scope| sent_tokens.scopes.contains(scope)) {
            let (count, last) = &mut state.refused_repeatedly;
            if last.as_ref() != Some(sent_tokens) {
                (*count, *last) = (*count + 1, Some(Arc::clone(sent_tokens)));
            }
            if *count > 1 {
                let message = format!("`{}` requires permissions that a login does not give.", self.name);
                return Error::new(ErrorKind::Authorization, message).into();
            }
        } else {
            state.refused_repeatedly = (0, None);
        }
        state.more = union(&sent_tokens.scopes, &challenge.scopes);
        drop(state);
        let scopes = challenge.scopes.clone();
        let message = format!("`{}` requires a login with more scopes ({}).", self.name, scopes.join(" "));
        let error = Error::new(ErrorKind::AccountRequired, message).hint(self.access.login_hint.as_str());
        UpstreamError::new(FailureReason::InsufficientScope(scopes), error)
    }

    /// Marks the server as needing a login and returns the error.
    fn login_required(&self) -> UpstreamError {
        if !self.needed.swap(true, Ordering::Relaxed) {
            self.changed.notify_one();
        }
        let error = Error::new(ErrorKind::AccountRequired, format!("`{}` requires a login.", self.name))
            .hint(self.access.login_hint.as_str());
        UpstreamError::new(FailureReason::LoginRequired, error)
    }

    /// Returns the error for a server that refuses every new token.
    pub(crate) fn refused_repeatedly(&self) -> Error {
        self.fetcher.failed("it rejects the token from its authorization server")
    }

    fn set(&self, tokens: Option<Arc<TokenSet>>) {
        let has = tokens.is_some();
        self.state.lock().tokens = tokens;
        if has {
            self.opened();
        }
    }
}

/// Returns the union of both, in order, without duplicates.
fn union(one: &[String], other: &[String]) -> Vec<String> {
    let mut all = one.to_vec();
    all.extend(other.iter().filter(|scope| !one.contains(scope)).cloned());
    all
}

/// Returns 32 random bytes.
fn random() -> Result<[u8; 32], Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|_| Error::new(ErrorKind::Internal, "The operating system returned no random bytes."))?;
    Ok(bytes)
}
