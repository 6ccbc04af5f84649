//! Approvals of programs that the store defines. A program starts only on a machine where somebody approved exactly its
//! definition at a terminal; the approvals are a file in the data folder, which no request can write.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::token;

const FILE: &str = "approved-programs.json";
/// Characters of a code: 48 bits of the hash.
const CODE_CHARS: usize = 12;

/// The approved definition hash of each program, by name.
#[derive(Clone, Debug)]
pub(crate) struct ProgramApprovals {
    folder: PathBuf,
}

impl ProgramApprovals {
    pub(crate) fn of(data: &Path) -> Self {
        Self { folder: data.to_owned() }
    }

    /// Returns `true` if this definition of the program is approved. A file that cannot be read approves nothing.
    pub(crate) fn allows(&self, name: &str, definition_hash: &str) -> bool {
        self.read().get(name).is_some_and(|approved| approved == definition_hash)
    }

    pub(crate) fn add(&self, name: &str, definition_hash: &str) -> Result<()> {
        let mut approved = self.read();
        approved.insert(name.to_owned(), definition_hash.to_owned());
        self.write(&approved)
    }

    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        let mut approved = self.read();
        if approved.remove(name).is_none() {
            return Ok(());
        }
        self.write(&approved)
    }

    fn read(&self) -> BTreeMap<String, String> {
        let text = fs::read_to_string(self.folder.join(FILE)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn write(&self, approved: &BTreeMap<String, String>) -> Result<()> {
        token::make_folder(&self.folder)?;
        let (file, beside) = (self.folder.join(FILE), self.folder.join(format!("{FILE}.new")));
        let shown = || format!("cannot write `{}`", file.display());
        let mut options = fs::OpenOptions::new();
        let mut written =
            options.write(true).create(true).truncate(true).mode(0o600).open(&beside).with_context(shown)?;
        written.write_all(&serde_json::to_vec_pretty(approved)?).with_context(shown)?;
        fs::rename(&beside, &file).with_context(shown)
    }
}

/// Returns the code that names a definition at a terminal, as `1A2B-3C4D-5E6F`.
pub(crate) fn code_of(definition_hash: &str) -> String {
    let digits: String = definition_hash.chars().take(CODE_CHARS).collect::<String>().to_uppercase();
    let groups: Vec<&str> = (0..digits.len()).step_by(4).map(|at| &digits[at..(at + 4).min(digits.len())]).collect();
    groups.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_holds_for_one_name_and_one_definition() {
        let folder = tempfile::tempdir().expect("a folder");
        let approvals = ProgramApprovals::of(folder.path());
        assert!(!approvals.allows("a", "0123"));
        approvals.add("a", "0123").expect("written");
        assert!(approvals.allows("a", "0123") && !approvals.allows("a", "0124") && !approvals.allows("b", "0123"));
        approvals.remove("a").expect("written");
        assert!(!approvals.allows("a", "0123"));
        fs::write(folder.path().join(FILE), "{ broken").expect("written");
        assert!(!approvals.allows("a", "0123"));
    }

    #[test]
    fn a_code_is_the_start_of_the_hash() {
        assert_eq!(code_of("0a1b2c3d4e5f6789"), "0A1B-2C3D-4E5F");
    }
}
