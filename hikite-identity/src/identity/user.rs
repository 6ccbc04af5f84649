//! Users: people who log in, identified by an id that is never reused. The name is a label. Everything that belongs to
//! a user (logins, grants, accounts, tokens, permissions) refers to the subject: the id for local users, the issuer and
//! its `sub` for federated ones, and for users of version 0.1 the key that they had then, `owner` or the name.

mod change;
mod reader;

use std::collections::HashMap;
use std::sync::Arc;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::permission::Permissions;
use hikite_core::suggestion;
use hikite_core::time::rfc3339;
use hikite_store::UserRow;
use hikite_vault::PasswordHash;
use serde::{Deserialize, Serialize};

use super::Identity;
pub use change::Successor;
pub(super) use reader::is_name;

/// Users by subject.
pub(crate) type Users = HashMap<Arc<str>, Arc<User>>;

/// Prefix of user ids.
pub const ID: &str = "usr_";

#[derive(Clone, Debug)]
pub struct User {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub subject: Arc<str>,
    pub role: Role,
    pub(super) password: Option<PasswordHash>,
    /// Tools that this user may access; `None` for everything.
    pub permissions: Option<Arc<Permissions>>,
    /// Locked out: none of the user's credentials work.
    pub disabled: bool,
    /// The only project that the user may work in.
    pub project: Option<Arc<str>>,
    /// Milliseconds since the Unix epoch.
    pub created_at: u64,
    pub(super) version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Owner,
    Admin,
    Member,
}

impl Role {
    pub const NAMES: [(&'static str, Self); 3] =
        [("owner", Self::Owner), ("admin", Self::Admin), ("member", Self::Member)];

    /// Returns the scopes that a client may get for a user of this role.
    pub fn scopes(self) -> Scopes {
        match self {
            Self::Owner | Self::Admin => Scopes::ALL,
            Self::Member => Scopes::DEFAULT,
        }
    }

    /// Limits the scopes of a caller to those of the role.
    #[must_use]
    pub fn cap(self, caller: Caller) -> Caller {
        Caller { scopes: caller.scopes.both(self.scopes()), ..caller }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
    }
}

/// The authority with which users are changed: only the owner may change the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserAuthority {
    Owner,
    Admin,
}

impl User {
    /// Reads a user from its row. Returns `None` for an unreadable row, which admits nobody.
    pub(super) fn of(row: &UserRow) -> Option<Self> {
        let permissions = row.permissions.as_ref().map(Permissions::read);
        Some(Self {
            id: row.id.as_str().into(),
            name: row.name.as_str().into(),
            subject: row.subject.as_str().into(),
            role: Role::parse(&row.role)?,
            password: row.password.as_deref().map(PasswordHash::from_text),
            permissions: permissions.transpose().ok()?.map(Arc::new),
            disabled: row.disabled,
            project: row.project.as_deref().map(Arc::from),
            created_at: row.created_at,
            version: row.version,
        })
    }

    pub(super) fn row(&self) -> UserRow {
        UserRow {
            id: self.id.to_string(),
            name: self.name.to_string(),
            subject: self.subject.to_string(),
            role: self.role.name().to_owned(),
            password: self.password.as_ref().map(|hash| hash.text().to_owned()),
            permissions: self.permissions.as_ref().map(|permissions| permissions.form()),
            disabled: self.disabled,
            project: self.project.as_deref().map(str::to_owned),
            created_at: self.created_at,
            version: self.version,
        }
    }

    /// Returns the JSON for the API.
    pub fn object(&self) -> Object {
        let permissions = self.permissions.as_ref().map_or_else(Raw::null, |permissions| permissions.form());
        Object::default()
            .with("id", &*self.id)
            .with("name", &*self.name)
            .with("subject", &*self.subject)
            .with("role", self.role.name())
            .with("permissions", permissions)
            .with("project", self.project.as_deref().map_or_else(Raw::null, Raw::from))
            .with("disabled", Raw::of(&self.disabled))
            .with("createdAt", rfc3339(self.created_at))
    }
}

/// The users of an identity service: who they are, and how they are added, changed and removed.
#[derive(Clone, Copy, Debug)]
pub struct UserRegistry<'a>(pub(super) &'a Identity);

impl UserRegistry<'_> {
    /// Returns all users, oldest first.
    pub fn all(self) -> Vec<Arc<User>> {
        let mut users: Vec<Arc<User>> = self.0.snapshot.load().users().cloned().collect();
        users.sort_by(|a, b| (a.created_at, &a.name).cmp(&(b.created_at, &b.name)));
        users
    }

    /// Returns all users by subject. Every change of a user produces a new table.
    pub(crate) fn table(self) -> Arc<Users> {
        Arc::clone(self.0.snapshot.load().user_table())
    }

    pub fn objects(self) -> Vec<Raw> {
        self.all().iter().map(|user| user.object().raw()).collect()
    }

    /// Returns the user of a subject.
    pub fn of_subject(self, subject: &str) -> Option<Arc<User>> {
        self.0.snapshot.load().user(subject).cloned()
    }

    /// Returns a user by id or name.
    pub fn get(self, named: &str) -> Result<Arc<User>, Error> {
        let snapshot = self.0.snapshot.load();
        let by_id = snapshot.users().find(|user| *user.id == *named);
        let found = by_id.or_else(|| snapshot.users().find(|user| *user.name == *named));
        found.cloned().ok_or_else(|| self.no_user(named))
    }

    pub fn object(self, named: &str) -> Result<Raw, Error> {
        self.get(named).map(|user| user.object().raw())
    }

    /// Returns the current owner.
    pub fn owner(self) -> Option<Arc<User>> {
        self.0.snapshot.load().users().find(|user| user.role == Role::Owner).cloned()
    }

    pub(super) async fn stored(self, named: &str) -> Result<User, Error> {
        let row = self.0.store.users().get(named).await?;
        row.as_ref().and_then(User::of).ok_or_else(|| self.no_user(named))
    }

    pub(super) fn no_user(self, name: &str) -> Error {
        let error = Error::new(ErrorKind::NotFound, format!("There is no user `{name}`."));
        let users = self.all();
        match suggestion::did_you_mean(name, users.iter().map(|user| &*user.name)) {
            Some(near) => error.hint(near),
            None => error.hint("Run `hikite user list` to see all users."),
        }
    }
}

pub(crate) fn only_the_owner() -> Error {
    Error::new(ErrorKind::Authorization, "Only the owner can change the owner.")
        .hint("Log in as the owner, or use `hikite user` on the machine that runs hikite.")
}
