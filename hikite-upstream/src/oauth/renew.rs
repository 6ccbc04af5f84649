//! Token storage and renewal. One request at a time renews a token, across processes too, and a new token is stored
//! before it is used.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hikite_core::error::Error;

use super::challenge::Challenge;
use super::client::{self, Client};
use super::discovery::{self, Found};
use super::endpoint::{self, Offer, Refusal};
use super::tokens::{Bound, Tokens};
use super::{Authorization, Grant, union};
use crate::clock::now_ms;

const TOKENS: &str = "tokens";
/// Timeout for another process to renew a token.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);

/// Token lookup without I/O.
pub(super) enum AtHand {
    Sure(Option<Arc<Tokens>>),
    Unsure,
}

impl Authorization {
    /// Returns the current token, if it needs neither loading nor renewal.
    pub(super) fn at_hand(&self) -> AtHand {
        match self.state.lock().tokens.clone() {
            Some(known) if known.refresh.is_some() && known.is_ending(now_ms()) => AtHand::Unsure,
            Some(known) => AtHand::Sure(Some(known)),
            None if self.looked.load(Ordering::Relaxed) => AtHand::Sure(None),
            None => AtHand::Unsure,
        }
    }

    /// Returns the current token, renewed if it is about to expire.
    pub(super) async fn current(&self) -> Result<Option<Arc<Tokens>>, Error> {
        let known = self.state.lock().tokens.clone();
        let known = match known {
            Some(known) => known,
            // Loaded once: later logins set the token themselves.
            None if self.looked.swap(true, Ordering::Relaxed) => return Ok(None),
            None => match self.kept().await? {
                Some(kept) => {
                    let kept = Arc::new(kept);
                    self.set(Some(Arc::clone(&kept)));
                    kept
                }
                None => return Ok(None),
            },
        };
        if !known.is_ending(now_ms()) || known.refresh.is_none() {
            return Ok(Some(known));
        }
        let _turn = self.turn.lock().await;
        let latest = self.state.lock().tokens.clone();
        if latest.as_ref() != Some(&known) {
            return Ok(latest);
        }
        let challenge = self.state.lock().challenge.clone();
        match self.renew(&known, &challenge).await {
            Ok(renewed) => Ok(renewed),
            // The token is still valid.
            Err(error) if !known.is_over(now_ms()) => {
                tracing::debug!(module = &*self.name, error = error.guarded(), "a token was not renewed");
                Ok(Some(known))
            }
            Err(error) => Err(error),
        }
    }

    /// Loads the stored tokens. Returns `true` if they differ from those last sent.
    pub(super) async fn take_kept(&self, shown: Option<&Tokens>) -> Result<bool, Error> {
        let Some(kept) = self.kept().await? else { return Ok(false) };
        if shown == Some(&kept) {
            return Ok(false);
        }
        self.set(Some(Arc::new(kept)));
        Ok(true)
    }

    /// Returns `true` if somebody logged in through another process or node.
    pub(crate) async fn has_news(&self) -> bool {
        let known = self.state.lock().tokens.clone();
        self.take_kept(known.as_deref()).await.unwrap_or(false)
    }

    /// Renews a token that was refused before it expired.
    pub(super) async fn renew_refused(&self, shown: &Tokens, challenge: &Challenge) -> Result<(), Error> {
        match self.renew(shown, challenge).await? {
            Some(_) => Ok(()),
            None => Err(self.must_log_in()),
        }
    }

    /// Renews a token while holding the lock across processes. Returns `None` if a person has to log in again.
    async fn renew(&self, old: &Tokens, challenge: &Challenge) -> Result<Option<Arc<Tokens>>, Error> {
        if old.refresh.is_none() {
            self.lose().await?;
            return Ok(None);
        }
        let keep = &self.access.keep;
        let waiting = async {
            while !keep.claim().await? {
                tokio::time::sleep(LOOK).await;
            }
            Ok::<(), Error>(())
        };
        let claimed = tokio::time::timeout(PATIENCE, waiting).await;
        claimed.map_err(|_| self.fetcher.failed("another process does not end renewing its token"))??;
        let renewed = self.renew_claimed(old, challenge).await;
        keep.done().await;
        renewed
    }

    async fn renew_claimed(&self, old: &Tokens, challenge: &Challenge) -> Result<Option<Arc<Tokens>>, Error> {
        if self.take_kept(Some(old)).await? {
            return Ok(self.state.lock().tokens.clone());
        }
        let Some(refresh) = &old.refresh else { return Ok(None) };
        let found = self.find(challenge).await?;
        // Tokens of the old issuer are useless after a change, and the new issuer must not see them.
        if found.server.issuer != old.bound.issuer || found.resource != old.bound.resource {
            self.lose().await?;
            return Ok(None);
        }
        let Some(client) = Client::of_token(&self.access, &found.server, &old.bound).await? else {
            self.lose().await?;
            return Ok(None);
        };
        let offer = Offer::Refresh(refresh.expose());
        let who = (&found.server, &client);
        let asked = endpoint::ask(&self.fetcher, who, offer, &old.scopes, old.bound.clone(), now_ms()).await;
        match asked {
            Ok(mut renewed) => {
                renewed.refresh = renewed.refresh.or_else(|| old.refresh.clone());
                Ok(Some(self.keep(renewed).await?))
            }
            Err(Refusal::Other(error)) => Err(error),
            Err(Refusal::Unknown) => {
                client::forget(&*self.access.keep, &old.bound).await?;
                self.lose().await?;
                Ok(None)
            }
            Err(Refusal::Worthless) => {
                self.lose().await?;
                Ok(None)
            }
        }
    }

    /// Obtains a token with the client credentials grant.
    pub(super) async fn let_ourselves_in(
        &self,
        challenge: &Challenge,
        shown: Option<&Tokens>,
    ) -> Result<(), Error> {
        let found = self.find(challenge).await?;
        let scopes = self.scopes(&found, challenge);
        let scopes = shown.map_or_else(|| scopes.clone(), |shown| union(&shown.scopes, &scopes));
        let client =
            Client::find(&self.access, &self.fetcher, &found.server, ("", &scopes), now_ms()).await?;
        let bound = Bound {
            issuer: found.server.issuer.clone(),
            client_id: client.id.clone(),
            resource: found.resource,
            redirect: String::new(),
        };
        let who = (&found.server, &client);
        let asked = endpoint::ask(&self.fetcher, who, Offer::Ourselves, &scopes, bound, now_ms()).await;
        let tokens = asked.map_err(|refusal| match refusal {
            Refusal::Other(error) => error,
            Refusal::Worthless | Refusal::Unknown => {
                let hint = format!("check `mcpServers.{}.auth`", self.name);
                self.fetcher.failed("its authorization server does not accept our client").hint(hint)
            }
        })?;
        self.keep(tokens).await?;
        Ok(())
    }

    pub(super) async fn find(&self, challenge: &Challenge) -> Result<Found, Error> {
        let told = challenge.resource_metadata.as_deref();
        discovery::find(&self.fetcher, told, self.access.issuer.as_deref()).await
    }

    /// Returns the scopes to request: the configured ones, else those of the challenge, else those of the metadata.
    pub(super) fn scopes(&self, found: &Found, challenge: &Challenge) -> Vec<String> {
        let more = self.state.lock().more.clone();
        if !self.access.scopes.is_empty() {
            return union(&self.access.scopes, &more);
        }
        let wanted = if challenge.scopes.is_empty() { &found.scopes } else { &challenge.scopes };
        let wanted = wanted.iter().filter(|scope| super::challenge::is_scope(scope)).cloned();
        let mut scopes = union(&more, &wanted.collect::<Vec<_>>());
        let lasting = "offline_access".to_owned();
        let can_last = self.access.grant == Grant::AuthorizationCode
            && found.server.scopes_supported.contains(&lasting)
            && !scopes.contains(&lasting);
        if can_last && !scopes.is_empty() {
            scopes.push(lasting);
        }
        scopes
    }

    /// Stores tokens, then uses them.
    pub(super) async fn keep(&self, tokens: Tokens) -> Result<Arc<Tokens>, Error> {
        self.access.keep.save(TOKENS, &tokens.sealed()).await?;
        let tokens = Arc::new(tokens);
        self.set(Some(Arc::clone(&tokens)));
        Ok(tokens)
    }

    /// Deletes invalid tokens.
    pub(super) async fn lose(&self) -> Result<(), Error> {
        self.set(None);
        self.access.keep.forget(TOKENS).await
    }

    async fn kept(&self) -> Result<Option<Tokens>, Error> {
        let kept = self.access.keep.load(TOKENS).await?;
        Ok(kept.and_then(|kept| Tokens::of(&kept, &self.fetcher.home)))
    }
}
