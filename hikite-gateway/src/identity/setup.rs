//! The one-time link that makes the owner: whoever can read where hikite was started is the one.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::OWNER;
use hikite_core::error::{Error, Kind};
use hikite_core::json::Raw;
use hikite_core::secret::Secret;
use hikite_store::Entry;

use super::user::{Role, User, is_name};
use super::{Identity, SETUP, hash, password, secret};
use crate::clock::now_ms;

const GOOD_FOR: Duration = Duration::from_secs(24 * 3600);

impl Identity {
    /// A new token for the link, in place of any before it. Nothing if there is an owner already.
    pub async fn make_setup_token(&self) -> Result<Option<Secret>, Error> {
        self.read_store().await?;
        if self.user_of(OWNER).is_some() {
            return Ok(None);
        }
        self.store.remove_entries(SETUP, "").await?;
        let (token, now) = (secret("")?, now_ms());
        let entry = Entry {
            kind: SETUP,
            id: hash(token.expose()),
            owner: String::new(),
            form: Raw::empty_object(),
            version: 0,
            created_at: now,
            expires_at: now + u64::try_from(GOOD_FOR.as_millis()).unwrap_or(u64::MAX),
        };
        self.store.put_entry(&entry).await?;
        Ok(Some(token))
    }

    /// Whether this is the token of a link that still makes somebody the owner.
    pub async fn is_setup_token(&self, token: &str) -> Result<bool, Error> {
        Ok(self.store.entry(SETUP, &hash(token), now_ms()).await?.is_some())
    }

    /// Makes the owner; the link is used up. What is wrong with name or password is told, and nothing is used up.
    pub async fn set_up(&self, token: &str, name: &str, password: &str) -> Result<Arc<User>, Error> {
        if !is_name(name) {
            let message = "the name must be up to 64 small letters, digits, `-`, `_`, `.` and `@`";
            return Err(Error::new(Kind::Validation, message));
        }
        if let Some(fault) = password::fault(password) {
            return Err(Error::new(Kind::Validation, fault));
        }
        if !self.is_setup_token(token).await? {
            return Err(used_up());
        }
        let user = User {
            name: name.into(),
            subject: OWNER.into(),
            role: Role::Owner,
            password: Some(self.hashed(&Secret::hidden(password)).await?),
            permissions: None,
            disabled: false,
            created_at: now_ms(),
        };
        if !self.store.exchange_entry((SETUP, &hash(token)), &[user.entry(0)]).await? {
            return Err(used_up());
        }
        let user = Arc::new(user);
        self.learn(|book| book.put_user(Arc::clone(&user))).await;
        Ok(user)
    }
}

fn used_up() -> Error {
    Error::new(Kind::Authorization, "this link is used up or too old")
        .hint("`hikite user setup-link` makes a new one")
}
