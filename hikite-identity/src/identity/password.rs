//! Password checks: hashed on blocking threads, few at a time, and equally slow for unknown names.

use std::sync::Arc;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::secret::Secret;
use hikite_vault::{Password, PasswordHash};

use super::LoginSessions;
use super::secret::failed;
use super::user::User;

const PASSWORD_CHARS_MIN: usize = 10;
/// Longest accepted password, because hashing more is only work for us.
const PASSWORD_CHARS_MAX: usize = 1000;

/// Returns the fault of a new password, if any.
pub(super) fn fault(password: &str) -> Option<&'static str> {
    match password.chars().count() {
        0..PASSWORD_CHARS_MIN => Some("The password must have 10 characters or more."),
        PASSWORD_CHARS_MIN..=PASSWORD_CHARS_MAX => None,
        _ => Some("The password is too long."),
    }
}

impl LoginSessions<'_> {
    /// Returns the user of this name, if the password is right and they are not locked out.
    pub async fn log_in(self, name: &str, password: &str) -> Result<Option<Arc<User>>, Error> {
        let row = self.0.store.users().get(name).await?.filter(|row| row.name == name);
        let user = row.as_ref().and_then(User::of);
        let kept = user.as_ref().and_then(|user| user.password.clone());
        let (kept, is_known) = (kept.clone().unwrap_or_else(PasswordHash::unmatchable), kept.is_some());
        let typed: String = password.chars().take(PASSWORD_CHARS_MAX).collect();
        let is_right = self.hash_blocking(move || Password::new(typed).matches(&kept)).await?;
        Ok(user.filter(|user| is_right && is_known && !user.disabled).map(Arc::new))
    }

    pub(super) async fn hashed(self, password: &Secret) -> Result<PasswordHash, Error> {
        let password = Password::new(password.expose());
        self.hash_blocking(move || password.hash()).await?.map_err(failed)
    }

    /// Runs hashing work on a blocking thread, with limited concurrency.
    async fn hash_blocking<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let broken = |_| Error::new(ErrorKind::Internal, "A password could not be checked.");
        let permit = Arc::clone(&self.0.hashing).acquire_owned().await;
        let permit = permit.map_err(|_| {
            Error::new(ErrorKind::Internal, "Passwords are no longer checked because hikite is shutting down.")
        })?;
        let work = move || {
            let done = work();
            drop(permit);
            done
        };
        tokio::task::spawn_blocking(work).await.map_err(broken)
    }
}
