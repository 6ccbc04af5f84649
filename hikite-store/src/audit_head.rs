//! The end of the audit chain, in a small file beside a SQLite store.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use hikite_core::audit::AuditChain;
use parking_lot::Mutex;

use crate::url::{StoreUrl, sidecar};

/// Suffix of the file.
pub(crate) const HEAD: &str = ".audit-head";

/// The recorded end of the audit chain. Not synced: after a power cut it may lag behind the store, but never be ahead.
#[derive(Debug)]
pub(crate) struct AuditHead {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl AuditHead {
    /// Returns the head beside a file store; `None` for other stores.
    pub(crate) fn sidecar(url: &StoreUrl) -> Option<Self> {
        Some(Self { path: sidecar(url.path()?, HEAD), file: Mutex::default() })
    }

    /// Records the committed end of the chain.
    pub(crate) fn note(&self, chain: &AuditChain) {
        let mut file = self.file.lock();
        if file.is_none() {
            let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&self.path);
            *file = opened.ok();
        }
        if let Some(file) = &*file
            && let Err(error) = file.write_all_at(line(chain).as_bytes(), 0)
        {
            tracing::debug!(%error, "failed to note the end of the audit log beside the store");
        }
    }

    /// Removes the file, which belongs to an earlier store.
    pub(crate) fn forget(&self) {
        let _ = fs::remove_file(&self.path);
    }

    pub(crate) fn read(&self) -> Option<AuditChain> {
        let text = fs::read_to_string(&self.path).ok()?;
        let (seq, hash) = text.trim_end().split_once(':')?;
        let seq = seq.parse().ok()?;
        (hash.len() == 64).then(|| AuditChain::new(seq, hash))
    }
}

/// Formats the line, always in the same length so that it can be overwritten.
fn line(chain: &AuditChain) -> String {
    format!("{:020}:{}\n", chain.seq, chain.hash)
}
