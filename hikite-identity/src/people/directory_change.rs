//! Changed rows of projects and tokens, read from the store one by one where the change log names them.

use hikite_core::error::Error;
use hikite_store::{ChangeSet, ProjectRow, Store, TokenRow, change_kind};

use super::directory::AccessDirectory;

#[derive(Default)]
pub(super) struct DirectoryChanges {
    /// All projects, if the change log does not name the changed ones.
    all_projects: Option<Vec<ProjectRow>>,
    projects: Vec<(String, Option<ProjectRow>)>,
    all_tokens: Option<Vec<TokenRow>>,
    tokens: Vec<(String, Option<TokenRow>)>,
    tokens_of: Vec<(String, Vec<TokenRow>)>,
}

pub(super) async fn read(store: &Store, changes: &ChangeSet) -> Result<DirectoryChanges, Error> {
    let mut news = DirectoryChanges::default();
    match changes.ids(change_kind::PROJECT) {
        Some(names) => {
            for name in names {
                news.projects.push((name.to_owned(), store.projects().get(name).await?));
            }
        }
        None => news.all_projects = Some(store.projects().all().await?),
    }
    match (changes.ids(change_kind::TOKEN), changes.ids(change_kind::TOKENS_OF_PROJECT)) {
        (Some(ids), Some(projects)) => {
            for id in ids {
                news.tokens.push((id.to_owned(), store.tokens().get(id).await?));
            }
            for project in projects {
                news.tokens_of.push((project.to_owned(), store.tokens().of_project(project).await?));
            }
        }
        _ => news.all_tokens = Some(store.tokens().all().await?),
    }
    Ok(news)
}

impl DirectoryChanges {
    pub(super) fn is_empty(&self) -> bool {
        self.all_projects.is_none()
            && self.all_tokens.is_none()
            && self.projects.is_empty()
            && self.tokens.is_empty()
            && self.tokens_of.is_empty()
    }

    /// Applies the rows to a directory. Returns `true` if the effective projects changed.
    pub(super) fn apply_to(&self, directory: &mut AccessDirectory) -> bool {
        let mut differs = self.all_projects.as_ref().is_some_and(|rows| directory.set_projects(rows));
        for (name, row) in &self.projects {
            differs |= directory.set_project(name, row.as_ref());
        }
        if let Some(rows) = &self.all_tokens {
            directory.set_tokens(rows);
        }
        for (id, row) in &self.tokens {
            match row {
                Some(row) => directory.put_token(row),
                None => directory.remove_token(id),
            }
        }
        for (project, rows) in &self.tokens_of {
            directory.set_tokens_of(project, rows);
        }
        differs
    }
}
