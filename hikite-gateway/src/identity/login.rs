//! Login sessions of browsers. The secret is in a cookie; the store has its hash and an expiry that is extended by use.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use hikite_core::json::Raw;
use hikite_core::secret::Secret;
use hikite_store::{Entry, Holder};

use super::user::User;
use super::{Identity, LOGIN, hash, secret};
use crate::clock::now_ms;

const GOOD_FOR: Duration = Duration::from_secs(14 * 86_400);
/// Age of the expiry at which it is written again, so that not every request writes.
const STEP: Duration = Duration::from_secs(86_400);

#[derive(Clone, Debug)]
pub struct Login {
    pub user: Arc<User>,
    /// Value of the cookie.
    pub secret: Secret,
    /// Time of the last authentication, in milliseconds since the Unix epoch.
    pub since: u64,
}

impl Identity {
    /// Starts a login for an authenticated user, unless they were locked out or removed meanwhile.
    pub async fn begin_login(&self, user: &Arc<User>) -> Result<Login, Error> {
        let login = self.put_login(user, Holder::User).await?;
        login.ok_or_else(|| {
            let error = Error::new(Kind::Authentication, "this user may not log in");
            error.hint("ask whoever runs this hikite")
        })
    }

    /// Starts a login for a user whom `log_in` accepted. Returns `None` if the user changed since: a password that was
    /// replaced meanwhile must not log in.
    pub async fn begin_password_login(&self, user: &Arc<User>) -> Result<Option<Login>, Error> {
        self.put_login(user, Holder::UserIn(user.version)).await
    }

    async fn put_login(&self, user: &Arc<User>, holder: Holder) -> Result<Option<Login>, Error> {
        let (secret, now) = (secret("")?, now_ms());
        let entry = Entry {
            kind: LOGIN,
            id: hash(secret.expose()),
            owner: user.subject.to_string(),
            form: Raw::empty_object(),
            version: 0,
            created_at: now,
            expires_at: now + milliseconds(GOOD_FOR),
        };
        let done = self.store.put_entry_of(&entry, holder).await?;
        Ok(done.then(|| Login { user: Arc::clone(user), secret, since: now }))
    }

    /// Returns the login of a cookie.
    pub async fn login(&self, cookie: &str) -> Result<Option<Login>, Error> {
        let now = now_ms();
        let Some(mut entry) = self.store.entry(LOGIN, &hash(cookie), now).await? else { return Ok(None) };
        let Some(user) = self.active_user(&entry.owner).await? else { return Ok(None) };
        if entry.expires_at.saturating_sub(now) < milliseconds(GOOD_FOR) - milliseconds(STEP) {
            entry.expires_at = now + milliseconds(GOOD_FOR);
            self.store.change_entry(&entry).await?;
        }
        Ok(Some(Login { user, secret: Secret::hidden(cookie), since: entry.created_at }))
    }

    /// Returns a user who may log in, reading the store if another process may just have created them.
    pub(super) async fn active_user(&self, subject: &str) -> Result<Option<Arc<User>>, Error> {
        if self.user_of(subject).is_none() {
            self.read_store().await?;
        }
        Ok(self.user_of(subject).filter(|user| !user.disabled))
    }

    pub async fn end_login(&self, cookie: &str) -> Result<(), Error> {
        self.store.take_entry(LOGIN, &hash(cookie), now_ms()).await?;
        Ok(())
    }

    /// Returns the CSRF token of forms for this cookie.
    pub async fn form_token(&self, cookie: &str) -> Result<String, Error> {
        Ok(self.keys().await?.form.put(b"form", &[cookie.as_bytes()]))
    }

    pub async fn is_form_token(&self, cookie: &str, token: &str) -> Result<bool, Error> {
        Ok(self.keys().await?.form.open(token, &[cookie.as_bytes()]).is_some())
    }
}

pub(super) fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
