//! Owner check for new accounts. A user may be locked out or removed while the provider answers; then nothing is
//! stored.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::secret::Secret;
use hikite_store::OwnerCheck;

use super::AccountStore;
use super::account::Account;
use hikite_identity::{USER_ID, was_removed};
use hikite_store::clock::now_ms;

impl AccountStore {
    /// Returns the kind of owner that an account must still have when it is stored. Called before the provider is
    /// asked: a user of now must be a user then.
    pub(super) async fn holder(&self, subject: &str) -> Result<OwnerCheck, Error> {
        let store = self.secret_store.store();
        if subject.starts_with(USER_ID) || store.users().is_user(subject).await? {
            return Ok(OwnerCheck::User);
        }
        if was_removed(store, subject).await? { Err(owner_not_allowed()) } else { Ok(OwnerCheck::Anybody) }
    }

    /// Stores a secret and its account. Returns `true` if the account is new. The secret goes first, because an account
    /// without it would be unusable. Refused, and the secret removed, if the owner may no longer have the account.
    pub(super) async fn save_account(
        &self,
        account: &Account,
        (field, secret): (&str, &Secret),
        holder: OwnerCheck,
    ) -> Result<bool, Error> {
        let store = self.secret_store.store();
        // An account that passed to another user, or whose owner is locked out, gets no new secrets.
        if self.owner_of(account).await?.is_some_and(|owner| owner != *account.subject)
            || store.users().is_locked_out(&account.subject).await?
        {
            return Err(owner_not_allowed());
        }
        self.secret_store.set((&account.id, &account.provider, field), secret).await?;
        if store.accounts().put_owned(&account.row(), holder).await? {
            return Ok(true);
        }
        match self.owner_of(account).await? {
            Some(owner) if owner == *account.subject && !store.users().is_locked_out(&owner).await? => Ok(false),
            Some(_) => Err(owner_not_allowed()),
            None => {
                self.secret_store.remove(&account.id, None).await?;
                Err(owner_not_allowed())
            }
        }
    }

    async fn owner_of(&self, account: &Account) -> Result<Option<String>, Error> {
        let row = self.secret_store.store().accounts().get(&account.id, now_ms()).await?;
        Ok(row.map(|row| row.subject))
    }
}

fn owner_not_allowed() -> Error {
    Error::new(ErrorKind::Authorization, "This user is no longer allowed to connect accounts.")
        .hint("Ask the administrator of this server.")
}
