//! Login sessions of browsers. The secret is in a cookie; the store has its hash and an expiry that is extended by use.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::secret::Secret;
use hikite_store::clock::now_ms;
use hikite_store::{LoginRow, OwnerCheck};

use super::user::User;
use super::{Identity, hash, milliseconds, secret};

const LIFETIME: Duration = Duration::from_secs(14 * 86_400);
/// Age of the expiry at which it is written again, so that not every request writes.
const EXTEND_AFTER: Duration = Duration::from_secs(86_400);

#[derive(Clone, Debug)]
pub struct LoginSession {
    pub user: Arc<User>,
    /// Value of the cookie.
    pub secret: Secret,
    /// Time of the last authentication, in milliseconds since the Unix epoch.
    pub since: u64,
}

/// Logins of browsers, and the passwords that they begin with.
#[derive(Clone, Copy, Debug)]
pub struct LoginSessions<'a>(pub(super) &'a Identity);

impl LoginSessions<'_> {
    /// Starts a login for an authenticated user, unless they were locked out or removed meanwhile.
    pub async fn begin(self, user: &Arc<User>) -> Result<LoginSession, Error> {
        let login = self.put(user, OwnerCheck::User).await?;
        login.ok_or_else(|| {
            let error = Error::new(ErrorKind::Authentication, "This user is not allowed to log in.");
            error.hint("Ask the administrator of this server.")
        })
    }

    /// Starts a login for a user whom `log_in` accepted. Returns `None` if the user changed since: a password that was
    /// replaced meanwhile must not log in.
    pub async fn begin_by_password(self, user: &Arc<User>) -> Result<Option<LoginSession>, Error> {
        self.put(user, OwnerCheck::UserAtVersion(user.version)).await
    }

    async fn put(self, user: &Arc<User>, holder: OwnerCheck) -> Result<Option<LoginSession>, Error> {
        let (secret, now) = (secret("")?, now_ms());
        let login = LoginRow {
            id: hash(secret.expose()),
            subject: user.subject.to_string(),
            version: 0,
            created_at: now,
            expires_at: now + milliseconds(LIFETIME),
        };
        let done = self.0.store.logins().put_owned(&login, holder).await?;
        Ok(done.then(|| LoginSession { user: Arc::clone(user), secret, since: now }))
    }

    /// Returns the login of a cookie.
    pub async fn get(self, cookie: &str) -> Result<Option<LoginSession>, Error> {
        let now = now_ms();
        let Some(mut login) = self.0.store.logins().get(&hash(cookie), now).await? else { return Ok(None) };
        let Some(user) = self.active_user(&login.subject).await? else { return Ok(None) };
        if login.expires_at.saturating_sub(now) < milliseconds(LIFETIME) - milliseconds(EXTEND_AFTER) {
            login.expires_at = now + milliseconds(LIFETIME);
            self.0.store.logins().change(&login).await?;
        }
        Ok(Some(LoginSession { user, secret: Secret::hidden(cookie), since: login.created_at }))
    }

    /// Returns a user who may log in, reading the store if another process may just have created them.
    pub(super) async fn active_user(self, subject: &str) -> Result<Option<Arc<User>>, Error> {
        if self.0.users().of_subject(subject).is_none() {
            self.0.read_store().await?;
        }
        Ok(self.0.users().of_subject(subject).filter(|user| !user.disabled))
    }

    pub async fn end(self, cookie: &str) -> Result<(), Error> {
        self.0.store.logins().take(&hash(cookie), now_ms()).await?;
        Ok(())
    }

    /// Returns the CSRF token of forms for this cookie.
    pub async fn form_token(self, cookie: &str) -> Result<String, Error> {
        Ok(self.0.keys().current().await?.form.put(b"form", &[cookie.as_bytes()]))
    }

    pub async fn is_form_token(self, cookie: &str, token: &str) -> Result<bool, Error> {
        Ok(self.0.keys().current().await?.form.open(token, &[cookie.as_bytes()]).is_some())
    }
}
