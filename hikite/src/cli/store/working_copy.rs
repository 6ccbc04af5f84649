//! A temporary copy of a backup, which can be migrated, checked and re-encrypted while the backup stays unchanged.
//! Dropping it deletes the files.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hikite_store::{Store, StoreUrl};

/// Magic bytes of a SQLite file.
const HEAD: &[u8; 16] = b"SQLite format 3\0";
const SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

#[derive(Debug)]
pub(super) struct WorkingCopy {
    path: PathBuf,
}

impl WorkingCopy {
    /// Copies `file` beside `place`, on the same disk, readable only by its owner.
    pub(super) fn beside(file: &Path, place: &Path) -> Result<Self> {
        let shown = file.display();
        let mut from = fs::File::open(file).with_context(|| format!("cannot read `{shown}`"))?;
        let mut head = Vec::new();
        from.by_ref().take(16).read_to_end(&mut head).with_context(|| format!("cannot read `{shown}`"))?;
        if head != HEAD {
            bail!("`{shown}` is not a backup of a store.\nhint: Give a file made with `hikite store backup`.");
        }
        if fs::metadata(with(file, "-wal")).is_ok_and(|journal| journal.len() > 0) {
            bail!(
                "`{shown}` is a store with a journal, not a backup.\nhint: Make a backup of it first with `hikite \
                 store backup`."
            );
        }
        let copy = Self { path: with(place, &format!(".work-{}", std::process::id())) };
        copy.remove();
        let write = || -> io::Result<()> {
            let mut options = fs::OpenOptions::new();
            let mut to = options.write(true).create_new(true).mode(0o600).open(&copy.path)?;
            io::copy(&mut fs::File::open(file)?, &mut to)?;
            to.sync_all()
        };
        write().with_context(|| format!("cannot copy `{shown}` to `{}`", copy.path.display()))?;
        Ok(copy)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the copy as a store, migrated to the newest version.
    pub(super) async fn open(&self) -> Result<Store> {
        Ok(Store::open(&StoreUrl::file(&self.path)).await?)
    }

    fn remove(&self) {
        for end in SUFFIXES {
            let _ = fs::remove_file(with(&self.path, end));
        }
    }
}

impl Drop for WorkingCopy {
    fn drop(&mut self) {
        self.remove();
    }
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
