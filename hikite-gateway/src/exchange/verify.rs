//! Verifies the credential of an account with its vendor: once when it is connected, and on request. An account counts
//! as connected only after its vendor accepted the credential.

use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::credential::{Credential, Proof};
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;
use hikite_core::time::rfc3339;

use super::account::{Account, Standing};
use super::token::Tokens;
use super::{Accounts, DEFAULT, OF_THE_FILE};
use crate::clock::now_ms;

/// Verification state of an account of the config.
#[derive(Clone, Debug)]
pub(super) struct Verified {
    standing: Standing,
    problem: Option<String>,
    at: u64,
}

impl Verified {
    pub(super) fn shown_in(&self, object: Object) -> Object {
        object
            .with("state", self.standing.word())
            .with("problem", self.problem.as_deref().map_or_else(Raw::null, Raw::from))
            .with("verifiedAt", if self.at == 0 { Raw::null() } else { rfc3339(self.at).into() })
    }
}

impl Accounts {
    /// Verifies an account before it is stored. A refusal is an error with the vendor's message.
    pub(super) async fn prove_new(&self, account: &mut Account, tokens: &Tokens) -> Result<(), Error> {
        let proof = self.proof(account, tokens).await;
        if let Proof::Refused(words) = &proof {
            let title = self
                .provider(&account.provider)
                .map_or_else(|| format!("`{}`", account.provider), |provider| provider.title);
            return Err(Error::new(Kind::Validation, format!("{title} refuses the credential: {words}"))
                .hint("nothing was kept; make a new one at the service, give it whole, and allow what is asked for"));
        }
        account.standing = Standing::Unverified;
        note(account, &proof);
        Ok(())
    }

    /// Verifies a stored account and records the result.
    pub async fn verify(&self, account: &Arc<Account>) -> Result<Arc<Account>, Error> {
        let proof = match self.fresh(account, None).await {
            Ok(tokens) => match self.proof(account, &tokens).await {
                // The token may have been revoked early, and a newer one may exist.
                Proof::Refused(words) => {
                    match self.fresh(account, Some(&tokens.credential(account).secret)).await {
                        Ok(newer) => self.proof(account, &newer).await,
                        Err(error) if error.kind == Kind::AccountRequired => Proof::Refused(words),
                        Err(error) => Proof::Unclear(error.message.into()),
                    }
                }
                proof => proof,
            },
            Err(error) if error.kind == Kind::AccountRequired => Proof::Refused(error.message.into()),
            Err(error) => Proof::Unclear(error.message.into()),
        };
        self.mark(account, |account| note(account, &proof)).await;
        self.read_store().await?;
        self.known.load().by_id(&account.id).ok_or_else(|| {
            Error::new(Kind::NotFound, "the account was removed meanwhile").hint("list the accounts again")
        })
    }

    /// Verifies the account of the config with a provider. Its `id` is `file:PROVIDER`.
    pub async fn verify_filed(&self, id: &str) -> Result<Raw, Error> {
        let provider = id.strip_prefix(OF_THE_FILE).and_then(|rest| rest.strip_prefix(':'));
        let provider = provider.filter(|provider| self.settings.load().of_the_file.contains_key(*provider));
        let provider = provider.ok_or_else(|| {
            Error::new(Kind::NotFound, format!("there is no account `{id}`"))
                .hint("`hikite account list` names those there are")
        })?;
        let proof = match self.configured.credential(provider, &CallContext::unattended()).await {
            Ok(Some(credential)) => self.verifier.verify(provider, credential).await,
            Ok(None) => Proof::Refused("the config has no token for it".into()),
            Err(error) => Proof::Refused(error.message.into()),
        };
        let mut known = self.filed_state(provider);
        judge(&mut known.standing, &mut known.problem, &mut known.at, &proof);
        self.filed.lock().insert(provider.to_owned(), known);
        let id = format!("{OF_THE_FILE}:{provider}");
        let found = self.objects(&Caller::owner(), false).into_iter().find(|object| {
            object.object().and_then(|object| object.text("id")).as_deref() == Some(id.as_str())
        });
        found.ok_or_else(|| Error::new(Kind::NotFound, format!("there is no account `{DEFAULT}`")))
    }

    pub(super) fn filed_state(&self, provider: &str) -> Verified {
        let known = self.filed.lock().get(provider).cloned();
        known.unwrap_or(Verified { standing: Standing::Unverified, problem: None, at: 0 })
    }

    /// Marks an unverified account as connected after a successful call.
    pub(super) fn saw_accepted(&self, provider: &str, credential: &Credential) {
        if &*credential.account == OF_THE_FILE {
            let mut filed = self.filed.lock();
            if filed.get(provider).is_none_or(|known| known.standing != Standing::Connected) {
                let known = Verified { standing: Standing::Connected, problem: None, at: now_ms() };
                filed.insert(provider.to_owned(), known);
            }
            return;
        }
        let known = self.known.load().by_id(&credential.account);
        let Some(account) = known.filter(|account| account.standing == Standing::Unverified) else { return };
        let Some(me) = self.me.upgrade() else { return };
        self.tasks.spawn(async move {
            me.mark(&account, |account| {
                if account.standing == Standing::Unverified {
                    note(account, &Proof::Accepted);
                }
            })
            .await;
        });
    }

    async fn proof(&self, account: &Account, tokens: &Tokens) -> Proof {
        let credential = Arc::new(self.shown_as(account, tokens));
        self.verifier.verify(&account.provider, credential).await
    }
}

fn note(account: &mut Account, proof: &Proof) {
    judge(&mut account.standing, &mut account.problem, &mut account.verified_at, proof);
}

/// Updates the state. A verified credential stays verified while its vendor is unreachable.
fn judge(standing: &mut Standing, problem: &mut Option<String>, at: &mut u64, proof: &Proof) {
    match proof {
        Proof::Accepted => (*standing, *problem, *at) = (Standing::Connected, None, now_ms()),
        Proof::Refused(words) => (*standing, *problem) = (Standing::Reconnect, Some(words.clone())),
        Proof::Unclear(words) => *problem = Some(words.clone()),
        Proof::NoProbe => *problem = None,
    }
}
