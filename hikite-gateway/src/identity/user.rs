//! A user: a person who logs in. The first one is the owner, whose subject is that of the local token; everybody else's
//! subject is their name.

use std::sync::Arc;

use hikite_core::caller::{OWNER, Scopes};
use hikite_core::error::{Error, Kind};
use hikite_core::fault::{self, Fault};
use hikite_core::json::{Object, Raw};
use hikite_core::permission::Permissions;
use hikite_core::secret::Secret;
use hikite_core::suggest;
use hikite_core::time::rfc3339;
use hikite_store::Entry;
use hikite_vault::PasswordHash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CONSENT, GRANT, Identity, LOGIN, PASSKEY, USER, secret};
use crate::clock::now_ms;

const MEMBERS: [&str; 5] = ["name", "role", "password", "permissions", "disabled"];
const NAME_CHARS: usize = 64;

#[derive(Clone, Debug)]
pub struct User {
    pub name: Arc<str>,
    pub subject: Arc<str>,
    pub role: Role,
    pub(super) password: Option<PasswordHash>,
    /// Which tools there are for this user; everything without.
    pub permissions: Option<Arc<Permissions>>,
    /// Locked out: nothing of theirs opens anything.
    pub disabled: bool,
    /// Milliseconds since 1970.
    pub created_at: u64,
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

    /// What a client may be allowed in the name of such a user.
    pub fn scopes(self) -> Scopes {
        match self {
            Self::Owner | Self::Admin => Scopes::ALL,
            Self::Member => Scopes::USUAL,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
    }
}

/// As it lies in the drawer.
#[derive(Serialize, Deserialize)]
struct Kept {
    role: Role,
    password: Option<String>,
    permissions: Option<Value>,
    #[serde(default)]
    disabled: bool,
}

impl User {
    /// Nothing if it cannot be read, which then lets nobody in.
    pub(super) fn of(entry: &Entry) -> Option<Self> {
        let kept: Kept = entry.form.decode().ok()?;
        let permissions = kept.permissions.map(|form| Permissions::read(&form.into()));
        Some(Self {
            name: entry.id.as_str().into(),
            subject: entry.owner.as_str().into(),
            role: kept.role,
            password: kept.password.map(PasswordHash::from_text),
            permissions: permissions.transpose().ok()?.map(Arc::new),
            disabled: kept.disabled,
            created_at: entry.created_at,
        })
    }

    pub(super) fn entry(&self, version: u64) -> Entry {
        let kept = Kept {
            role: self.role,
            password: self.password.as_ref().map(|hash| hash.text().to_owned()),
            permissions: self.permissions.as_ref().map(|permissions| permissions.form().value()),
            disabled: self.disabled,
        };
        Entry {
            kind: USER,
            id: self.name.to_string(),
            owner: self.subject.to_string(),
            form: Raw::of(&kept),
            version,
            created_at: self.created_at,
            expires_at: 0,
        }
    }

    /// What may be seen of it.
    pub fn object(&self) -> Object {
        let permissions = self.permissions.as_ref().map_or_else(Raw::null, |permissions| permissions.form());
        Object::default()
            .with("name", &*self.name)
            .with("subject", &*self.subject)
            .with("role", self.role.name())
            .with("permissions", permissions)
            .with("disabled", Raw::of(&self.disabled))
            .with("createdAt", rfc3339(self.created_at))
    }
}

impl Identity {
    /// All of them, the oldest first.
    pub fn users(&self) -> Vec<Arc<User>> {
        let mut users: Vec<Arc<User>> = self.book.load().users().cloned().collect();
        users.sort_by(|a, b| (a.created_at, &a.name).cmp(&(b.created_at, &b.name)));
        users
    }

    pub fn user_objects(&self) -> Vec<Raw> {
        self.users().iter().map(|user| user.object().raw()).collect()
    }

    /// The user whom a caller stands for.
    pub fn user_of(&self, subject: &str) -> Option<Arc<User>> {
        self.book.load().user(subject).cloned()
    }

    pub fn user_object(&self, name: &str) -> Result<Raw, Error> {
        let book = self.book.load();
        let user = book.users().find(|user| *user.name == *name);
        user.map(|user| user.object().raw()).ok_or_else(|| self.no_user(name))
    }

    /// Makes a user from a form. Without a password in it one is made, which is told this once.
    pub async fn add_user(&self, form: &Object) -> Result<(Raw, Option<Secret>), Error> {
        let mut reader = Reader { form, faults: Vec::new() };
        let name = reader.name();
        let role = reader.role().unwrap_or(Role::Member);
        let (permissions, disabled) = (reader.mask().over(None), reader.disabled().unwrap_or(false));
        let given = reader.password();
        if role == Role::Owner {
            reader
                .fault("role", "there is one owner, whom the set-up link makes: choose `admin` or `member`");
        }
        reader.finish()?;
        let made = if given.is_none() { Some(secret::secret("")?) } else { None };
        let password = given.or_else(|| made.clone()).unwrap_or_else(|| Secret::hidden(""));
        let user = User {
            subject: name.as_str().into(),
            name: name.as_str().into(),
            role,
            password: Some(self.hashed(&password).await?),
            permissions,
            disabled,
            created_at: now_ms(),
        };
        if !self.store.put_entry(&user.entry(0)).await? {
            let error = Error::new(Kind::Conflict, format!("there is a user `{name}` already"));
            return Err(error.hint("change it, or choose another name"));
        }
        let object = user.object().raw();
        self.learn(|book| book.put_user(Arc::new(user))).await;
        Ok((object, made))
    }

    /// Changes the members that the form names; null takes `permissions` away. Another password ends all logins.
    pub async fn change_user(&self, name: &str, changes: &Object) -> Result<Raw, Error> {
        let mut reader = Reader { form: changes, faults: Vec::new() };
        let (role, mask) = (reader.role(), reader.mask());
        let (disabled, password) = (reader.disabled(), reader.password());
        if changes.get("name").is_some() {
            reader.fault("name", "a name stays: make another user");
        }
        let is_owner = self.users().iter().any(|user| *user.name == *name && user.role == Role::Owner);
        if is_owner && (role.is_some_and(|role| role != Role::Owner) || disabled == Some(true)) {
            reader.fault("role", "the owner stays the owner, and is not locked out");
        } else if !is_owner && role == Some(Role::Owner) {
            reader.fault("role", "there is one owner, whom the set-up link makes");
        }
        reader.finish()?;
        let hash = match &password {
            Some(password) => Some(self.hashed(password).await?),
            None => None,
        };
        let object = loop {
            let (mut user, version) = self.stored_user(name).await?;
            user.role = role.unwrap_or(user.role);
            user.disabled = disabled.unwrap_or(user.disabled);
            user.permissions = mask.clone().over(user.permissions);
            user.password = hash.clone().or(user.password);
            if self.store.change_entry(&user.entry(version)).await? {
                let object = user.object().raw();
                self.learn(|book| book.put_user(Arc::new(user))).await;
                break object;
            }
        };
        if hash.is_some() || disabled == Some(true) {
            let (user, _) = self.stored_user(name).await?;
            self.store.remove_entries(LOGIN, &user.subject).await?;
        }
        Ok(object)
    }

    /// Takes a user away, and all that was theirs here: logins, consents, grants and passkeys.
    pub async fn remove_user(&self, name: &str) -> Result<(), Error> {
        let (user, _) = self.stored_user(name).await?;
        if self.store.take_entry(USER, name, now_ms()).await?.is_none() {
            return Err(self.no_user(name));
        }
        for kind in [LOGIN, CONSENT, GRANT, PASSKEY] {
            self.store.remove_entries(kind, &user.subject).await?;
        }
        self.learn(|book| book.remove_user(&user.subject)).await;
        Ok(())
    }

    pub(super) async fn stored_user(&self, name: &str) -> Result<(User, u64), Error> {
        let entry = self.store.entry(USER, name, now_ms()).await?;
        let found = entry.and_then(|entry| Some((User::of(&entry)?, entry.version)));
        found.ok_or_else(|| self.no_user(name))
    }

    fn no_user(&self, name: &str) -> Error {
        let error = Error::new(Kind::NotFound, format!("there is no user `{name}`"));
        let users = self.users();
        match suggest::did_you_mean(name, users.iter().map(|user| &*user.name)) {
            Some(near) => error.hint(near),
            None => error.hint("`hikite user list` names those there are"),
        }
    }
}

/// Whether somebody may be called this.
pub(super) fn is_name(name: &str) -> bool {
    let fine = |c: char| c.is_lowercase() || c.is_numeric() || c.is_alphabetic() && !c.is_uppercase();
    let sign = |c: char| matches!(c, '-' | '_' | '.' | '@');
    (1..=NAME_CHARS).contains(&name.chars().count())
        && name.chars().all(|c| fine(c) || sign(c))
        && name.starts_with(fine)
}

/// What a form says of a user's permissions.
#[derive(Clone)]
enum Mask {
    AsBefore,
    None,
    These(Arc<Permissions>),
}

impl Mask {
    fn over(self, before: Option<Arc<Permissions>>) -> Option<Arc<Permissions>> {
        match self {
            Self::AsBefore => before,
            Self::None => None,
            Self::These(permissions) => Some(permissions),
        }
    }
}

struct Reader<'a> {
    form: &'a Object,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn name(&mut self) -> String {
        let name = self.form.text("name").unwrap_or_default();
        if !is_name(&name) {
            self.fault("name", "`name` must be up to 64 small letters, digits, `-`, `_`, `.` and `@`");
        } else if name == OWNER {
            self.fault("name", format!("`{OWNER}` is not to be given"));
        }
        name
    }

    fn role(&mut self) -> Option<Role> {
        let given = self.given("role")?;
        let role = given.text().and_then(|word| Role::parse(&word));
        if role.is_none() {
            self.fault("role", "`role` must be `admin` or `member`");
        }
        role
    }

    fn password(&mut self) -> Option<Secret> {
        let given = self.given("password")?;
        let Some(text) = given.text() else {
            self.fault("password", "`password` must be a string");
            return None;
        };
        if let Some(fault) = super::password::fault(&text) {
            self.fault("password", fault);
        }
        Some(Secret::hidden(text))
    }

    fn mask(&mut self) -> Mask {
        let Some(given) = self.form.get("permissions") else { return Mask::AsBefore };
        if given.is_null() {
            return Mask::None;
        }
        match crate::aside::aside(|| Permissions::read(given)) {
            Ok(permissions) => Mask::These(Arc::new(permissions)),
            Err(faults) => {
                let inside =
                    |fault: Fault| Fault::new(format!("/permissions{}", fault.pointer), fault.message);
                self.faults.extend(faults.into_iter().map(inside));
                Mask::AsBefore
            }
        }
    }

    fn disabled(&mut self) -> Option<bool> {
        let given = self.given("disabled")?.decode().ok();
        if given.is_none() {
            self.fault("disabled", "`disabled` must be true or false");
        }
        given
    }

    fn given(&self, member: &str) -> Option<Raw> {
        self.form.get(member).filter(|value| !value.is_null()).cloned()
    }

    fn fault(&mut self, member: &str, message: impl Into<String>) {
        self.faults.push(Fault::new(fault::step(member), message));
    }

    fn finish(mut self) -> Result<(), Error> {
        let form = self.form;
        for member in form.unknown(&MEMBERS) {
            let near = suggest::did_you_mean(member, MEMBERS);
            let hint = near.map(|near| format!(": {near}")).unwrap_or_default();
            self.fault(member, format!("Unknown member `{member}`{hint}"));
        }
        if self.faults.is_empty() { Ok(()) } else { Err(fault::error(&self.faults)) }
    }
}
