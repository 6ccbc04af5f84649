//! The owner of a new account: while a provider answers, its user may be locked out or removed. Then nothing is kept.

use hikite_core::error::{Error, Kind};
use hikite_core::secret::Secret;
use hikite_store::Holder;

use super::account::Account;
use super::{ACCOUNT, Accounts};
use crate::clock::now_ms;
use crate::identity::{USER_ID, was_removed};

impl Accounts {
    /// The owner that an account must still have when it is kept. Asked before the provider is: whoever is a user now must be
    /// one then.
    pub(super) async fn holder(&self, subject: &str) -> Result<Holder, Error> {
        let store = self.safe.store();
        if subject.starts_with(USER_ID) || store.is_user(subject).await? {
            return Ok(Holder::User);
        }
        if was_removed(store, subject).await? { Err(no_longer()) } else { Ok(Holder::Anybody) }
    }

    /// Keeps a secret and its account; whether the account is new. The secret first: an account without it could not be
    /// used. Refused is who may not have the account any more, and then the secret is not kept either.
    pub(super) async fn keep_account(
        &self,
        account: &Account,
        (field, secret): (&str, &Secret),
        holder: Holder,
    ) -> Result<bool, Error> {
        let store = self.safe.store();
        // What a successor has by now, or whoever is locked out, does not get other secrets.
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
