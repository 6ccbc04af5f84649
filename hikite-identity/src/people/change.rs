//! Projects and tokens, and their changes. Callers have checked that the user is an administrator. Every change is written to
//! the store first and published afterwards.

use std::sync::Arc;

use hikite_core::caller::OWNER;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;
use hikite_core::suggestion;
use hikite_core::violation::{self, Violation};
use hikite_store::ProjectRow;
use hikite_store::clock::now_ms;

use super::directory::DirectoryUser;
use super::token::{PersonalToken, hash, secret};
use super::{ProjectRegistry, TokenRegistry};
use crate::identity::{UserAuthority, only_the_owner};
use crate::project::{Project, ProjectMap};

/// Attempts to apply a change while concurrent changes interfere.
const TRIES: usize = 20;

impl ProjectRegistry<'_> {
    pub fn map(self) -> Arc<ProjectMap> {
        Arc::clone(self.0.directory.load().projects())
    }

    /// Returns all projects by name.
    pub fn all(self) -> Vec<Arc<Project>> {
        self.0.directory.load().projects().values().cloned().collect()
    }

    /// Returns the REST object of a project.
    pub fn object(self, name: &str) -> Result<Raw, Error> {
        self.0.directory.load().project_object(name).ok_or_else(|| no_project(name))
    }

    pub fn objects(self) -> Vec<Raw> {
        let directory = self.0.directory.load();
        directory.projects().keys().filter_map(|name| directory.project_object(name)).collect()
    }

    /// Fails if a user document names a project that does not exist.
    pub fn check_project_of(self, form: &Object) -> Result<(), Error> {
        let Some(name) = form.text("project") else { return Ok(()) };
        if self.0.directory.load().project(&name).is_some() {
            return Ok(());
        }
        Err(violation::error(&[Violation::new(violation::step("project"), format!("There is no project `{name}`."))]))
    }

    pub async fn create(self, name: &str, form: &Object) -> Result<Raw, Error> {
        let project = Project::read(name, form)?;
        let _turn = self.0.turn.lock().await;
        let taken = || {
            let error = Error::new(ErrorKind::Conflict, format!("A project `{name}` already exists."));
            error.hint("Change it, or choose another name.")
        };
        if let Some(there) = self.0.directory.load().project(name) {
            return Err(if there.managed_by_file { managed_by_file_error(name) } else { taken() });
        }
        if !self.0.store.projects().put(&row(&project)).await? {
            return Err(taken());
        }
        self.0.read().await?;
        self.object(name)
    }

    /// Replaces the members that `changes` names. `null` removes a member, except for `optimization`, where it
    /// disables search.
    pub async fn change(self, name: &str, changes: &Object) -> Result<Raw, Error> {
        let over = |form: Object| -> Object {
            let members = form.iter().chain(changes.iter());
            members.map(|(member, value)| (member.into(), value.clone())).collect()
        };
        self.replace(name, over).await
    }

    /// Replaces a project's document with the result of `change`. Retries if the project was changed concurrently: no
    /// other change is lost, and a deleted project stays deleted.
    pub async fn replace(self, name: &str, change: impl Fn(Object) -> Object) -> Result<Raw, Error> {
        let _turn = self.0.turn.lock().await;
        for _ in 0..TRIES {
            self.0.read().await?;
            let form = change(self.own(name)?.form());
            let project = Project::read(name, &form)?;
            let before = self.0.directory.load().project(name).and_then(|project| project.stored_document.clone());
            let before = before.ok_or_else(|| no_project(name))?;
            if self.0.store.projects().change(name, &before, &project.form().raw()).await? {
                self.0.read().await?;
                return self.object(name);
            }
        }
        let error = Error::new(ErrorKind::Conflict, format!("The project `{name}` is being changed by others."));
        Err(error.hint("Try again."))
    }

    /// Deletes a project together with its tokens.
    pub async fn delete(self, name: &str) -> Result<(), Error> {
        let _turn = self.0.turn.lock().await;
        self.own(name)?;
        self.0.store.projects().remove(name).await?;
        self.0.read().await.map(drop)
    }

    /// Returns a project that is not managed by the config file.
    fn own(self, name: &str) -> Result<Arc<Project>, Error> {
        let directory = self.0.directory.load();
        let project = directory.project(name).ok_or_else(|| {
            let known = directory.projects().keys().map(|name| &**name);
            match suggestion::did_you_mean(name, known) {
                Some(near) => no_project(name).hint(near),
                None => no_project(name),
            }
        })?;
        if project.managed_by_file { Err(managed_by_file_error(name)) } else { Ok(Arc::clone(project)) }
    }
}

impl TokenRegistry<'_> {
    /// Returns all tokens, oldest first, valid or not.
    pub fn all(self) -> Vec<Arc<PersonalToken>> {
        self.0.directory.load().tokens()
    }

    /// Returns the REST objects of all tokens, without secrets.
    pub fn objects(self) -> Vec<Raw> {
        let (directory, now) = (self.0.directory.load(), now_ms());
        directory.tokens().iter().map(|token| directory.token_object(token, now)).collect()
    }

    /// Creates a token and returns it with its secret, which cannot be shown again. The token acts for the `user` in
    /// the document, else for its own subject or label. Only the owner can create tokens that act for the owner.
    pub async fn create(self, form: &Object, right: UserAuthority) -> Result<(Raw, Secret), Error> {
        if let Some(identity) = self.0.identity() {
            // Another process may have just created the user.
            identity.read_store().await?;
        }
        let _turn = self.0.turn.lock().await;
        // Another process may have just created the project.
        self.0.read().await?;
        let user = self.user_for(form, right)?;
        let mut token = PersonalToken::read(form, user.as_ref(), now_ms())?;
        let secret = secret()?;
        self.check_scopes(&token)?;
        self.check_project(&token)?;
        while !self.0.store.tokens().put(&token.row(&hash(secret.expose()))).await? {
            // The random id was already taken.
            token = PersonalToken::read(form, user.as_ref(), token.created_at)?;
        }
        self.0.read().await?;
        Ok((self.0.directory.load().token_object(&token, now_ms()), secret))
    }

    /// Returns the subject of the user that a new token acts for: the one named by `user`, or by `subject` as in the
    /// first version of the API.
    fn user_for(self, form: &Object, right: UserAuthority) -> Result<Option<Arc<str>>, Error> {
        let directory = self.0.directory.load();
        let given = |member: &str| form.get(member).filter(|value| !value.is_null());
        let Some(user) = given("user") else {
            let Some(label) = given("subject").and_then(Raw::text) else { return Ok(None) };
            return match (directory.user_named(&label), directory.user(&label)) {
                (Some(user), _) => may_act_for(user, right, "subject").map(Some),
                // A label must not equal the subject of a user with another name.
                (None, Some(_)) => Err(wrong("subject", format!("`{label}` is reserved."))),
                (None, None) => Ok(None),
            };
        };
        if given("subject").is_some() {
            return Err(wrong("subject", "A token that acts for a user has no other `subject`.".into()));
        }
        let named = user.text().ok_or_else(|| wrong("user", "`user` must be the name of a user.".into()))?;
        match directory.user_named(&named).or_else(|| directory.owner().filter(|_| named == OWNER)) {
            Some(user) => may_act_for(user, right, "user").map(Some),
            // Before an owner exists, the holder of the local token is the owner.
            None if named == OWNER && right == UserAuthority::Owner => Ok(Some(OWNER.into())),
            None => Err(wrong("user", format!("There is no user `{named}`."))),
        }
    }

    fn check_scopes(self, token: &PersonalToken) -> Result<(), Error> {
        let directory = self.0.directory.load();
        let Some(role) = directory.user(&token.subject).and_then(|user| user.role) else { return Ok(()) };
        if role.scopes().contains(token.scopes) {
            return Ok(());
        }
        Err(wrong("scopes", format!("A user with the role `{}` may not have all of these scopes.", role.name())))
    }

    pub async fn revoke(self, id: &str) -> Result<(), Error> {
        let _turn = self.0.turn.lock().await;
        if !self.0.store.tokens().remove(id).await? {
            let error = Error::new(ErrorKind::NotFound, format!("There is no token `{id}`."));
            return Err(error.hint("Run `hikite token list` to see all tokens."));
        }
        self.0.read().await.map(drop)
    }

    fn check_project(self, token: &PersonalToken) -> Result<(), Error> {
        let Some(name) = &token.project else { return Ok(()) };
        let directory = self.0.directory.load();
        let fault =
            |member: &str, message: String| Err(violation::error(&[Violation::new(violation::step(member), message)]));
        let Some(project) = directory.project(name) else {
            return fault("project", format!("There is no project `{name}`."));
        };
        if !directory.is_open_to(project, &token.subject) {
            let members = project.members.join("`, `");
            return fault("user", format!("The members of `{name}` are `{members}`: set `user` to one of them."));
        }
        Ok(())
    }
}

fn row(project: &Project) -> ProjectRow {
    ProjectRow { name: project.name.to_string(), form: project.form().raw(), created_at: now_ms() }
}

fn may_act_for(user: &DirectoryUser, right: UserAuthority, member: &str) -> Result<Arc<str>, Error> {
    if user.is_owner() && right != UserAuthority::Owner {
        return Err(only_the_owner());
    }
    if user.disabled {
        return Err(wrong(member, format!("`{}` is locked.", user.name)));
    }
    Ok(Arc::clone(&user.subject))
}

fn wrong(member: &str, message: String) -> Error {
    violation::error(&[Violation::new(violation::step(member), message)])
}

fn managed_by_file_error(name: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("The project `{name}` is managed by the config file."))
        .hint("Change it in the config file.")
}

fn no_project(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("There is no project `{name}`."))
}
