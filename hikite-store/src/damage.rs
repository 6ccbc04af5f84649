//! Detects a SQLite store that lost data. SQLite treats a damaged WAL as if it ended before the damage; so the WAL is
//! inspected before SQLite opens it, and the end of the audit chain is kept in a small file beside the database.
//! Findings are logged, audited, and kept in a file that `doctor`, `store check` and `audit verify` show until somebody
//! removes it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use hikite_core::audit::AuditRecord;
use hikite_core::time::rfc3339;
use sqlx::Row;

use crate::audit::{AuditBatch, AuditLog};
use crate::audit_head::AuditHead;
use crate::clock::StoreClock;
use crate::database::Database;
use crate::error::StoreError;
use crate::schema::shown;
use crate::url::{StoreUrl, sidecar};
use crate::wal::{self, WalDamage};

/// Suffixes of files beside the database.
pub(crate) const FINDINGS: &str = ".damage";
const LOG: &str = "-wal";
/// Number of inspections; a WAL being written looks damaged for a moment.
const INSPECTIONS: usize = 3;

/// Inspects the WAL before SQLite opens it. A damaged one is copied, because SQLite overwrites it.
pub(crate) fn inspect_wal(url: &StoreUrl) -> Option<String> {
    let path = url.path()?;
    let damage = damage_of(path)?;
    let log = sidecar(path, LOG);
    let copy = (1..1000).map(|n| sidecar(path, &format!("{LOG}.damaged-{n}"))).find(|copy| !copy.exists())?;
    let saved = match fs::copy(&log, &copy) {
        Ok(_) => format!("a copy is in `{}`", copy.display()),
        Err(error) => format!("it could not be copied: {error}"),
    };
    let WalDamage { frame, commits } = damage;
    let place = if frame == 0 { "its header".to_owned() } else { format!("frame {frame}") };
    Some(format!(
        "the log `{}` is damaged at {place}: {commits} committed transactions after it cannot be read; {saved}",
        log.display()
    ))
}

fn damage_of(path: &Path) -> Option<WalDamage> {
    let mut found = None;
    for _ in 0..INSPECTIONS {
        let page_bytes = page_bytes(path).unwrap_or_default();
        let log = File::open(sidecar(path, LOG)).ok()?;
        found = Some(wal::inspect(BufReader::with_capacity(1 << 16, log), page_bytes).ok()??);
    }
    found
}

/// Reads the page size from the database header.
fn page_bytes(path: &Path) -> io::Result<usize> {
    let mut header = [0; 18];
    File::open(path)?.read_exact(&mut header)?;
    let size = usize::from(u16::from_be_bytes([header[16], header[17]]));
    Ok(if size == 1 { 65_536 } else { size })
}

/// Compares the end of the audit chain with the recorded one and reports all damage. A store that cannot be read or
/// written is opened nevertheless; its problems are reported elsewhere.
pub(crate) async fn report_damage(database: &Database, log: Option<String>) {
    // The file was moved away on purpose to start afresh.
    if database.found == 0 {
        if let Some(head) = &database.head {
            head.forget();
        }
        return;
    }
    // The recorded end is read first, because the chain may grow meanwhile.
    let noted = database.head.as_ref().and_then(AuditHead::read);
    let last = audit_last(database).await.ok();
    let gone = noted.zip(last).filter(|(noted, last)| noted.seq > *last);
    let gone = gone.map(|(noted, last)| (noted.seq - last, format!("records {} to {}", last + 1, noted.seq)));
    let of_audit = gone.as_ref().map(|(_, which)| format!("{which} of the audit log were written and are lost"));
    let found: Vec<String> = log.into_iter().chain(of_audit).collect();
    if found.is_empty() {
        return;
    }
    for what in &found {
        tracing::error!("{what}\nhint: {HINT}");
    }
    let now = StoreClock(database).now_ms().await.unwrap_or_default();
    save_findings(&database.url, now, &found);
    if let Err(error) = AuditLog(database).append(&mut AuditBatch::new(vec![record(now, gone)])).await {
        tracing::error!("failed to record this in the audit log: {error}");
    }
}

async fn audit_last(database: &Database) -> Result<u64, StoreError> {
    let query = sqlx::query("SELECT seq FROM audit_end WHERE name = 'last'");
    let row = query.fetch_one(database.reader()).await.map_err(database.failed())?;
    Ok(shown(row.try_get(0).map_err(database.failed())?))
}

/// Returns the recorded data losses that nobody has acknowledged, oldest first.
pub fn known_damage(url: &StoreUrl) -> Vec<String> {
    let Some(path) = url.path() else { return Vec::new() };
    let file = sidecar(path, FINDINGS);
    let text = fs::read_to_string(&file).unwrap_or_default();
    text.lines().map(ToOwned::to_owned).collect()
}

/// Returns advice on how to handle the damage.
pub fn damage_hint(url: &StoreUrl) -> String {
    let file = url.path().map(|path| sidecar(path, FINDINGS).display().to_string());
    format!("{HINT}; then remove `{}`", file.unwrap_or_default())
}

fn save_findings(url: &StoreUrl, now: u64, found: &[String]) {
    let Some(path) = url.path() else { return };
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(sidecar(path, FINDINGS));
    let write = |mut file: fs::File| found.iter().try_for_each(|what| writeln!(file, "{} {what}", rfc3339(now)));
    if let Err(error) = file.and_then(write) {
        tracing::error!(%error, "failed to save this for `hikite doctor`");
    }
}

/// Builds the audit record of a data loss.
fn record(now: u64, gone: Option<(u64, String)>) -> AuditRecord {
    let (lost, what) = match gone {
        Some((count, which)) => (count, format!("{which} were written and are lost")),
        None => (0, "the log of the store was damaged".into()),
    };
    AuditRecord {
        at: now,
        kind: "lost",
        decision: "allowed",
        outcome: "ok",
        method: "store.damage",
        what,
        lost,
        ..AuditRecord::default()
    }
}

const HINT: &str = "Check the disk and restore a backup with `hikite store restore`, or accept the loss";
