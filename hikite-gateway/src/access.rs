//! Users, projects, tokens and accounts as requests see them: changes are written to the store first, and published to
//! all requests at once.

use std::collections::HashSet;
use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_identity::{People, Project, User};
use hikite_store::{ChangeSet, change_kind};

use crate::gateway::Gateway;
use crate::snapshot::UserPermissions;
use crate::surface::Surfaces;

impl Gateway {
    pub fn people(&self) -> &People {
        &self.people
    }

    /// Publishes the users' permissions and the owner to all requests.
    pub fn publish_users(&self) {
        let users = self.people.identity().map(|identity| identity.users()).unwrap_or_default();
        let mask = |user: &Arc<User>| Some((Arc::clone(&user.subject), user.permissions.clone()?));
        // Calls that still run for a deleted user keep that user's permissions.
        let known: HashSet<&Arc<str>> = users.iter().map(|user| &user.subject).collect();
        let mut masks = UserPermissions::clone(&self.masks());
        masks.retain(|subject, _| !known.contains(subject));
        masks.extend(users.iter().filter_map(mask));
        self.set_masks(masks);
        let owner = self.people.identity().and_then(|identity| identity.owner());
        self.set_owner(owner.map(|owner| Arc::clone(&owner.subject)));
    }

    /// Publishes users to all requests: permissions first, then tokens, projects and accounts.
    pub async fn refresh_users(&self) -> Result<(), Error> {
        self.publish_users();
        if self.people.read_tokens().await? {
            self.publish_projects();
        }
        if let Some(accounts) = self.accounts() {
            accounts.read_store().await?;
            if accounts.take_changes() {
                self.show_accounts();
            }
        }
        Ok(())
    }

    /// Applies store changes of users, projects, tokens and accounts.
    pub(crate) async fn apply_user_changes(&self, changes: &ChangeSet) -> Result<(), Error> {
        if changes.concern(&[change_kind::USER]) {
            self.publish_users();
        }
        let differs = self.people.follow_store(changes).await?;
        // Another reader may have loaded the projects without publishing them.
        if differs || !Arc::ptr_eq(&self.people.project_map(), &self.snapshot().bounds().projects) {
            self.publish_projects();
        }
        if let Some(accounts) = self.accounts() {
            accounts.follow_store(changes).await?;
            if accounts.take_changes() {
                self.show_accounts();
            }
        }
        Ok(())
    }

    /// Fails if a user document names a project that does not exist.
    pub fn check_project_of(&self, form: &Object) -> Result<(), Error> {
        self.people.check_project_of(form)
    }

    /// Publishes the current projects to all requests.
    pub fn publish_projects(&self) {
        self.replace_projects(self.people.project_map());
    }
}

/// Changes of projects on a running gateway, published to all requests at once.
impl Gateway {
    pub async fn create_project(&self, name: &str, form: &Object) -> Result<Raw, Error> {
        let made = self.people.create_project(name, form).await;
        self.publish_projects();
        made
    }

    pub async fn change_project(&self, name: &str, changes: &Object) -> Result<Raw, Error> {
        let outcome = self.people.change_project(name, changes).await;
        self.publish_projects();
        outcome
    }

    pub async fn delete_project(&self, name: &str) -> Result<(), Error> {
        let deleted = self.people.delete_project(name).await;
        self.publish_projects();
        deleted
    }
}

impl Gateway {
    /// Returns the caller's project, if it exists.
    pub fn project_of(&self, caller: &Caller) -> Option<Arc<Project>> {
        self.snapshot().project_of(caller).cloned()
    }

    /// Returns the surfaces of a caller: the requested ones if the project allows all of them, else the project's,
    /// else the default.
    pub fn surfaces_for(&self, caller: &Caller, asked: Option<Surfaces>, default: Surfaces) -> Result<Surfaces, Error> {
        let own = self.snapshot().project_of(caller).and_then(|project| project.surfaces);
        match (asked, own) {
            (None, own) => Ok(own.unwrap_or(default)),
            (Some(asked), None) => Ok(asked),
            (Some(asked), Some(own)) if asked.is_within(own) => Ok(asked),
            (Some(asked), Some(own)) => {
                let asked = asked.names().join(",");
                Err(Error::new(
                    ErrorKind::Authorization,
                    format!("`surface={asked}` is not available in this project."),
                )
                .hint(format!("Leave it out, or choose one of: {}.", own.names().join(", "))))
            }
        }
    }
}
