//! Users who log in with somebody else. Who they are is what the issuer calls them, never a name or an address: the
//! subject holds both the issuer and its number, so that nobody becomes somebody who was here before.

use std::sync::Arc;

use hikite_core::caller::OWNER;
use hikite_core::error::{Error, Kind};

use super::Identity;
use super::secret::id;
use super::user::{ID as USER_ID, Role, User, is_name};
use crate::clock::now_ms;
use crate::federation::Stranger;

const NAME_CHARS: usize = 60;
/// So many names are tried.
const TRIES: usize = 50;

impl Identity {
    /// The user that a stranger is, made when they come for the first time.
    pub async fn user_of_stranger(&self, stranger: &Stranger) -> Result<Arc<User>, Error> {
        let subject = format!("{}#{}", stranger.issuer, stranger.subject);
        for name in names(stranger) {
            if let Some(user) = self.known(&subject).await? {
                return Ok(user);
            }
            self.check_not_removed(&subject).await?;
            let user = User {
                id: id(USER_ID)?.into(),
                name: name.as_str().into(),
                subject: subject.as_str().into(),
                role: if stranger.role == "admin" { Role::Admin } else { Role::Member },
                password: None,
                permissions: None,
                disabled: false,
                project: None,
                created_at: now_ms(),
                version: 1,
            };
            if self.store.put_user(&user.row(), None).await? {
                let user = Arc::new(user);
                let known = Arc::clone(&user);
                self.learn(|book| book.put_user(known)).await;
                tracing::info!(user = &*user.name, "somebody logged in for the first time");
                return Ok(user);
            }
        }
        Err(Error::new(Kind::Conflict, "there is no name left for this account"))
    }

    async fn known(&self, subject: &str) -> Result<Option<Arc<User>>, Error> {
        let rows = self.store.users().await?;
        let user = rows.iter().find(|row| row.subject == subject).and_then(User::of);
        match user {
            Some(user) if user.disabled => {
                let error = Error::new(Kind::Authorization, "this account may not log in here");
                Err(error.hint("ask whoever runs this hikite"))
            }
            user => Ok(user.map(Arc::new)),
        }
    }
}

/// What they may be called: what the issuer says first, then the same with a number.
fn names(stranger: &Stranger) -> Vec<String> {
    let names: Vec<String> = stranger
        .names
        .iter()
        .map(|name| plain(name))
        .filter(|name| is_name(name) && name != OWNER && !name.starts_with(USER_ID))
        .collect();
    let numbered = |name: &String| (2..10).map(move |number| format!("{name}-{number}")).collect::<Vec<_>>();
    let all = names.iter().cloned().chain(names.iter().flat_map(numbered));
    all.take(TRIES).collect()
}

fn plain(name: &str) -> String {
    let fine = |c: char| c.is_lowercase() || c.is_numeric() || matches!(c, '-' | '_' | '.' | '@');
    let name: String =
        name.to_lowercase().chars().map(|c| if fine(c) { c } else { '-' }).take(NAME_CHARS).collect();
    name.trim_matches(|c: char| !c.is_alphanumeric()).to_owned()
}
