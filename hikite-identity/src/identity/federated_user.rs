//! Federated users. The issuer's subject identifies them, never a name or an email address: our subject contains the
//! issuer and its `sub`, so that nobody becomes an earlier user.

use std::sync::Arc;

use hikite_core::caller::OWNER;
use hikite_core::error::{Error, ErrorKind};
use hikite_store::clock::now_ms;

use super::secret::id;
use super::user::{ID as USER_ID, Role, User, UserRegistry, is_name};
use crate::federation::FederatedIdentity;

const NAME_CHARS: usize = 60;
/// Number of user names tried.
const NAME_CANDIDATES_MAX: usize = 50;

impl UserRegistry<'_> {
    /// Returns the user for a federated identity, created on the first login.
    pub async fn of_federated_identity(self, identity: &FederatedIdentity) -> Result<Arc<User>, Error> {
        let subject = format!("{}#{}", identity.issuer, identity.subject);
        for name in names(identity) {
            if let Some(user) = self.known(&subject).await? {
                return Ok(user);
            }
            self.check_not_removed(&subject).await?;
            let user = User {
                id: id(USER_ID)?.into(),
                name: name.as_str().into(),
                subject: subject.as_str().into(),
                role: if identity.role == "admin" { Role::Admin } else { Role::Member },
                password: None,
                permissions: None,
                disabled: false,
                project: None,
                created_at: now_ms(),
                version: 1,
            };
            if self.0.store.users().put(&user.row(), None).await? {
                let user = Arc::new(user);
                let known = Arc::clone(&user);
                self.0.update_snapshot(|snapshot| snapshot.put_user(known)).await;
                tracing::info!(user = &*user.name, "a user logged in for the first time");
                return Ok(user);
            }
        }
        Err(Error::new(ErrorKind::Conflict, "No user name is available for this account."))
    }

    async fn known(self, subject: &str) -> Result<Option<Arc<User>>, Error> {
        let rows = self.0.store.users().all().await?;
        let user = rows.iter().find(|row| row.subject == subject).and_then(User::of);
        match user {
            Some(user) if user.disabled => {
                let error = Error::new(ErrorKind::Authorization, "This account is not allowed to log in here.");
                Err(error.hint("Ask the administrator of this server."))
            }
            user => Ok(user.map(Arc::new)),
        }
    }
}

/// Returns candidates for the user name: those of the issuer first, then with a number appended.
fn names(identity: &FederatedIdentity) -> Vec<String> {
    let names: Vec<String> = identity
        .names
        .iter()
        .map(|name| plain(name))
        .filter(|name| is_name(name) && name != OWNER && !name.starts_with(USER_ID))
        .collect();
    let numbered = |name: &String| (2..10).map(move |number| format!("{name}-{number}")).collect::<Vec<_>>();
    let all = names.iter().cloned().chain(names.iter().flat_map(numbered));
    all.take(NAME_CANDIDATES_MAX).collect()
}

fn plain(name: &str) -> String {
    let fine = |c: char| c.is_lowercase() || c.is_numeric() || matches!(c, '-' | '_' | '.' | '@');
    let name: String = name.to_lowercase().chars().map(|c| if fine(c) { c } else { '-' }).take(NAME_CHARS).collect();
    name.trim_matches(|c: char| !c.is_alphanumeric()).to_owned()
}
