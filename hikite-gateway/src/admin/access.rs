//! Users, projects, tokens and accounts as requests see them: changes are written to the store first, and published to
//! the catalogs at once.

use std::collections::HashSet;
use std::sync::Arc;

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_store::{ChangeSet, change_kind};

use crate::accounts::AccountStore;
use crate::catalogs::Catalogs;
use crate::snapshot::UserPermissions;
use hikite_identity::People;
use hikite_identity::User;

pub struct AccessAdmin {
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) people: Arc<People>,
    pub(crate) accounts: Option<Arc<AccountStore>>,
}

impl std::fmt::Debug for AccessAdmin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessAdmin").finish_non_exhaustive()
    }
}

impl AccessAdmin {
    /// Publishes the users' permissions and the owner to all requests.
    pub fn publish_users(&self) {
        let users = self.people.identity().map(|identity| identity.users().all()).unwrap_or_default();
        let mask = |user: &Arc<User>| Some((Arc::clone(&user.subject), user.permissions.clone()?));
        // Calls that still run for a deleted user keep that user's permissions.
        let known: HashSet<&Arc<str>> = users.iter().map(|user| &user.subject).collect();
        let mut masks = UserPermissions::clone(&self.catalogs.masks());
        masks.retain(|subject, _| !known.contains(subject));
        masks.extend(users.iter().filter_map(mask));
        self.catalogs.set_masks(masks);
        let owner = self.people.identity().and_then(|identity| identity.users().owner());
        self.catalogs.set_owner(owner.map(|owner| Arc::clone(&owner.subject)));
    }

    /// Publishes users to all requests: permissions first, then tokens, projects and accounts.
    pub async fn refresh_users(&self) -> Result<(), Error> {
        self.publish_users();
        if self.people.read_tokens().await? {
            self.publish_projects();
        }
        if let Some(accounts) = &self.accounts {
            accounts.read_store().await?;
            if accounts.take_changes() {
                self.catalogs.show_accounts();
            }
        }
        Ok(())
    }

    /// Applies store changes of users, projects, tokens and accounts.
    pub(crate) async fn apply_changes(&self, changes: &ChangeSet) -> Result<(), Error> {
        if changes.concern(&[change_kind::USER]) {
            self.publish_users();
        }
        let differs = self.people.follow_store(changes).await?;
        // Another reader may have loaded the projects without publishing them.
        if differs || !Arc::ptr_eq(&self.people.projects().map(), &self.catalogs.snapshot().bounds().projects) {
            self.publish_projects();
        }
        if let Some(accounts) = &self.accounts {
            accounts.follow_store(changes).await?;
            if accounts.take_changes() {
                self.catalogs.show_accounts();
            }
        }
        Ok(())
    }

    /// Publishes the current projects to all requests.
    pub fn publish_projects(&self) {
        self.catalogs.replace_projects(self.people.projects().map());
    }

    pub async fn create_project(&self, name: &str, form: &Object) -> Result<Raw, Error> {
        let made = self.people.projects().create(name, form).await;
        self.publish_projects();
        made
    }

    pub async fn change_project(&self, name: &str, changes: &Object) -> Result<Raw, Error> {
        let outcome = self.people.projects().change(name, changes).await;
        self.publish_projects();
        outcome
    }

    pub async fn delete_project(&self, name: &str) -> Result<(), Error> {
        let deleted = self.people.projects().delete(name).await;
        self.publish_projects();
        deleted
    }
}
