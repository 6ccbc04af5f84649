//! Creates, changes and removes users, and transfers the ownership. Credentials are revoked in the store first, from
//! where other processes learn of it.

use std::sync::Arc;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::permission::Permissions;
use hikite_core::secret::Secret;
use hikite_store::AccessKind;
use hikite_store::clock::now_ms;
use hikite_vault::PasswordHash;

use super::reader::{OptionalChange, UserReader};
use super::{ID, Role, User, UserAuthority, only_the_owner};
use crate::identity::{CHALLENGE, CODE, CONNECTION, UserRegistry, hash, removal, secret};

/// The user who inherits the accounts of a removed user.
#[derive(Clone, Copy, Debug)]
pub struct Successor<'a>(pub &'a str);

/// The changes that a request contains.
struct UserChanges {
    name: Option<String>,
    role: Option<Role>,
    mask: OptionalChange<Arc<Permissions>>,
    disabled: Option<bool>,
    project: OptionalChange<Arc<str>>,
    password: Option<PasswordHash>,
    remove_passkeys: bool,
}

impl UserRegistry<'_> {
    /// Creates a user. Without a password in the request one is generated and returned this once.
    pub async fn add(self, form: &Object) -> Result<(Raw, Option<Secret>), Error> {
        let mut reader = UserReader::new(form);
        let name = reader.name();
        let role = reader.role().unwrap_or(Role::Member);
        let (permissions, disabled) = (reader.mask().over(None), reader.flag("disabled").unwrap_or(false));
        let (given, project) = (reader.password(), reader.project().over(None));
        // A new user has no passkeys.
        let _ = reader.flag("removePasskeys");
        if role == Role::Owner {
            reader.fault("role", "The only owner is the user created with the setup link. Choose `admin` or `member`.");
        }
        reader.finish()?;
        let made = if given.is_none() { Some(secret::secret("")?) } else { None };
        let password = given.or_else(|| made.clone()).unwrap_or_else(|| Secret::hidden(""));
        let id: Arc<str> = secret::id(ID)?.into();
        let user = User {
            subject: Arc::clone(&id),
            id,
            name: name.as_str().into(),
            role,
            password: Some(self.0.logins().hashed(&password).await?),
            permissions,
            disabled,
            project,
            created_at: now_ms(),
            version: 1,
        };
        if !self.0.store.users().put(&user.row(), None).await? {
            return Err(taken(&name));
        }
        let object = user.object().raw();
        self.0.update_snapshot(|snapshot| snapshot.put_user(Arc::new(user))).await;
        Ok((object, made))
    }

    /// Changes the given members; null clears `permissions` and `project`. A new password ends all grants and all
    /// logins but that of the given cookie; `removePasskeys` removes the passkeys as well.
    pub async fn change(
        self,
        named: &str,
        form: &Object,
        right: UserAuthority,
        kept_login: Option<&str>,
    ) -> Result<Raw, Error> {
        let user = self.stored(named).await?;
        if user.role == Role::Owner && right != UserAuthority::Owner {
            return Err(only_the_owner());
        }
        let changes = self.read_changes(&user, form).await?;
        let user = loop {
            let before = self.stored(&user.id).await?;
            let next = changes.over(before.clone());
            if self.0.store.users().change(&[(next.row(), before.name.to_string())]).await? {
                break Arc::new(User { version: next.version + 1, ..next });
            }
            let row = if next.name == before.name { None } else { self.0.store.users().get(&next.name).await? };
            if row.is_some_and(|row| row.id != *next.id) {
                return Err(taken(&next.name));
            }
            self.0.store.users().adopt().await?;
        };
        self.revoke_after_change(&user, &changes, kept_login).await?;
        let object = user.object().raw();
        self.0.update_snapshot(|snapshot| snapshot.put_user(user)).await;
        Ok(object)
    }

    async fn read_changes(self, user: &User, form: &Object) -> Result<UserChanges, Error> {
        let mut reader = UserReader::new(form);
        let (name, role, mask) = (reader.new_name(), reader.role(), reader.mask());
        let (disabled, password) = (reader.flag("disabled"), reader.password());
        let (project, remove_passkeys) = (reader.project(), reader.flag("removePasskeys").unwrap_or(false));
        let is_owner = user.role == Role::Owner;
        if is_owner && (role.is_some_and(|role| role != Role::Owner) || disabled == Some(true)) {
            reader.fault("role", "The owner cannot be locked or given another role. Hand over ownership first.");
        } else if !is_owner && role == Some(Role::Owner) {
            reader.fault("role", "There is only one owner. Hand over ownership with `hikite user handover`.");
        }
        if is_owner && matches!(project, OptionalChange::Set(_)) {
            reader.fault("project", "The owner cannot be bound to a project, because nobody could undo it.");
        }
        reader.finish()?;
        let password = match &password {
            Some(password) => Some(self.0.logins().hashed(password).await?),
            None => None,
        };
        Ok(UserChanges { name, role, mask, disabled, project, password, remove_passkeys })
    }

    async fn revoke_after_change(self, user: &User, changes: &UserChanges, kept: Option<&str>) -> Result<(), Error> {
        let kept = kept.map(hash);
        let mut kinds = Vec::new();
        if changes.password.is_some() {
            // In this order, because a login can become a code, and a code a grant, while these are removed.
            kinds.extend([AccessKind::Login, AccessKind::Document(CODE), AccessKind::Grant]);
        }
        if changes.disabled == Some(true) {
            kinds.push(AccessKind::Login);
            kinds.extend([CODE, CONNECTION, CHALLENGE].map(AccessKind::Document));
        }
        if changes.remove_passkeys {
            kinds.extend([AccessKind::Passkey, AccessKind::Document(CHALLENGE)]);
        }
        if kinds.is_empty() {
            return Ok(());
        }
        self.0.store.users().remove_access(&kinds, &user.subject, kept.as_deref()).await?;
        if kinds.contains(&AccessKind::Grant) {
            self.0.update_snapshot(|snapshot| snapshot.remove_grants_of(&user.subject)).await;
        }
        Ok(())
    }

    /// Transfers the ownership; the previous owner becomes an admin. Fails if `from` is no longer the owner.
    pub async fn transfer_ownership(self, from: &User, named: &str) -> Result<Raw, Error> {
        loop {
            let new_owner = self.stored(named).await?;
            if new_owner.disabled {
                let error = Error::new(ErrorKind::Conflict, format!("`{}` is locked.", new_owner.name));
                return Err(error.hint("Unlock the user first."));
            }
            self.0.read_store().await?;
            let Some(owner) = self.owner().filter(|owner| owner.id == from.id) else {
                let error = Error::new(ErrorKind::Conflict, format!("`{}` is not the owner.", from.name));
                return Err(error.hint("Run `hikite user list` to see who is."));
            };
            if owner.id == new_owner.id {
                return Err(Error::new(ErrorKind::Conflict, format!("`{}` is already the owner.", new_owner.name)));
            }
            let owner = User { role: Role::Admin, ..User::clone(&owner) };
            // The owner is not restricted to a project.
            let new_owner = User { role: Role::Owner, project: None, ..new_owner };
            let changes = [owner.row(), new_owner.row()].map(|row| (row.clone(), row.name));
            let done = self.0.store.users().change(&changes).await?;
            self.0.read_store().await?;
            if done {
                return self.object(&new_owner.id);
            }
        }
    }

    /// Removes a user with everything that belongs to them: tokens, logins, consents, grants, passkeys, and accounts
    /// with their secrets, unless a successor inherits the accounts. A federated user cannot log in again until the
    /// removal is lifted.
    pub async fn remove(
        self,
        named: &str,
        successor: Option<Successor<'_>>,
        right: UserAuthority,
    ) -> Result<(), Error> {
        loop {
            let user = self.stored(named).await?;
            if user.role == Role::Owner {
                let error = Error::new(ErrorKind::Conflict, "The owner cannot be removed.");
                return Err(error.hint("Hand over ownership first: `hikite user handover NAME`."));
            }
            let successor = match successor {
                Some(Successor(named)) => Some(self.successor(named, &user, right).await?),
                None => None,
            };
            let remembered = removal::of(&user);
            let successor = successor.as_ref().map(User::row);
            if self.0.store.users().remove(&user.row(), successor.as_ref(), remembered.as_ref()).await? {
                self.0.update_snapshot(|snapshot| snapshot.remove_user(&user.subject)).await;
                return Ok(());
            }
            self.0.store.users().adopt().await?;
        }
    }

    async fn successor(self, named: &str, of: &User, right: UserAuthority) -> Result<User, Error> {
        let successor = self.stored(named).await?;
        if successor.id == of.id {
            return Err(
                Error::new(ErrorKind::Validation, "A user cannot be their own successor.").hint("Choose another user.")
            );
        }
        if successor.role == Role::Owner && right != UserAuthority::Owner {
            return Err(only_the_owner());
        }
        Ok(successor)
    }
}

impl UserChanges {
    fn over(&self, user: User) -> User {
        User {
            name: self.name.as_deref().map_or(user.name, Arc::from),
            role: self.role.unwrap_or(user.role),
            disabled: self.disabled.unwrap_or(user.disabled),
            permissions: self.mask.clone().over(user.permissions),
            project: self.project.clone().over(user.project),
            password: self.password.clone().or(user.password),
            ..user
        }
    }
}

fn taken(name: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("A user `{name}` already exists."))
        .hint("Change it, or choose another name.")
}
