//! `hikite audit`: reads the audit log from the store, with or without a running hikite.

mod export;
mod resume;
mod verify;

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use hikite_core::json::{Object, Raw};
use hikite_core::time::{self, rfc3339};
use hikite_store::{AuditCursor, AuditFilter, AuditRow, Store};

use super::{GlobalArgs, print};
use crate::progress;

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List the records, newest first
    List(AuditListArgs),
    /// Verify the hash chain; exits with code 1 and names the first broken record
    Verify(verify::AuditVerifyArgs),
    /// Write records to a file or to stdout, oldest first
    Export(export::AuditExportArgs),
    /// Confirm this machine's clock after a jump, so that old records are deleted again
    ResumeTrim(resume::ResumeTrim),
}

#[derive(Debug, Args)]
pub(crate) struct AuditListArgs {
    #[command(flatten)]
    filters: AuditFilterArgs,
    /// The maximum number of records
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Only records with a smaller number
    #[arg(long, value_name = "SEQ")]
    before: Option<u64>,
    /// Print JSON, one record per line
    #[arg(long)]
    json: bool,
}

/// Which records; nothing means all.
#[derive(Debug, Args)]
pub(crate) struct AuditFilterArgs {
    /// call, read, subscribe, prompt, complete, task, search, admin, identity, lost or trim
    #[arg(long)]
    kind: Option<String>,
    /// allowed or refused
    #[arg(long)]
    decision: Option<String>,
    /// ok, `tool_error`, cancelled, or the code of an error
    #[arg(long)]
    outcome: Option<String>,
    /// The id of one request
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
    #[arg(long)]
    subject: Option<String>,
    /// A user by name, id or subject
    #[arg(long, value_name = "WHO")]
    actor: Option<String>,
    #[arg(long)]
    project: Option<String>,
    #[arg(long)]
    module: Option<String>,
    #[arg(long)]
    tool: Option<String>,
    /// From this time on, such as `2026-11-15T08:30:00Z`, or milliseconds since 1970
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    since: Option<u64>,
    /// Before this time
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    until: Option<u64>,
    /// Text in the record, ignoring case
    #[arg(long)]
    text: Option<String>,
}

impl AuditCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        if let Self::Verify(verify) = &self
            && let Some(file) = verify.file()
        {
            return verify.run_on_file(file);
        }
        let config = common.load()?;
        let store = Store::open_with_backup(&config.store_url(), &config.data).await?;
        let outcome = match self {
            Self::List(list) => list.run(&store).await,
            Self::Verify(verify) => verify.run(&store).await,
            Self::Export(export) => export.run(&store).await,
            Self::ResumeTrim(resume) => resume.run(&store).await,
        };
        store.close().await;
        outcome
    }
}

impl AuditListArgs {
    async fn run(self, store: &Store) -> Result<ExitCode> {
        let filter = self.filters.filter();
        let log = store.audit();
        let work = log.read(&filter, AuditCursor::Back(self.before), self.limit);
        let rows = progress::with_spinner("reading the audit log", work).await?;
        if self.json {
            for row in &rows {
                print(&row.line());
            }
        } else {
            print(&table(&rows));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl AuditFilterArgs {
    pub(crate) fn filter(&self) -> AuditFilter {
        AuditFilter {
            kind: self.kind.clone(),
            decision: self.decision.clone(),
            outcome: self.outcome.clone(),
            request_id: self.request_id.clone(),
            subject: self.subject.clone(),
            actor: self.actor.clone(),
            project: self.project.clone(),
            module: self.module.clone(),
            tool: self.tool.clone(),
            since: self.since,
            until: self.until,
            text: self.text.clone(),
        }
    }
}

fn moment(text: &str) -> Result<u64, String> {
    time::read(text).ok_or_else(|| "write it as `2026-11-15T08:30:00Z`".into())
}

/// Formats the records as lines: time, number, actor, kind, subject and outcome.
fn table(rows: &[AuditRow]) -> String {
    let cells: Vec<[String; 6]> = rows.iter().map(cells).collect();
    let width = |at: usize| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    let mut text = String::new();
    for row in &cells {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "{cell:width$}  ");
        }
        let _ = writeln!(text, "{}", row[5]);
    }
    let _ = write!(text, "{} record{}", rows.len(), if rows.len() == 1 { "" } else { "s" });
    text
}

fn cells(row: &AuditRow) -> [String; 6] {
    let record = Raw::parse(row.record.clone()).ok().and_then(|record| record.object()).unwrap_or_default();
    let text = |name: &str| record.text(name).unwrap_or_default();
    let number = |name: &str| record.get(name).map(|value| value.as_str().into_owned()).unwrap_or_default();
    let at = record.get("at").and_then(|at| at.decode().ok()).unwrap_or_default();
    let outcome = format!("{} {} ms", text("outcome"), number("ms"));
    let who = record.text("user").unwrap_or_else(|| text("subject"));
    [rfc3339(at), row.seq.to_string(), who, text("kind"), what(&record), outcome]
}

fn what(record: &Object) -> String {
    let text = |name: &str| record.text(name).unwrap_or_default();
    match text("kind").as_str() {
        "admin" | "identity" => format!("{} {}", text("method"), text("what")),
        "search" => text("provider"),
        "lost" => record.get("lost").map(|lost| lost.as_str().into_owned()).unwrap_or_default(),
        _ => text("what"),
    }
}
