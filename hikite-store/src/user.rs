//! Users: one row each, with an id that is never reused. Related data (logins, grants, accounts, tokens) refers to
//! their `subject`. Every change is mirrored, in the same transaction, into the table `drawer`, which the previous
//! version reads; `adopt` imports changes of that version.

mod access;
mod adopt;
mod remove;

use hikite_core::json::{Object, Raw};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::change::kind;
use crate::database::Database;
use crate::document::Documents;
use crate::error::StoreError;
use crate::schema::{shown, stored};
pub use access::AccessKind;

/// The kind of the mirrored documents.
const KIND: &str = "user";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRow {
    /// Never reused.
    pub id: String,
    /// The user name; may change.
    pub name: String,
    /// The key that related data refers to.
    pub subject: String,
    pub role: String,
    /// Password hash.
    pub password: Option<String>,
    pub permissions: Option<Raw>,
    pub disabled: bool,
    /// The only project that the user may work in.
    pub project: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Starts at 1 and grows with every change.
    pub version: u64,
}

const COLUMNS: &str = "id, name, subject, role, password, permissions, disabled, project, created_at, version";

/// The users of a store.
#[derive(Debug)]
pub struct UserTable<'a>(pub(crate) &'a Database);

impl UserTable<'_> {
    /// Returns all users, oldest first.
    pub async fn all(&self) -> Result<Vec<UserRow>, StoreError> {
        let text = format!("SELECT {COLUMNS} FROM users ORDER BY created_at, name");
        let rows = sqlx::query(&text).fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        rows.iter().map(read).collect::<Result<_, _>>().map_err(self.0.failed())
    }

    /// Returns a user by id, or else by name.
    pub async fn get(&self, named: &str) -> Result<Option<UserRow>, StoreError> {
        let Ok(named) = self.0.checked_text(named) else { return Ok(None) };
        let text = format!("SELECT {COLUMNS} FROM users WHERE id = $1 OR name = $1");
        let rows = sqlx::query(&text).bind(named).fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        let mut users = rows.iter().map(read).collect::<Result<Vec<_>, _>>().map_err(self.0.failed())?;
        users.sort_by_key(|user| user.id != named);
        Ok(users.into_iter().next())
    }

    /// Returns `true` if a subject belongs to a user, locked out or not.
    pub async fn is_user(&self, subject: &str) -> Result<bool, StoreError> {
        let Ok(subject) = self.0.checked_text(subject) else { return Ok(false) };
        let query = sqlx::query("SELECT id FROM users WHERE subject = $1").bind(subject);
        Ok(query.fetch_optional(self.0.reader()).await.map_err(self.0.failed())?.is_some())
    }

    /// Returns `true` if a subject belongs to a user who is locked out.
    pub async fn is_locked_out(&self, subject: &str) -> Result<bool, StoreError> {
        let Ok(subject) = self.0.checked_text(subject) else { return Ok(false) };
        let query = sqlx::query("SELECT id FROM users WHERE subject = $1 AND disabled <> 0").bind(subject);
        Ok(query.fetch_optional(self.0.reader()).await.map_err(self.0.failed())?.is_some())
    }

    /// Returns a user by id only.
    pub async fn by_id(&self, id: &str) -> Result<Option<UserRow>, StoreError> {
        let Ok(id) = self.0.checked_text(id) else { return Ok(None) };
        let text = format!("SELECT {COLUMNS} FROM users WHERE id = $1");
        let row = sqlx::query(&text).bind(id).fetch_optional(self.0.reader()).await.map_err(self.0.failed())?;
        row.as_ref().map(read).transpose().map_err(self.0.failed())
    }

    /// Stores a user and consumes `taken`. Returns `false` if the id, name or subject exists, or if `taken` does not.
    pub async fn put(&self, user: &UserRow, taken: Option<(&'static str, &str)>) -> Result<bool, StoreError> {
        let mut transaction = self.0.begin().await?;
        let mut done = true;
        if let Some((kind, id)) = taken {
            done = Documents(self.0).delete(&mut transaction, (kind, id)).await?;
        }
        let user = UserRow { version: 1, ..user.clone() };
        done = done && self.insert(&mut transaction, &user).await? && self.mirror(&mut transaction, &user).await?;
        let mut touched = vec![(kind::USER, user.id.as_str())];
        touched.extend(taken);
        self.0.commit_change(transaction, done, &touched).await
    }

    /// Changes users in the versions that the rows name, all or none. The text beside each row is its previous name:
    /// project memberships are renamed too. Returns `false` if a user has another version or is gone, or a name is
    /// taken.
    pub async fn change(&self, changes: &[(UserRow, String)]) -> Result<bool, StoreError> {
        let mut transaction = self.0.begin().await?;
        let (mut done, mut projects) = (true, Vec::new());
        for (user, before) in changes {
            done = done && self.change_one(&mut transaction, user, before, &mut projects).await?;
        }
        let mut touched: Vec<(&str, &str)> = changes.iter().map(|(user, _)| (kind::USER, user.id.as_str())).collect();
        touched.extend(projects.iter().map(|name| (kind::PROJECT, name.as_str())));
        self.0.commit_change(transaction, done, &touched).await
    }

    async fn change_one(
        &self,
        connection: &mut AnyConnection,
        user: &UserRow,
        before: &str,
        projects: &mut Vec<String>,
    ) -> Result<bool, StoreError> {
        if user.name != *before && self.is_taken(connection, &user.name).await? {
            return Ok(false);
        }
        let query = sqlx::query(
            "UPDATE users SET name = $1, role = $2, password = $3, permissions = $4, disabled = $5, project = $6, \
             version = version + 1 WHERE id = $7 AND version = $8",
        );
        let query = query
            .bind(self.0.checked_text(&user.name)?)
            .bind(&*user.role)
            .bind(user.password.as_deref().unwrap_or_default())
            .bind(self.text_or_none(user.permissions.as_ref())?)
            .bind(i64::from(user.disabled))
            .bind(self.0.checked_text(user.project.as_deref().unwrap_or_default())?)
            .bind(&*user.id)
            .bind(stored(user.version));
        let done = query.execute(&mut *connection).await.map_err(self.0.failed())?.rows_affected() > 0;
        // A node of the previous version may have changed the mirror since.
        let query = sqlx::query("DELETE FROM drawer WHERE kind = $1 AND id = $2 AND version = $3");
        let query = query.bind(KIND).bind(before).bind(stored(user.version));
        let done = done && query.execute(&mut *connection).await.map_err(self.0.failed())?.rows_affected() > 0;
        if !done {
            return Ok(false);
        }
        if user.name != *before {
            projects.extend(self.rename_member(connection, before, &user.name).await?);
        }
        self.mirror(connection, &UserRow { version: user.version + 1, ..user.clone() }).await
    }

    async fn is_taken(&self, connection: &mut AnyConnection, name: &str) -> Result<bool, StoreError> {
        let query = sqlx::query("SELECT id FROM users WHERE name = $1").bind(name);
        Ok(query.fetch_optional(connection).await.map_err(self.0.failed())?.is_some())
    }

    async fn insert(&self, connection: &mut AnyConnection, user: &UserRow) -> Result<bool, StoreError> {
        let text = format!(
            "INSERT INTO users ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING"
        );
        let query = sqlx::query(&text)
            .bind(self.0.checked_text(&user.id)?)
            .bind(self.0.checked_text(&user.name)?)
            .bind(self.0.checked_text(&user.subject)?)
            .bind(&*user.role)
            .bind(user.password.as_deref().unwrap_or_default())
            .bind(self.text_or_none(user.permissions.as_ref())?)
            .bind(i64::from(user.disabled))
            .bind(self.0.checked_text(user.project.as_deref().unwrap_or_default())?)
            .bind(stored(user.created_at))
            .bind(stored(user.version));
        let done = query.execute(connection).await.map_err(self.0.failed())?;
        Ok(done.rows_affected() > 0)
    }

    /// Writes the user to the mirror for the previous version.
    async fn mirror(&self, connection: &mut AnyConnection, user: &UserRow) -> Result<bool, StoreError> {
        let form = Object::default()
            .with("role", user.role.as_str())
            .with("password", user.password.as_deref().map_or_else(Raw::null, Raw::from))
            .with("permissions", user.permissions.clone().unwrap_or_else(Raw::null))
            .with("disabled", Raw::of(&user.disabled))
            .raw();
        let query = sqlx::query(
            "INSERT INTO drawer (kind, id, owner, form, version, created_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, 0) ON CONFLICT (kind, id) DO NOTHING",
        );
        let query = query
            .bind(KIND)
            .bind(&*user.name)
            .bind(&*user.subject)
            .bind(self.0.text_of(&form)?)
            .bind(stored(user.version))
            .bind(stored(user.created_at));
        Ok(query.execute(connection).await.map_err(self.0.failed())?.rows_affected() > 0)
    }

    fn text_or_none<'r>(&self, raw: Option<&'r Raw>) -> Result<&'r str, StoreError> {
        raw.map_or(Ok(""), |raw| self.0.text_of(raw))
    }
}

fn read(row: &AnyRow) -> Result<UserRow, sqlx::Error> {
    let or_none = |text: String| Some(text).filter(|text| !text.is_empty());
    let permissions = or_none(row.try_get(5)?);
    Ok(UserRow {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        subject: row.try_get(2)?,
        role: row.try_get(3)?,
        password: or_none(row.try_get(4)?),
        // Unreadable permissions must not count as none, so they become an invalid value.
        permissions: permissions.map(|text| Raw::parse(text).unwrap_or_else(|_| Raw::from("unreadable"))),
        disabled: row.try_get::<i64, _>(6)? != 0,
        project: or_none(row.try_get(7)?),
        created_at: shown(row.try_get(8)?),
        version: shown(row.try_get(9)?),
    })
}
