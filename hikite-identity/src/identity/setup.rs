//! One-time setup link that creates the owner. Whoever can read the output of the starting process may use it.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::OWNER;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::secret::Secret;
use hikite_store::DocumentRow;
use hikite_store::clock::now_ms;

use super::secret::id;
use super::user::{ID as USER_ID, Role, User, UserRegistry, is_name};
use super::{SETUP, hash, milliseconds, password, secret};

const LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Id of the one document with all links, so that only one of them can be used.
const ALL: &str = "owner";
/// Number of links valid at the same time.
const LINKS_MAX: usize = 5;

impl UserRegistry<'_> {
    /// Creates a token for a setup link, in addition to those of other processes or in place of them. Returns `None` if
    /// there is an owner already.
    pub async fn make_setup_token(self, alone: bool) -> Result<Option<Secret>, Error> {
        let token = secret("")?;
        loop {
            self.0.read_store().await?;
            if self.has_owner().await? {
                return Ok(None);
            }
            let now = self.0.store.clock().now_ms().await?;
            let before = self.0.store.documents().get(SETUP, ALL, now).await?;
            let mut hashes = before.as_ref().filter(|_| !alone).map(hashes).unwrap_or_default();
            hashes.truncate(LINKS_MAX - 1);
            hashes.insert(0, hash(token.expose()));
            let entry = DocumentRow {
                kind: SETUP,
                id: ALL.into(),
                owner: String::new(),
                document: Raw::of(&hashes),
                version: before.as_ref().map_or(0, |entry| entry.version),
                created_at: now,
                expires_at: now + milliseconds(LIFETIME),
            };
            let done = match before {
                Some(_) => self.0.store.documents().change(&entry).await?,
                None => {
                    self.0.store.delete_expired(now).await?;
                    self.0.store.documents().put(&entry).await?
                }
            };
            if done {
                return Ok(Some(token));
            }
        }
    }

    /// Returns `true` if there is an owner, even one whose row is unreadable.
    async fn has_owner(self) -> Result<bool, Error> {
        Ok(self.0.store.users().all().await?.iter().any(|row| row.role == Role::Owner.name()))
    }

    /// Returns `true` if this is the token of a valid setup link.
    pub async fn is_setup_token(self, token: &str) -> Result<bool, Error> {
        let entry = self.0.store.documents().get(SETUP, ALL, now_ms()).await?;
        Ok(entry.is_some_and(|entry| hashes(&entry).contains(&hash(token))))
    }

    /// Creates the owner and consumes the link. An invalid name or password consumes nothing.
    pub async fn set_up(self, token: &str, name: &str, password: &str) -> Result<Arc<User>, Error> {
        if !is_name(name) {
            let message =
                "The name may contain lowercase letters, digits, `-`, `_`, `.` and `@`, and at most 64 characters.";
            return Err(Error::new(ErrorKind::Validation, message));
        }
        if let Some(fault) = password::fault(password) {
            return Err(Error::new(ErrorKind::Validation, fault));
        }
        self.0.read_store().await?;
        if !self.is_setup_token(token).await? || self.has_owner().await? {
            return Err(link_invalid());
        }
        let user = User {
            id: id(USER_ID)?.into(),
            name: name.into(),
            // Accounts connected with the local token before there was an owner belong to the owner.
            subject: OWNER.into(),
            role: Role::Owner,
            password: Some(self.0.logins().hashed(&Secret::hidden(password)).await?),
            permissions: None,
            disabled: false,
            project: None,
            created_at: now_ms(),
            version: 1,
        };
        if !self.0.store.users().put(&user.row(), Some((SETUP, ALL))).await? {
            return Err(link_invalid());
        }
        let user = Arc::new(user);
        self.0.update_snapshot(|snapshot| snapshot.put_user(Arc::clone(&user))).await;
        Ok(user)
    }
}

fn hashes(entry: &DocumentRow) -> Vec<String> {
    entry.document.decode().unwrap_or_default()
}

fn link_invalid() -> Error {
    Error::new(ErrorKind::Authorization, "This link was already used or has expired.")
        .hint("Create a new one with `hikite user setup-link`.")
}
