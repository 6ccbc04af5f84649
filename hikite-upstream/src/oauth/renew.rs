//! Token storage and renewal. One request at a time renews a token, across processes too, and a new token is stored
//! before it is used.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hikite_core::error::Error;

use super::challenge::BearerChallenge;
use super::client::{self, OAuthClient};
use super::discovery::{self, DiscoveryResult};
use super::endpoint::{self, TokenGrant, TokenRefusal};
use super::tokens::{TokenOrigin, TokenSet};
use super::{Authorization, GrantType, union};
use crate::clock::now_ms;
use crate::error::UpstreamError;

const TOKENS: &str = "tokens";
/// Timeout for another process to renew a token.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Token lookup without I/O.
pub(super) enum CachedTokens {
    Ready(Option<Arc<TokenSet>>),
    NeedsLoad,
}

impl Authorization {
    /// Returns the current token, if it needs neither loading nor renewal.
    pub(super) fn cached_tokens(&self) -> CachedTokens {
        match self.state.lock().tokens.clone() {
            Some(known) if known.refresh.is_some() && known.expires_soon(now_ms()) => CachedTokens::NeedsLoad,
            Some(known) => CachedTokens::Ready(Some(known)),
            None if self.is_loaded.load(Ordering::Relaxed) => CachedTokens::Ready(None),
            None => CachedTokens::NeedsLoad,
        }
    }

    /// Returns the current token, renewed if it is about to expire.
    pub(super) async fn current(&self) -> Result<Option<Arc<TokenSet>>, Error> {
        let known = self.state.lock().tokens.clone();
        let known = match known {
            Some(known) => known,
            // Loaded once: later logins set the token themselves.
            None if self.is_loaded.swap(true, Ordering::Relaxed) => return Ok(None),
            None => match self.stored_tokens().await? {
                Some(stored_tokens) => {
                    let stored_tokens = Arc::new(stored_tokens);
                    self.set(Some(Arc::clone(&stored_tokens)));
                    stored_tokens
                }
                None => return Ok(None),
            },
        };
        if !known.expires_soon(now_ms()) || known.refresh.is_none() {
            return Ok(Some(known));
        }
        let _turn = self.renewal_lock.lock().await;
        let latest = self.state.lock().tokens.clone();
        if latest.as_ref() != Some(&known) {
            return Ok(latest);
        }
        let challenge = self.state.lock().challenge.clone();
        match self.renew(&known, &challenge).await {
            Ok(renewed) => Ok(renewed),
            // The token is still valid.
            Err(error) if !known.is_expired(now_ms()) => {
                tracing::debug!(module = &*self.name, error = error.log_text(), "failed to refresh a token");
                Ok(Some(known))
            }
            Err(error) => Err(error),
        }
    }

    /// Loads the stored tokens. Returns `true` if they differ from those last sent.
    pub(super) async fn load_stored(&self, sent_tokens: Option<&TokenSet>) -> Result<bool, Error> {
        let Some(stored_tokens) = self.stored_tokens().await? else { return Ok(false) };
        if sent_tokens == Some(&stored_tokens) {
            return Ok(false);
        }
        self.set(Some(Arc::new(stored_tokens)));
        Ok(true)
    }

    /// Returns `true` if somebody logged in through another process or node.
    pub(crate) async fn has_newer_tokens(&self) -> bool {
        let known = self.state.lock().tokens.clone();
        self.load_stored(known.as_deref()).await.unwrap_or(false)
    }

    /// Renews a token that was refused before it expired.
    pub(super) async fn renew_refused(
        &self,
        sent_tokens: &TokenSet,
        challenge: &BearerChallenge,
    ) -> Result<(), UpstreamError> {
        match self.renew(sent_tokens, challenge).await? {
            Some(_) => Ok(()),
            None => Err(self.login_required()),
        }
    }

    /// Renews a token while holding the lock across processes. Returns `None` if a person has to log in again.
    async fn renew(&self, old: &TokenSet, challenge: &BearerChallenge) -> Result<Option<Arc<TokenSet>>, Error> {
        if old.refresh.is_none() {
            self.drop_tokens().await?;
            return Ok(None);
        }
        let keep = &self.access.keep;
        let waiting = async {
            while !keep.claim().await? {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            Ok::<(), Error>(())
        };
        let claimed = tokio::time::timeout(RENEWAL_TIMEOUT, waiting).await;
        claimed.map_err(|_| self.fetcher.failed("another process is still refreshing its token"))??;
        let renewed = self.renew_claimed(old, challenge).await;
        keep.done().await;
        renewed
    }

    async fn renew_claimed(&self, old: &TokenSet, challenge: &BearerChallenge) -> Result<Option<Arc<TokenSet>>, Error> {
        if self.load_stored(Some(old)).await? {
            return Ok(self.state.lock().tokens.clone());
        }
        let Some(refresh) = &old.refresh else { return Ok(None) };
        let found = self.find(challenge).await?;
        // Tokens of the old issuer are useless after a change, and the new issuer must not see them.
        if found.server.issuer != old.bound.issuer || found.resource != old.bound.resource {
            self.drop_tokens().await?;
            return Ok(None);
        }
        let Some(client) = OAuthClient::of_token(&self.access, &found.server, &old.bound).await? else {
            self.drop_tokens().await?;
            return Ok(None);
        };
        let offer = TokenGrant::Refresh(refresh.expose());
        let who = (&found.server, &client);
        let asked = endpoint::ask(&self.fetcher, who, offer, &old.scopes, old.bound.clone(), now_ms()).await;
        match asked {
            Ok(mut renewed) => {
                renewed.refresh = renewed.refresh.or_else(|| old.refresh.clone());
                Ok(Some(self.keep(renewed).await?))
            }
            Err(TokenRefusal::Other(error)) => Err(error),
            Err(TokenRefusal::InvalidClient) => {
                client::forget(&*self.access.keep, &old.bound).await?;
                self.drop_tokens().await?;
                Ok(None)
            }
            Err(TokenRefusal::InvalidGrant) => {
                self.drop_tokens().await?;
                Ok(None)
            }
        }
    }

    /// Obtains a token with the client credentials grant.
    pub(super) async fn request_client_credentials(
        &self,
        challenge: &BearerChallenge,
        sent_tokens: Option<&TokenSet>,
    ) -> Result<(), Error> {
        let found = self.find(challenge).await?;
        let scopes = self.scopes(&found, challenge);
        let scopes = sent_tokens.map_or_else(|| scopes.clone(), |sent_tokens| union(&sent_tokens.scopes, &scopes));
        let client = OAuthClient::find(&self.access, &self.fetcher, &found.server, ("", &scopes), now_ms()).await?;
        let bound = TokenOrigin {
            issuer: found.server.issuer.clone(),
            client_id: client.id.clone(),
            resource: found.resource,
            redirect: String::new(),
        };
        let who = (&found.server, &client);
        let asked = endpoint::ask(&self.fetcher, who, TokenGrant::ClientCredentials, &scopes, bound, now_ms()).await;
        let tokens = asked.map_err(|refusal| match refusal {
            TokenRefusal::Other(error) => error,
            TokenRefusal::InvalidGrant | TokenRefusal::InvalidClient => {
                let hint = format!("Check `mcpServers.{}.auth`.", self.name);
                self.fetcher.failed("its authorization server rejects this client").hint(hint)
            }
        })?;
        self.keep(tokens).await?;
        Ok(())
    }

    pub(super) async fn find(&self, challenge: &BearerChallenge) -> Result<DiscoveryResult, Error> {
        let told = challenge.resource_metadata.as_deref();
        discovery::find(&self.fetcher, told, self.access.issuer.as_deref()).await
    }

    /// Returns the scopes to request: the configured ones, else those of the challenge, else those of the metadata.
    pub(super) fn scopes(&self, found: &DiscoveryResult, challenge: &BearerChallenge) -> Vec<String> {
        let more = self.state.lock().more.clone();
        if !self.access.scopes.is_empty() {
            return union(&self.access.scopes, &more);
        }
        let wanted = if challenge.scopes.is_empty() { &found.scopes } else { &challenge.scopes };
        let wanted = wanted.iter().filter(|scope| super::challenge::is_scope(scope)).cloned();
        let mut scopes = union(&more, &wanted.collect::<Vec<_>>());
        let lasting = "offline_access".to_owned();
        let can_last = self.access.grant == GrantType::AuthorizationCode
            && found.server.scopes_supported.contains(&lasting)
            && !scopes.contains(&lasting);
        if can_last && !scopes.is_empty() {
            scopes.push(lasting);
        }
        scopes
    }

    /// Stores tokens, then uses them.
    pub(super) async fn keep(&self, tokens: TokenSet) -> Result<Arc<TokenSet>, Error> {
        self.access.keep.save(TOKENS, &tokens.to_stored()).await?;
        let tokens = Arc::new(tokens);
        self.set(Some(Arc::clone(&tokens)));
        Ok(tokens)
    }

    /// Deletes invalid tokens.
    pub(super) async fn drop_tokens(&self) -> Result<(), Error> {
        self.set(None);
        self.access.keep.forget(TOKENS).await
    }

    async fn stored_tokens(&self) -> Result<Option<TokenSet>, Error> {
        let stored_tokens = self.access.keep.load(TOKENS).await?;
        Ok(stored_tokens.and_then(|stored_tokens| TokenSet::of(&stored_tokens, &self.fetcher.home)))
    }
}
