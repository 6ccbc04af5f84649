//! The text files of the workspace, read once. Walks the folders itself, so that it also works without git.

use std::path::Path;

use anyhow::{Context, Result};

const SKIPPED: &[&str] = &[".cache", ".git", "__pycache__", "node_modules", "target"];

pub(super) struct SourceTree {
    pub(super) files: Vec<SourceFile>,
}

pub(super) struct SourceFile {
    /// Path relative to the root, with `/` as separator.
    pub(super) path: String,
    pub(super) text: String,
}

impl SourceTree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        walk(root, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.is("rs"))
    }

    pub(super) fn get(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl SourceFile {
    pub(super) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Returns the folder of the crate whose `src/` holds this file.
    pub(super) fn package(&self) -> Option<&str> {
        self.path.split_once("/src/").map(|(package, _)| package)
    }

    /// Returns `true` for a file that is compiled for tests only.
    pub(super) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/") || self.path.starts_with("tests/")
    }
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<SourceFile>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list `{}`", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            walk(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() {
            // Binary files are out of scope.
            files.extend(std::fs::read_to_string(entry.path()).ok().map(|text| SourceFile { path, text }));
        }
    }
    Ok(())
}
