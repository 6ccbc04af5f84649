//! The user's config file of a client: shown as a diff, written with a backup beside it, and restored. Everything in
//! the file but hikite's own entry and the imported servers stays byte for byte the same.

use std::fs;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hikite_config::client::ENTRY;
use hikite_config::{McpClient, Problems};
use hikite_core::hex::hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{note, print};

/// Lines shown around a change.
const CONTEXT: usize = 2;

pub(super) struct ClientFile {
    pub(super) client: &'static McpClient,
    pub(super) path: PathBuf,
    /// Text of the file; `None` if there is no file.
    pub(super) text: Option<String>,
}

/// Record of a change, in `FILE.hikite-undo`. The text before it is in `FILE.hikite-backup`.
#[derive(Debug, Deserialize, Serialize)]
struct UndoRecord {
    existed: bool,
    mode: u32,
    /// Hash of the text that hikite wrote.
    sha256: String,
    /// Paths of the servers that an import removed.
    removed: Vec<Vec<String>>,
}

impl ClientFile {
    pub(super) fn open(client: &'static McpClient) -> Result<Self> {
        let env = |name: &str| std::env::var(name).ok();
        let files = client.files(&env, std::env::consts::OS).context("`HOME` is not set")?;
        let path = files.into_iter().next().context("the client has no config file")?;
        // A link, as managers of dotfiles make them, must stay a link.
        let path = fs::canonicalize(&path).unwrap_or(path);
        let text = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
        };
        Ok(Self { client, path, text })
    }

    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns hikite's entry.
    pub(super) fn entry(&self) -> Result<Option<Value>, Problems> {
        let root = self.client.format.parse(&self.shown(), self.before())?;
        let path = self.client.entry_path(ENTRY);
        Ok(path.iter().try_fold(&root, |value, name| value.get(name)).cloned())
    }

    /// Returns the text with hikite's entry set and the removed servers left out.
    pub(super) fn with(&self, entry: &Value, removed: &[Vec<String>]) -> Result<String, Problems> {
        let mut text = self.before().to_owned();
        for path in removed {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            text = self.client.format.remove(&self.shown(), &text, &path)?;
        }
        self.client.format.set(&self.shown(), &text, &self.client.entry_path(ENTRY), entry)
    }

    /// Returns the text without hikite's entry.
    pub(super) fn without(&self) -> Result<String, Problems> {
        self.client.format.remove(&self.shown(), self.before(), &self.client.entry_path(ENTRY))
    }

    /// Writes the text and keeps the one before it for `restore`. A text that hikite wrote itself is not backed up, so
    /// that several changes are undone at once.
    pub(super) fn write(&self, text: &str, holds_token: bool, removed: &[Vec<String>]) -> Result<()> {
        let ours = self.record().filter(|record| record.sha256 == hash(self.before()));
        let mode = fs::metadata(&self.path).map_or(0o600, |data| data.permissions().mode() & 0o777);
        let (existed, first_mode, mut all) = match ours {
            Some(record) => (record.existed, record.mode, record.removed),
            None => {
                if let Some(before) = &self.text {
                    replace(&self.backup(), before, 0o600)?;
                }
                (self.text.is_some(), mode, Vec::new())
            }
        };
        all.extend_from_slice(removed);
        let record = UndoRecord { existed, mode: first_mode, sha256: hash(text), removed: all };
        replace(&self.beside("hikite-undo"), &serde_json::to_string(&record)?, 0o600)?;
        replace(&self.path, text, if holds_token { 0o600 } else { mode })
    }

    /// Writes the text without hikite's entry. Nothing is left to undo.
    pub(super) fn write_without(&self, text: &str) -> Result<()> {
        let mode = fs::metadata(&self.path).map_or(0o600, |data| data.permissions().mode() & 0o777);
        replace(&self.path, text, mode)?;
        let removed = self.record().is_some_and(|record| !record.removed.is_empty());
        self.forget(removed)
    }

    /// Returns `true` if there is a change to undo.
    pub(super) fn is_changed(&self) -> bool {
        self.record().is_some()
    }

    /// Undoes the changes of hikite, after a question. An untouched file gets its bytes back. In a file that has
    /// changed since, only hikite's entry is removed and the imported servers are put back.
    pub(super) fn restore(&self, confirmation: Confirmation) -> Result<bool> {
        let Some(record) = self.record() else {
            bail!("There is nothing to undo in `{}`.", self.shown());
        };
        let is_untouched = record.sha256 == hash(self.before());
        let backup =
            || fs::read_to_string(self.backup()).with_context(|| format!("cannot read `{}`", self.backup().display()));
        let original = if record.existed { backup()? } else { String::new() };
        let text = if is_untouched { original } else { self.put_back(&original, &record.removed)? };
        if !is_untouched {
            note(&format!("`{}` has changed since. Only the changes of hikite are undone.", self.shown()));
        }
        if !confirmation.given(&[self.diff(&text)])? {
            return Ok(false);
        }
        if is_untouched && !record.existed {
            fs::remove_file(&self.path).with_context(|| format!("cannot remove `{}`", self.shown()))?;
        } else {
            replace(&self.path, &text, record.mode)?;
        }
        self.forget(!is_untouched && record.existed)?;
        Ok(true)
    }

    /// Returns the present text with the entries that hikite changed taken from the original.
    fn put_back(&self, original: &str, removed: &[Vec<String>]) -> Result<String, Problems> {
        let format = self.client.format;
        let (root, mut text) = (format.parse(&self.shown(), original)?, self.before().to_owned());
        let ours: Vec<String> = self.client.entry_path(ENTRY).into_iter().map(str::to_owned).collect();
        for path in removed.iter().chain([&ours]) {
            let value = path.iter().try_fold(&root, |value, name| value.get(name));
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            text = match value {
                Some(value) => format.set(&self.shown(), &text, &path, value)?,
                None => format.remove(&self.shown(), &text, &path)?,
            };
        }
        Ok(text)
    }

    /// Returns the changed lines with some around them. The token in hikite's entry is hidden.
    pub(super) fn diff(&self, after: &str) -> String {
        let (old, new): (Vec<&str>, Vec<&str>) = (self.before().lines().collect(), after.lines().collect());
        let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
        let start = same(&mut old.iter().zip(&new));
        let end = same(&mut old[start..].iter().rev().zip(new[start..].iter().rev()));
        let mut lines = vec![format!("--- {}", self.shown()), format!("+++ {}", self.shown())];
        let push = |lines: &mut Vec<String>, sign: char, part: &[&str]| {
            lines.extend(part.iter().map(|line| format!("{sign}{line}")));
        };
        let (old_end, new_end) = (old.len() - end, new.len() - end);
        let begin = start.saturating_sub(CONTEXT);
        lines.push(format!("@@ line {} @@", begin + 1));
        push(&mut lines, ' ', &old[begin..start]);
        push(&mut lines, '-', &old[start..old_end]);
        push(&mut lines, '+', &new[start..new_end]);
        push(&mut lines, ' ', &old[old_end..old.len().min(old_end + CONTEXT)]);
        let diff = lines.join("\n");
        let entry = self.entry().ok().flatten();
        match entry.as_ref().and_then(|entry| self.client.token_of(entry)) {
            Some(token) => diff.replace(token, "***"),
            None => diff,
        }
    }

    fn before(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    fn record(&self) -> Option<UndoRecord> {
        serde_json::from_str(&fs::read_to_string(self.beside("hikite-undo")).ok()?).ok()
    }

    fn forget(&self, keep_backup: bool) -> Result<()> {
        let backup = (!keep_backup).then(|| self.backup());
        for path in [Some(self.beside("hikite-undo")), backup].into_iter().flatten().filter(|path| path.exists()) {
            fs::remove_file(&path).with_context(|| format!("cannot remove `{}`", path.display()))?;
        }
        Ok(())
    }

    pub(super) fn backup(&self) -> PathBuf {
        self.beside("hikite-backup")
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{suffix}"));
        name.into()
    }
}

/// Flags that say whether to write.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Confirmation {
    /// Show the change and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Write without asking
    #[arg(long, short)]
    pub(super) yes: bool,
}

impl Confirmation {
    /// Shows the changes and returns `true` if they are to be made.
    pub(super) fn given(self, changes: &[String]) -> Result<bool> {
        print(&changes.join("\n"));
        if self.dry_run {
            note("Nothing was written.");
            return Ok(false);
        }
        if self.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            bail!("The change needs a confirmation.\nhint: Use `--yes` to write it, or `--dry-run` to look only.");
        }
        let mut stderr = std::io::stderr();
        let _ = write!(stderr, "Write it? [y/N] ").and_then(|()| stderr.flush());
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).context("cannot read the answer")?;
        let is_yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
        if !is_yes {
            note("Nothing was written.");
        }
        Ok(is_yes)
    }
}

fn hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Writes a temporary file and renames it, so that a reader never sees half of it. A link stays one: its target is
/// replaced.
pub(super) fn replace(path: &Path, text: &str, mode: u32) -> Result<()> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let shown = || format!("cannot write `{}`", path.display());
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).with_context(shown)?;
    }
    let mut beside = path.to_owned().into_os_string();
    beside.push(".hikite-new");
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside).with_context(shown)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(shown)?;
    file.set_permissions(fs::Permissions::from_mode(mode)).with_context(shown)?;
    fs::rename(&beside, path).with_context(shown)
}
