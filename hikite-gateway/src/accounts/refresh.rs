//! Token refresh. A token is renewed before it expires: once for all waiters in this process, by one process at a time,
//! and the new tokens are in the secret store before anybody uses them. The old refresh token stays there until then,
//! so that an interruption loses nothing that the provider would still accept.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::secret::Secret;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::account::{Account, AccountStatus};
use super::token::{AccountTokens, TokenOutcome, failed};
use super::{AccountStore, CachedAccountTokens, OAUTH, TOKEN};
use hikite_store::clock::now_ms;

type TokensResult = Result<Arc<AccountTokens>, Error>;
/// One refresh, shared by all who wait for it.
pub(super) type SharedRefresh = Shared<BoxFuture<'static, TokensResult>>;

/// Attempts per request; the tokens may change twice while it waits.
const ATTEMPTS_MAX: usize = 3;
/// Longest wait for a new token while the current one is still valid.
const VALID_TOKEN_WAIT_MAX: Duration = Duration::from_secs(2);
/// Shortest time to wait for another process that renews the token.
const LEASE_WAIT_MIN: Duration = Duration::from_secs(10);

/// Valid credentials of accounts: chosen for a call, renewed and verified.
#[derive(Clone, Copy, Debug)]
pub struct AccountCredentials<'a>(pub(super) &'a AccountStore);

impl AccountCredentials<'_> {
    /// Returns tokens that are valid now and not the refused one.
    pub(super) async fn fresh(self, account: &Arc<Account>, refused: Option<&Secret>) -> TokensResult {
        let plain = refused.map(|refused| token_part(account, refused));
        for _ in 0..ATTEMPTS_MAX {
            let tokens = self.current(account).await?;
            if tokens.serves(now_ms(), plain.as_ref()) {
                return Ok(tokens);
            }
            if tokens.refresh.is_none() {
                // A manual token is used until it is refused; it may have been replaced meanwhile.
                let again = self.load(account).await?;
                if again.serves(now_ms(), plain.as_ref()) {
                    return Ok(again);
                }
                self.0.update_account(account, |account| account.status = AccountStatus::Reconnect).await;
                return Err(over(account));
            }
            if tokens.over.is_some() {
                // The account may have been connected again in another process.
                if self.load(account).await?.over.is_some() {
                    return Err(over(account));
                }
                continue;
            }
            let shared_refresh = self.shared_refresh(account, Arc::clone(&tokens));
            let renewed = if plain.is_none() && tokens.lives(now_ms()) {
                // A valid token stays in use while a failing provider is retried.
                tokio::time::timeout(VALID_TOKEN_WAIT_MAX, shared_refresh)
                    .await
                    .unwrap_or_else(|_| Ok(Arc::clone(&tokens)))
            } else {
                shared_refresh.await
            };
            match renewed {
                Ok(same) if Arc::ptr_eq(&same, &tokens) && plain.is_none() => return Ok(same),
                Ok(tokens) if tokens.serves(now_ms(), plain.as_ref()) => return Ok(tokens),
                Ok(_) => {}
                // The token has not expired yet, so it is still usable.
                Err(error) if error.kind != ErrorKind::AccountRequired && plain.is_none() => {
                    return if tokens.lives(now_ms()) { Ok(tokens) } else { Err(error) };
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(ErrorKind::UpstreamUnavailable, "The account's tokens expire as soon as they are issued."))
    }

    /// Returns the cached tokens, else those in the secret store.
    async fn current(self, account: &Arc<Account>) -> TokensResult {
        let held = self.0.held.lock().get(&account.id).cloned();
        match held.filter(|held| held.version == account.version) {
            Some(held) => Ok(held.tokens),
            None => self.load(account).await,
        }
    }

    async fn load(self, account: &Arc<Account>) -> TokensResult {
        let (id, provider) = (&*account.id, &*account.provider);
        let tokens = match self.0.secret_store.get(id, provider, OAUTH).await? {
            Some(kept) => AccountTokens::read(&kept.secret, kept.version),
            None => {
                let kept = self.0.secret_store.get(id, provider, TOKEN).await?;
                kept.map(|kept| AccountTokens::fixed(kept.secret, kept.version))
            }
        };
        let tokens = Arc::new(tokens.ok_or_else(|| over(account))?);
        self.cache(account, &tokens);
        Ok(tokens)
    }

    fn cache(self, account: &Account, tokens: &Arc<AccountTokens>) {
        let held = CachedAccountTokens { version: account.version, tokens: Arc::clone(tokens) };
        self.0.held.lock().insert(Arc::clone(&account.id), held);
    }

    /// Joins or starts the refresh of this account. It continues even if all waiters are dropped.
    fn shared_refresh(self, account: &Arc<Account>, bad: Arc<AccountTokens>) -> SharedRefresh {
        let mut refreshes = self.0.refreshes.lock();
        if let Some(shared_refresh) = refreshes.get(&account.id) {
            return shared_refresh.clone();
        }
        let (tell, told) = oneshot::channel();
        let shared_refresh = async move { told.await.unwrap_or_else(|_| Err(stopping())) }.boxed().shared();
        if let Some(me) = self.0.me.upgrade() {
            refreshes.insert(Arc::clone(&account.id), shared_refresh.clone());
            let account = Arc::clone(account);
            self.0.tasks.spawn(async move {
                let outcome = me.credentials().renew(&account, &bad).await;
                me.refreshes.lock().remove(&account.id);
                let _ = tell.send(outcome);
            });
        }
        shared_refresh
    }

    /// Waits for the lease and asks the provider, unless another process has renewed the token meanwhile.
    async fn renew(self, account: &Arc<Account>, bad: &AccountTokens) -> TokensResult {
        let name = format!("refresh:{}", account.id);
        let give_up_at = Instant::now() + (self.0.timing.lease * 2).max(LEASE_WAIT_MIN);
        loop {
            let lease = self.0.secret_store.store().leases().take(&name, &self.0.holder, self.0.timing.lease).await?;
            let current = self.load(account).await?;
            if current.access != bad.access || lease.is_some() {
                let outcome = match &lease {
                    Some(_) if current.access == bad.access => self.ask(account, current).await,
                    _ => Ok(current),
                };
                if let Some(lease) = lease {
                    self.0.secret_store.store().leases().release(&lease).await?;
                }
                return outcome;
            }
            if Instant::now() > give_up_at {
                return Err(Error::new(
                    ErrorKind::Overloaded,
                    "Another process is still refreshing the account's token.",
                ));
            }
            tokio::time::sleep(self.0.timing.poll_interval).await;
        }
    }

    async fn ask(self, account: &Arc<Account>, current: Arc<AccountTokens>) -> TokensResult {
        let (provider, app) = self.0.providers().connectable(&account.provider).await?;
        let Some(refresh) = current.refresh.clone().filter(|_| current.over.is_none()) else {
            return Err(over(account));
        };
        // The compare-and-swap decides which process asks; a late one finds another version.
        let begun = AccountTokens { attempt: Some(now_ms()), ..AccountTokens::clone(&current) };
        let at = (&*account.id, &*account.provider, OAUTH);
        if !self.0.secret_store.put(at, current.version, &begun.text()).await? {
            return self.load(account).await;
        }
        if current.attempt.is_some() {
            tracing::warn!(account = %account.id, provider = %account.provider, "an earlier token refresh has no recorded result; retrying with its token");
        }
        let mut form =
            vec![("grant_type".to_owned(), Secret::hidden("refresh_token")), ("refresh_token".to_owned(), refresh)];
        if provider.repeats_scopes {
            form.push(("scope".to_owned(), Secret::hidden(provider.scopes.join(" "))));
        }
        let request = provider.request(&app, form);
        match self.send_token_request(&provider, request, Some(&current)).await? {
            TokenOutcome::Tokens(tokens, more) => {
                let tokens = self.store_tokens(account, (&current, begun.version_after()), tokens).await?;
                self.0
                    .update_account(account, |account| {
                        if account.status == AccountStatus::Reconnect {
                            account.status = AccountStatus::Connected;
                        }
                        (account.expires_at, account.last_refresh) = (tokens.expires_at, tokens.got_at);
                        account.scopes = more.scopes.clone().unwrap_or_else(|| account.scopes.clone());
                    })
                    .await;
                Ok(tokens)
            }
            TokenOutcome::GrantEnded => {
                // Another process may have used the refresh token first; its result is in the store.
                let now = self.load(account).await?;
                if now.access != current.access {
                    return Ok(now);
                }
                tracing::warn!(account = %account.id, provider = %account.provider, "the account has to be connected again");
                // Recorded with the token itself, so that no process uses it again.
                let over_now = AccountTokens { over: Some(now_ms()), attempt: None, ..AccountTokens::clone(&current) };
                self.store_tokens(account, (&current, begun.version_after()), over_now).await?;
                self.0.update_account(account, |account| account.status = AccountStatus::Reconnect).await;
                Err(over(account))
            }
            said => Err(failed(&provider.title, said)),
        }
    }

    /// Stores new tokens over attempts started meanwhile, but never over other new tokens.
    async fn store_tokens(
        self,
        account: &Arc<Account>,
        (old, mut after): (&AccountTokens, u64),
        tokens: AccountTokens,
    ) -> TokensResult {
        let at = (&*account.id, &*account.provider, OAUTH);
        let text = tokens.text();
        loop {
            if self.0.secret_store.put(at, after, &text).await? {
                let tokens = Arc::new(AccountTokens { version: after + 1, ..tokens });
                self.cache(account, &tokens);
                return Ok(tokens);
            }
            let now = self.load(account).await?;
            if now.access != old.access {
                return Ok(now);
            }
            after = now.version;
        }
    }
}

impl AccountStore {
    /// Changes the stored account, with retries on conflict. Failures are logged only, because no call depends on it.
    pub(super) async fn update_account(&self, account: &Account, change: impl Fn(&mut Account)) {
        let store = self.secret_store.store();
        let outcome = async {
            loop {
                let Some(row) = store.accounts().get(&account.id, now_ms()).await? else { return Ok(()) };
                let mut now = Account::of(&row);
                change(&mut now);
                if store.accounts().change(&now.row()).await? {
                    return self.read_store().await;
                }
            }
        };
        if let Err::<(), Error>(error) = outcome.await {
            tracing::warn!(account = %account.id, %error, "failed to store the state of the account");
        }
    }
}

impl AccountTokens {
    /// Returns the version of the record stored after this one was read.
    fn version_after(&self) -> u64 {
        self.version + 1
    }
}

/// Extracts the token of a credential, which may be the password part of a user-token pair.
fn token_part(account: &Account, refused: &Secret) -> Secret {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    let Some(email) = &account.email else { return refused.clone() };
    let pair = BASE64_STANDARD.decode(refused.expose()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let token = pair.as_deref().and_then(|pair| pair.strip_prefix(email.as_str())?.strip_prefix(':'));
    token.map_or_else(|| refused.clone(), Secret::hidden)
}

fn over(account: &Account) -> Error {
    let message = format!(
        "The account `{}` with `{}` has to be connected again because its token is no longer accepted.",
        account.name, account.provider
    );
    Error::new(ErrorKind::AccountRequired, message)
        .hint(format!("The user runs `hikite account connect {}`.", account.provider))
}

fn stopping() -> Error {
    Error::new(ErrorKind::Overloaded, "hikite is shutting down.")
}
