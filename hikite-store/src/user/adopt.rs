//! Imports changes of nodes of the previous version: users that exist only in the mirror, were changed there, or were
//! removed from it. Each difference is found by one statement and resolved under its version, so that concurrent
//! processes do it only once.

use hikite_core::audit::digest;
use hikite_core::json::Raw;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use super::{KIND, UserRow, UserTable};
use crate::change::kind;
use crate::error::StoreError;
use crate::schema::{shown, stored};

/// Prefix of user ids.
const ID: &str = "usr_";
const ID_CHARS: usize = 24;

impl UserTable<'_> {
    /// Synchronises users and mirror; returns the number of differences.
    pub async fn adopt(&self) -> Result<u64, StoreError> {
        let mut adopted = 0;
        for user in self.users_only_in_mirror().await? {
            adopted += u64::from(self.adopt_new(user).await?);
        }
        for user in self.users_changed_in_mirror().await? {
            adopted += u64::from(self.adopt_change(&user).await?);
        }
        for user in self.users_removed_from_mirror().await? {
            tracing::info!(user = user.name, "a node of an earlier version removed a user");
            adopted += u64::from(self.remove(&user, None, None).await?);
        }
        Ok(adopted)
    }

    async fn users_only_in_mirror(&self) -> Result<Vec<UserRow>, StoreError> {
        let query = sqlx::query(
            "SELECT d.id, d.owner, d.form, d.version, d.created_at FROM drawer d LEFT JOIN users u ON u.name = d.id \
             WHERE d.kind = $1 AND u.id IS NULL",
        );
        let rows = query.bind(KIND).fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        rows.iter().map(read_new).collect::<Result<_, _>>().map_err(self.0.failed())
    }

    async fn adopt_new(&self, mut user: UserRow) -> Result<bool, StoreError> {
        let mut transaction = self.0.begin().await?;
        // Another user may have had this name in the same millisecond.
        while self.has_user(&mut transaction, &user.id).await? {
            user.id = id_from(&user.id);
        }
        let query = sqlx::query("SELECT id FROM users WHERE subject = $1").bind(&*user.subject);
        let taken = query.fetch_optional(&mut *transaction).await.map_err(self.0.failed())?.is_some();
        if taken {
            // A previous user of this name still owns the data of that subject.
            user.subject = user.id.clone();
        }
        let query = sqlx::query("UPDATE drawer SET owner = $1 WHERE kind = $2 AND id = $3 AND version = $4");
        let query = query.bind(&*user.subject).bind(KIND).bind(&*user.name).bind(stored(user.version));
        let there = query.execute(&mut *transaction).await.map_err(self.0.failed())?.rows_affected() > 0;
        let done = there && self.insert(&mut transaction, &user).await?;
        self.0.commit_change(transaction, done, &[(kind::USER, &user.id)]).await
    }

    async fn has_user(&self, connection: &mut AnyConnection, id: &str) -> Result<bool, StoreError> {
        let query = sqlx::query("SELECT id FROM users WHERE id = $1").bind(id);
        Ok(query.fetch_optional(connection).await.map_err(self.0.failed())?.is_some())
    }

    /// Returns the users as changed in the mirror.
    async fn users_changed_in_mirror(&self) -> Result<Vec<UserRow>, StoreError> {
        let query = sqlx::query(
            "SELECT u.name, u.subject, d.form, d.version, u.created_at, u.id, u.project \
             FROM users u JOIN drawer d ON d.kind = $1 AND d.id = u.name WHERE d.version <> u.version",
        );
        let rows = query.bind(KIND).fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        let changed = |row: &AnyRow| -> Result<UserRow, sqlx::Error> {
            let project: String = row.try_get(6)?;
            let project = Some(project).filter(|project| !project.is_empty());
            Ok(UserRow { id: row.try_get(5)?, project, ..read_new(row)? })
        };
        rows.iter().map(changed).collect::<Result<_, _>>().map_err(self.0.failed())
    }

    async fn adopt_change(&self, user: &UserRow) -> Result<bool, StoreError> {
        let query = sqlx::query(
            "UPDATE users SET role = $1, password = $2, permissions = $3, disabled = $4, version = $5 \
             WHERE id = $6 AND version <> $5 \
             AND EXISTS (SELECT 1 FROM drawer WHERE kind = $7 AND id = $8 AND version = $5)",
        );
        let query = query
            .bind(&*user.role)
            .bind(user.password.as_deref().unwrap_or_default())
            .bind(self.text_or_none(user.permissions.as_ref())?)
            .bind(i64::from(user.disabled))
            .bind(stored(user.version))
            .bind(&*user.id)
            .bind(KIND)
            .bind(&*user.name);
        let mut transaction = self.0.begin().await?;
        let done = query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        self.0.commit_change(transaction, done.rows_affected() > 0, &[(kind::USER, &user.id)]).await
    }

    async fn users_removed_from_mirror(&self) -> Result<Vec<UserRow>, StoreError> {
        let text = format!(
            "SELECT {} FROM users WHERE NOT EXISTS (SELECT 1 FROM drawer d WHERE d.kind = $1 AND d.id = users.name)",
            super::COLUMNS
        );
        let rows = sqlx::query(&text).bind(KIND).fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        rows.iter().map(super::read).collect::<Result<_, _>>().map_err(self.0.failed())
    }
}

/// Reads name, subject, form, version and time from the mirror. The id is derived from immutable data, so that two
/// processes generate the same one. A user with an unreadable form is locked out.
fn read_new(row: &AnyRow) -> Result<UserRow, sqlx::Error> {
    let (name, subject): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    let (form, created_at): (String, i64) = (row.try_get(2)?, row.try_get(4)?);
    let form = Raw::parse(form).ok().and_then(|form| form.object());
    let is_readable = form.is_some();
    let form = form.unwrap_or_default();
    let flag = form.get("disabled").and_then(|flag| flag.decode().ok()).unwrap_or(!is_readable);
    Ok(UserRow {
        id: id_from(&format!("{name}\n{subject}\n{created_at}")),
        name,
        subject,
        role: form.text("role").unwrap_or_else(|| "member".into()),
        password: form.text("password"),
        permissions: form.get("permissions").filter(|value| !value.is_null()).cloned(),
        disabled: flag,
        project: None,
        created_at: shown(created_at),
        version: shown(row.try_get(3)?),
    })
}

fn id_from(text: &str) -> String {
    format!("{ID}{}", &digest(text.as_bytes())[..ID_CHARS])
}
