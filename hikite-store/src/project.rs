//! Projects. Every change increments the revision, as for registered tools.

use hikite_core::json::Raw;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::change::kind;
use crate::database::Database;
use crate::error::StoreError;
use crate::schema::{shown, stored};

/// A project with its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRow {
    pub name: String,
    pub form: Raw,
    /// Milliseconds since 1970.
    pub created_at: u64,
}

/// The projects of a store.
#[derive(Debug)]
pub struct ProjectTable<'a>(pub(crate) &'a Database);

impl ProjectTable<'_> {
    /// Returns all projects by name.
    pub async fn all(&self) -> Result<Vec<ProjectRow>, StoreError> {
        let query = sqlx::query("SELECT name, form, created_at FROM project");
        let rows = query.fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        let mut projects = Vec::with_capacity(rows.len());
        for row in &rows {
            projects.extend(read(row).map_err(self.0.failed())?);
        }
        projects.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(projects)
    }

    /// Returns a project, if it exists and is readable.
    pub async fn get(&self, name: &str) -> Result<Option<ProjectRow>, StoreError> {
        let Ok(name) = self.0.checked_text(name) else { return Ok(None) };
        let query = sqlx::query("SELECT name, form, created_at FROM project WHERE name = $1").bind(name);
        let row = query.fetch_optional(self.0.reader()).await.map_err(self.0.failed())?;
        Ok(row.as_ref().map(read).transpose().map_err(self.0.failed())?.flatten())
    }

    /// Creates a project. Returns `false` if the name exists.
    pub async fn put(&self, project: &ProjectRow) -> Result<bool, StoreError> {
        let name = self.0.checked_text(&project.name)?;
        let form = self.0.text_of(&project.form)?;
        let text = "INSERT INTO project (name, form, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING";
        let query = sqlx::query(text).bind(name).bind(form).bind(stored(project.created_at));
        let mut transaction = self.0.begin().await?;
        let done = query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        // A new project has no tokens: those of an earlier project with its name must not apply.
        if done.rows_affected() > 0 {
            let query = sqlx::query("DELETE FROM token WHERE project = $1").bind(name);
            query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        }
        let touched = [(kind::PROJECT, name), (kind::TOKENS_OF_PROJECT, name)];
        self.0.commit_change(transaction, done.rows_affected() > 0, &touched).await
    }

    /// Replaces the form `before` of a project. Returns `false` if it has changed or is gone.
    pub async fn change(&self, name: &str, before: &Raw, form: &Raw) -> Result<bool, StoreError> {
        let query = sqlx::query("UPDATE project SET form = $1 WHERE name = $2 AND form = $3");
        let name = self.0.checked_text(name)?;
        let query = query.bind(self.0.text_of(form)?).bind(name).bind(self.0.text_of(before)?);
        let mut transaction = self.0.begin().await?;
        let done = query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        self.0.commit_change(transaction, done.rows_affected() > 0, &[(kind::PROJECT, name)]).await
    }

    /// Removes a project and its tokens, so that a later project of that name does not inherit them. Returns `false` if
    /// there is none.
    pub async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        let Ok(name) = self.0.checked_text(name) else { return Ok(false) };
        let mut transaction = self.0.begin().await?;
        let query = sqlx::query("DELETE FROM project WHERE name = $1").bind(name);
        let done = query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        if done.rows_affected() > 0 {
            let query = sqlx::query("DELETE FROM token WHERE project = $1").bind(name);
            query.execute(&mut *transaction).await.map_err(self.0.failed())?;
        }
        let touched = [(kind::PROJECT, name), (kind::TOKENS_OF_PROJECT, name)];
        self.0.commit_change(transaction, done.rows_affected() > 0, &touched).await
    }
}

/// Reads a row; an unreadable one must not affect the others. Nobody can enter that project.
fn read(row: &AnyRow) -> Result<Option<ProjectRow>, sqlx::Error> {
    let (name, form, created_at): (String, String, _) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let Ok(form) = Raw::parse(form) else {
        tracing::error!("the project `{name}` is unreadable and is skipped");
        return Ok(None);
    };
    Ok(Some(ProjectRow { name, form, created_at: shown(created_at) }))
}
