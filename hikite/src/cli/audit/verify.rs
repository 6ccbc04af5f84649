//! `hikite audit verify`: verifies the hash chain of the store or of an exported file.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use clap::Args;
use hikite_core::audit::{AuditChain, ChainBreak};
use hikite_core::json::Raw;
use hikite_store::{AuditVerification, Store, TrimEvidence};
use serde_json::{Value, json};

use crate::cli::print;
use crate::progress;

#[derive(Debug, Args)]
pub(crate) struct AuditVerifyArgs {
    /// A record and its hash noted earlier: it must still exist, or have been trimmed in order
    #[arg(long, value_name = "SEQ:HASH")]
    anchor: Option<AuditAnchor>,
    /// Verify this export (JSON Lines, all records) instead of the store
    #[arg(long, value_name = "FILE", conflicts_with = "anchor")]
    file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug)]
struct AuditAnchor(AuditChain);

impl FromStr for AuditAnchor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(':').and_then(|(seq, hash)| Some((seq.parse().ok()?, hash)));
        let (seq, hash) = parts.filter(|(_, hash)| hash.len() == 64).ok_or("write it as `120:9f86…`")?;
        Ok(Self(AuditChain::new(seq, hash.to_ascii_lowercase())))
    }
}

impl AuditVerifyArgs {
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    pub(super) async fn run(self, store: &Store) -> Result<ExitCode> {
        let (done, total) = (AtomicU64::new(0), AtomicU64::new(0));
        let print_result = |so_far, all| {
            done.store(so_far, Ordering::Relaxed);
            total.store(all, Ordering::Relaxed);
        };
        let log = store.audit();
        let work = log.verify(self.anchor.as_ref().map(|anchor| &anchor.0), print_result);
        let how_far = || (done.load(Ordering::Relaxed), total.load(Ordering::Relaxed));
        let verified = progress::with_progress("verifying the audit log", how_far, work).await?;
        let damage = hikite_store::known_damage(store.url());
        let exit_code = self.print_result(&verified, &damage);
        if damage.is_empty() {
            return Ok(exit_code);
        }
        if !self.json {
            let hint = hikite_store::damage_hint(store.url());
            print(&format!("known losses of the store:\n  {}\nhint: {hint}", damage.join("\n  ")));
        }
        Ok(ExitCode::FAILURE)
    }

    pub(super) fn run_on_file(&self, file: &Path) -> Result<ExitCode> {
        let lines = File::open(file).with_context(|| format!("cannot read `{}`", file.display()))?;
        Ok(self.print_result(&follow(BufReader::new(lines))?, &[]))
    }

    fn print_result(&self, verified: &AuditVerification, damage: &[String]) -> ExitCode {
        let AuditVerification { first, last, trim, broken } = verified;
        if self.json {
            let broken = broken.as_ref().map(|broken| json!({ "seq": broken.seq, "problem": broken.problem }));
            print(
                &json!({
                    "intact": broken.is_none(),
                    "records": verified.records(),
                    "first": first.seq,
                    "last": last.seq,
                    "hash": last.hash,
                    "trimmed": trim.as_ref().map(|trim| trimmed_json(verified, trim)),
                    "broken": broken,
                    "damage": damage,
                })
                .to_string(),
            );
        } else if let Some(broken) = broken {
            print(&format!("record {}: {}", broken.seq, broken.problem));
        } else if last.seq == 0 {
            print("there are no records, and there never were any");
        } else if last.seq == first.seq {
            print("there are no records");
            print(&trimmed_text(verified));
        } else {
            let (from, to) = (first.seq + 1, last.seq);
            print(&format!("{} records, {from} to {to}, are intact", verified.records()));
            if first.seq > 0 && trim.is_some() {
                print(&trimmed_text(verified));
            }
            print(&format!("the last is {to}:{}", last.hash));
        }
        ExitCode::from(u8::from(broken.is_some()))
    }
}

/// Describes what happened to the records before the first one.
fn trimmed_text(verified: &AuditVerification) -> String {
    let to = verified.first.seq;
    match &verified.trim {
        Some(TrimEvidence::Record { seq, .. }) => {
            format!("the records up to {to} were trimmed, as record {seq} says")
        }
        Some(TrimEvidence::Before) => {
            format!("the records up to {to} were trimmed by a version that wrote no record of it")
        }
        None => format!("the records up to {to} are not here"),
    }
}

fn trimmed_json(verified: &AuditVerification, trim: &TrimEvidence) -> Value {
    match trim {
        TrimEvidence::Record { seq, .. } => json!({ "to": verified.first.seq, "record": seq }),
        TrimEvidence::Before => json!({ "to": verified.first.seq }),
    }
}

/// Verifies an export. If it starts after record 1, the hash of its first record is trusted.
fn follow(lines: impl BufRead) -> Result<AuditVerification> {
    let mut ends: Option<(AuditChain, AuditChain)> = None;
    for line in lines.lines() {
        let line = line.context("the export cannot be read")?;
        let next = ends.as_ref().map_or(1, |(_, last)| last.seq + 1);
        let Some((seq, record, hash)) = split(&line) else {
            let (first, last) = ends.unwrap_or_else(|| (AuditChain::new(0, ""), AuditChain::new(0, "")));
            return Ok(AuditVerification {
                first,
                last,
                trim: None,
                broken: Some(ChainBreak::new(next, "the line cannot be read")),
            });
        };
        let Some((_, last)) = &mut ends else {
            let mut chain = AuditChain::new(0, "");
            if seq == 1
                && let Err(broken) = chain.follow(seq, &record, hash)
            {
                let first = AuditChain::new(0, "");
                return Ok(AuditVerification { last: first.clone(), first, trim: None, broken: Some(broken) });
            }
            ends = Some((AuditChain::new(seq - 1, ""), AuditChain::new(seq, hash)));
            continue;
        };
        if let Err(broken) = last.follow(seq, &record, hash) {
            let (first, last) = ends.unwrap_or_else(|| (AuditChain::new(0, ""), AuditChain::new(0, "")));
            return Ok(AuditVerification { first, last, trim: None, broken: Some(broken) });
        }
    }
    let (first, last) = ends.unwrap_or_else(|| (AuditChain::new(0, ""), AuditChain::new(0, "")));
    Ok(AuditVerification { first, last, trim: None, broken: None })
}

/// Splits a line into number, record as hashed, and hash.
fn split(line: &str) -> Option<(u64, String, &str)> {
    let (open, rest) = line.rsplit_once(",\"hash\":\"")?;
    let hash = rest.strip_suffix("\"}").filter(|hash| hash.len() == 64)?;
    let record = format!("{open}}}");
    let seq = Raw::parse(record.clone()).ok()?.object()?.get("seq")?.decode().ok()?;
    (seq > 0).then_some((seq, record, hash))
}

#[cfg(test)]
mod tests {
    use hikite_core::audit::AuditRecord;

    use super::*;

    fn export(count: u64) -> Vec<String> {
        let mut chain = AuditChain::new(0, "");
        let lines = (0..count).map(|n| {
            let record = chain.append(&AuditRecord { at: n, kind: "call", ..AuditRecord::default() });
            format!("{},\"hash\":\"{}\"}}", &record[..record.len() - 1], chain.hash)
        });
        lines.collect()
    }

    fn broken(lines: &[String]) -> Option<u64> {
        follow(lines.join("\n").as_bytes()).expect("read").broken.map(|broken| broken.seq)
    }

    #[test]
    fn an_export_is_verified_without_its_store() {
        let lines = export(4);
        let verified = follow(lines.join("\n").as_bytes()).expect("read");
        assert_eq!((verified.broken, verified.last.seq), (None, 4));
        assert_eq!(broken(&lines[2..]), None, "one that was trimmed before");
        for at in 0..lines.len() {
            let mut changed = lines.clone();
            changed[at] = changed[at].replace("call", "cell");
            assert_eq!(broken(&changed), Some(at as u64 + 1));
        }
        assert_eq!(broken(&[lines[0].clone(), lines[2].clone()]), Some(2));
        assert_eq!(broken(&[lines[0].clone(), "{".into()]), Some(2));
    }
}
