//! `hikite audit export`: writes records as JSON Lines with their hashes, or as CSV. Records are streamed, so memory
//! use does not depend on their number.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use hikite_core::audit::table;
use hikite_store::{AuditCursor, AuditFilter, Store};

use super::AuditFilterArgs;
use crate::cli::note;

/// Records read per page.
const PAGE_SIZE: usize = 1000;

#[derive(Debug, Args)]
pub(crate) struct AuditExportArgs {
    #[command(flatten)]
    filters: AuditFilterArgs,
    /// JSON Lines, which can be verified, or CSV
    #[arg(long, value_enum, default_value_t = AuditExportFormat::Jsonl)]
    format: AuditExportFormat,
    /// The file to create; it must not exist yet [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AuditExportFormat {
    Jsonl,
    Csv,
}

impl AuditExportArgs {
    pub(super) async fn run(self, store: &Store) -> Result<ExitCode> {
        let filter = self.filters.filter();
        let Some(path) = &self.out else {
            let written = write(store, &filter, self.format, &mut BufWriter::new(io::stdout())).await;
            return ignore_closed_pipe(written);
        };
        let mut file = BufWriter::new(create(path)?);
        let count = write(store, &filter, self.format, &mut file).await?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all().with_context(|| format!("cannot write `{}`", path.display()))?;
        note(&format!("{}: {count} records", path.display()));
        Ok(ExitCode::SUCCESS)
    }
}

/// Creates a file that only its owner can read: it shows what people do.
fn create(path: &Path) -> Result<std::fs::File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.with_context(|| format!("cannot create `{}`\nhint: Choose a file that does not exist yet.", path.display()))
}

/// Treats a closed stdout as success.
fn ignore_closed_pipe(written: Result<u64>) -> Result<ExitCode> {
    let is_gone = |error: &anyhow::Error| {
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    match written {
        Err(error) if !is_gone(&error) => Err(error),
        _ => Ok(ExitCode::SUCCESS),
    }
}

async fn write(
    store: &Store,
    filter: &AuditFilter,
    format: AuditExportFormat,
    out: &mut (dyn Write + Send),
) -> Result<u64> {
    if format == AuditExportFormat::Csv {
        writeln!(out, "{}", table::head())?;
    }
    let (mut after, mut count) = (0, 0);
    loop {
        let page = store.audit().page(filter, AuditCursor::On(after), PAGE_SIZE).await?;
        for row in &page.rows {
            match format {
                AuditExportFormat::Jsonl => writeln!(out, "{}", row.line())?,
                AuditExportFormat::Csv => writeln!(out, "{}", table::line(&row.record, &row.hash))?,
            }
            count += 1;
        }
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    out.flush()?;
    Ok(count)
}
