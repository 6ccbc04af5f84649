//! A login: a browser that somebody sits at. Its secret lies in a cookie; we keep a hash, and for how long it is good,
//! which grows as it is used.

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
/// The end is written anew when it has come nearer by so much: not with every look.
const STEP: Duration = Duration::from_secs(86_400);

#[derive(Clone, Debug)]
pub struct Login {
    pub user: Arc<User>,
    /// What the cookie holds.
    pub secret: Secret,
    /// When somebody last proved who they are at it. Milliseconds since 1970.
    pub since: u64,
}

impl Identity {
    /// Logs in a user who has proved who they are, unless they were locked out or removed meanwhile.
    pub async fn begin_login(&self, user: &Arc<User>) -> Result<Login, Error> {
        let login = self.put_login(user, Holder::User).await?;
        login.ok_or_else(|| {
            let error = Error::new(Kind::Authentication, "this user may not log in");
            error.hint("ask whoever runs this hikite")
        })
    }

    /// Logs in whom `log_in` let in by a password. Nothing if the user is not as they were when it was looked at: a
    /// password that was changed meanwhile opens nothing.
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

    /// Who a cookie belongs to.
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

    /// A user who may come in; another process may just have made it.
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

    /// What a form must bring back that was made for whoever holds this cookie.
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
