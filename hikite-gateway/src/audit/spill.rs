//! File for records that the store did not accept before shutdown. It has the format of an export with a hash chain of
//! its own, so that `hikite audit verify --file` reads it. Nothing is written without a folder or on a full disk.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use hikite_core::audit::{AuditChain, AuditRecord};
use hikite_store::AuditRow;

use hikite_store::clock::now_ms;

/// Prefix of the file names.
pub const UNWRITTEN_FILE: &str = "audit-unwritten-";

#[derive(Debug, Default)]
pub(super) struct SpillFile {
    folder: Option<PathBuf>,
    open: Option<(PathBuf, BufWriter<File>, AuditChain)>,
    failed: Option<io::Error>,
}

impl SpillFile {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, ..Self::default() }
    }

    pub(super) fn append(&mut self, records: &[AuditRecord]) {
        if self.failed.is_none()
            && let Err(error) = self.write(records)
        {
            self.failed = Some(error);
        }
    }

    fn write(&mut self, records: &[AuditRecord]) -> io::Result<()> {
        if self.open.is_none() {
            let folder = self.folder.as_ref().ok_or_else(|| io::Error::other("there is no folder for the file"))?;
            let path = folder.join(format!("{UNWRITTEN_FILE}{}.jsonl", now_ms()));
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            self.open = Some((path, BufWriter::new(file), AuditChain::new(0, "")));
        }
        let Some((_, file, chain)) = &mut self.open else { return Ok(()) };
        for record in records {
            let record = chain.append(record);
            let row = AuditRow { seq: chain.seq, record, hash: chain.hash.clone() };
            writeln!(file, "{}", row.line())?;
        }
        Ok(())
    }

    /// Flushes the file to disk and returns its path. An incomplete file is removed.
    pub(super) fn finish(&mut self) -> io::Result<PathBuf> {
        let open = self.open.take();
        if let Some(error) = self.failed.take() {
            if let Some((path, ..)) = open {
                let _ = std::fs::remove_file(path);
            }
            return Err(error);
        }
        let (path, file, _) = open.ok_or_else(|| io::Error::other("no records were saved"))?;
        let synced = file.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        if let Err(error) = synced {
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(path)
    }
}
