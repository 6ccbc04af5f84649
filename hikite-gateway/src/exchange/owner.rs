//! Owner check for new accounts. A user may be locked out or removed while the provider answers; then nothing is
//! stored.

use hikite_core::error::{Error, Kind};
use hikite_core::secret::Secret;
use hikite_store::Holder;

use super::account::Account;
use super::{ACCOUNT, Accounts};
use crate::clock::now_ms;
use crate::identity::{USER_ID, was_removed};

impl Accounts {
    /// Returns the kind of owner that an account must still have when it is stored. Called before the provider is
    /// asked: a user of now must be a user then.
    pub(super) async fn holder(&self, subject: &str) -> Result<Holder, Error> {
        let store = self.safe.store();
        if subject.starts_with(USER_ID) || store.is_user(subject).await? {
            return Ok(Holder::User);
        }
        if was_removed(store, subject).await? { Err(no_longer()) } else { Ok(Holder::Anybody) }
    }

    /// Stores a secret and its account. Returns `true` if the account is new. The secret goes first, because an account
    /// without it would be unusable. Refused, and the secret removed, if the owner may no longer have the account.
    pub(super) async fn keep_account(
        &self,
        account: &Account,
        (field, secret): (&str, &Secret),
        holder: Holder,
    ) -> Result<bool, Error> {
        let store = self.safe.store();
        // An account that passed to another user, or whose owner is locked out, gets no new secrets.
        if self.owner_of(account).await?.is_some_and(|owner| owner != *account.subject)
            || store.is_locked_out(&account.subject).await?
        {
            return Err(no_longer());
        }
        self.safe.set((&account.id, &account.provider, field), secret).await?;
        if store.put_entry_of(&account.entry(), holder).await? {
            return Ok(true);
        }
        match self.owner_of(account).await? {
            Some(owner) if owner == *account.subject && !store.is_locked_out(&owner).await? => Ok(false),
            Some(_) => Err(no_longer()),
            None => {
                self.safe.remove(&account.id, None).await?;
                Err(no_longer())
            }
        }
    }

    async fn owner_of(&self, account: &Account) -> Result<Option<String>, Error> {
        let entry = self.safe.store().entry(ACCOUNT, &account.id, now_ms()).await?;
        Ok(entry.map(|entry| entry.owner))
    }
}

fn no_longer() -> Error {
    Error::new(Kind::Authorization, "this user may no longer connect accounts")
        .hint("ask whoever runs this hikite")
}
