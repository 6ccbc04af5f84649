//! Verifies the credential of an account with its vendor: once when it is connected, and on request. An account counts
//! as connected only after its vendor accepted the credential.

use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::credential::{Credential, CredentialVerdict};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::source::CallContext;

use super::account::{Account, AccountStatus, time};
use super::token::AccountTokens;
use super::{AccountCredentials, DEFAULT, FROM_FILE};
use hikite_store::clock::now_ms;

/// Verification state of an account of the config.
#[derive(Clone, Debug)]
pub(super) struct ConfiguredStatus {
    status: AccountStatus,
    problem: Option<String>,
    at: u64,
}

impl ConfiguredStatus {
    pub(super) fn object(&self) -> hikite_api::Account {
        hikite_api::Account {
            state: self.status.word().to_owned(),
            problem: self.problem.clone(),
            verified_at: time(self.at),
            ..hikite_api::Account::default()
        }
    }
}

impl AccountCredentials<'_> {
    /// Verifies an account before it is stored. A refusal is an error with the vendor's message.
    pub(super) async fn verify_new(self, account: &mut Account, tokens: &AccountTokens) -> Result<(), Error> {
        let proof = self.proof(account, tokens).await;
        if let CredentialVerdict::Refused(words) = &proof {
            let title = self
                .0
                .providers()
                .get(&account.provider)
                .map_or_else(|| format!("`{}`", account.provider), |provider| provider.title);
            return Err(Error::new(ErrorKind::Validation, format!("{title} rejected the credential: {words}")).hint(
                "Nothing was saved. Create a new credential at the service, paste it completely, and grant the \
                 requested access.",
            ));
        }
        account.status = AccountStatus::Unverified;
        note(account, &proof);
        Ok(())
    }

    /// Verifies a stored account and records the result.
    pub async fn verify(self, account: &Arc<Account>) -> Result<Arc<Account>, Error> {
        let proof = match self.fresh(account, None).await {
            Ok(tokens) => match self.proof(account, &tokens).await {
                // The token may have been revoked early, and a newer one may exist.
                CredentialVerdict::Refused(words) => {
                    match self.fresh(account, Some(&tokens.credential(account).secret)).await {
                        Ok(newer) => self.proof(account, &newer).await,
                        Err(error) if error.kind == ErrorKind::AccountRequired => CredentialVerdict::Refused(words),
                        Err(error) => CredentialVerdict::Unclear(error.message.into()),
                    }
                }
                proof => proof,
            },
            Err(error) if error.kind == ErrorKind::AccountRequired => CredentialVerdict::Refused(error.message.into()),
            Err(error) => CredentialVerdict::Unclear(error.message.into()),
        };
        self.0.update_account(account, |account| note(account, &proof)).await;
        self.0.read_store().await?;
        self.0.known.load().by_id(&account.id).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "The account was removed in the meantime.").hint("List the accounts again.")
        })
    }

    /// Verifies the account of the config with a provider. Its `id` is `file:PROVIDER`.
    pub async fn verify_configured(self, id: &str) -> Result<hikite_api::Account, Error> {
        let provider = id.strip_prefix(FROM_FILE).and_then(|rest| rest.strip_prefix(':'));
        let provider = provider.filter(|provider| self.0.settings.load().from_file.contains_key(*provider));
        let provider = provider.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("There is no account `{id}`."))
                .hint("Run `hikite account list` to see all accounts.")
        })?;
        let proof = match self.0.configured.credential(provider, &CallContext::unattended()).await {
            Ok(Some(credential)) => self.0.verifier.verify(provider, credential).await,
            Ok(None) => CredentialVerdict::Refused("The config has no token for it.".into()),
            Err(error) => CredentialVerdict::Refused(error.message.into()),
        };
        let mut known = self.configured_state(provider);
        judge(&mut known.status, &mut known.problem, &mut known.at, &proof);
        self.0.configured_states.lock().insert(provider.to_owned(), known);
        let id = format!("{FROM_FILE}:{provider}");
        let found = self.0.objects(&Caller::owner(), false).into_iter().find(|account| account.id == id);
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("There is no account `{DEFAULT}`.")))
    }

    pub(super) fn configured_state(self, provider: &str) -> ConfiguredStatus {
        let known = self.0.configured_states.lock().get(provider).cloned();
        known.unwrap_or(ConfiguredStatus { status: AccountStatus::Unverified, problem: None, at: 0 })
    }

    /// Marks an unverified account as connected after a successful call.
    pub(super) fn mark_accepted(self, provider: &str, credential: &Credential) {
        if &*credential.account == FROM_FILE {
            let mut configured_states = self.0.configured_states.lock();
            if configured_states.get(provider).is_none_or(|known| known.status != AccountStatus::Connected) {
                let known = ConfiguredStatus { status: AccountStatus::Connected, problem: None, at: now_ms() };
                configured_states.insert(provider.to_owned(), known);
            }
            return;
        }
        let known = self.0.known.load().by_id(&credential.account);
        let Some(account) = known.filter(|account| account.status == AccountStatus::Unverified) else {
            return;
        };
        let Some(me) = self.0.me.upgrade() else { return };
        self.0.tasks.spawn(async move {
            me.update_account(&account, |account| {
                if account.status == AccountStatus::Unverified {
                    note(account, &CredentialVerdict::Accepted);
                }
            })
            .await;
        });
    }

    async fn proof(self, account: &Account, tokens: &AccountTokens) -> CredentialVerdict {
        let credential = Arc::new(self.build_credential(account, tokens));
        self.0.verifier.verify(&account.provider, credential).await
    }
}

fn note(account: &mut Account, proof: &CredentialVerdict) {
    judge(&mut account.status, &mut account.problem, &mut account.verified_at, proof);
}

/// Updates the state. A verified credential stays verified while its vendor is unreachable.
fn judge(status: &mut AccountStatus, problem: &mut Option<String>, at: &mut u64, proof: &CredentialVerdict) {
    match proof {
        CredentialVerdict::Accepted => (*status, *problem, *at) = (AccountStatus::Connected, None, now_ms()),
        CredentialVerdict::Refused(words) => {
            (*status, *problem) = (AccountStatus::Reconnect, Some(words.clone()));
        }
        CredentialVerdict::Unclear(words) => *problem = Some(words.clone()),
        CredentialVerdict::Unsupported => *problem = None,
    }
}
