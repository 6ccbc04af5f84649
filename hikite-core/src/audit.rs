//! Audit records and their hash chain. Each hash covers the record and the previous hash, so a changed, removed or
//! moved record breaks the chain.

pub mod table;

use std::io::Write;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::json::{Object, Raw};
use crate::tokens;

/// Maximum number of characters of a client-supplied text in a record.
const TEXT_CHARS: usize = 200;
/// Initial buffer capacity; most records are shorter.
const TEXT_BYTES: usize = 640;

/// One audited operation: caller, target and outcome. Unset members are left out of the JSON text. Argument values are
/// never recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRecord {
    /// Start time in milliseconds since the Unix epoch.
    pub at: u64,
    /// `call`, `read`, `subscribe`, `prompt`, `complete`, `task`, `search`, `admin`, `lost` or `trim`.
    pub kind: &'static str,
    /// `allowed`, or `refused` if nothing ran.
    pub decision: &'static str,
    /// `ok`, `tool_error`, `cancelled`, or an error code.
    pub outcome: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// Id of the user, followed by the user's name at that time.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Id of the personal token.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// Client's own name and version, `name/version`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// Account whose credentials were used.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub account: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub surface: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub method: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub module: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// Requested target: a key, `category/tool`, or an address without its query.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub what: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arguments_hash: String,
    pub ms: f64,
    #[serde(skip_serializing_if = "is_zero")]
    pub attempts: u64,
    #[serde(skip_serializing_if = "is_false")]
    pub cached: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_in: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_out: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub tokens_estimated: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub provider: &'static str,
    #[serde(skip_serializing_if = "is_zero")]
    pub queries: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub queries_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<u64>,
    /// Number of records dropped since the last record that reports drops.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Trace id of the request.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trace_id: String,
    /// Number of records that a trim removed from the start of the chain.
    #[serde(skip_serializing_if = "is_zero")]
    pub trimmed: u64,
    /// Sequence number of the last record that a trim removed.
    #[serde(skip_serializing_if = "is_zero")]
    pub trimmed_to: u64,
    /// Hash of the last record that a trim removed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trimmed_hash: String,
}

/// Record kind that a trim writes.
pub const TRIM: &str = "trim";

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl AuditRecord {
    /// Returns the JSON text of the record, exactly as it is stored, hashed and shown.
    pub fn text(&self, seq: u64) -> String {
        let mut text = Vec::with_capacity(TEXT_BYTES);
        let _ = write!(text, "{{\"seq\":{seq}");
        // `seq` comes first. `at` is never skipped, so the opening brace of the rest can become a comma.
        let rest = text.len();
        let _ = serde_json::to_writer(&mut text, self);
        if let Some(opens) = text.get_mut(rest) {
            *opens = b',';
        }
        String::from_utf8(text).unwrap_or_default()
    }

    /// Sets the estimated token count from the byte counts.
    #[must_use]
    pub fn with_tokens(self) -> Self {
        let tokens_estimated = tokens::of_bytes(self.bytes_in + self.bytes_out);
        Self { tokens_estimated, ..self }
    }
}

/// Truncates a client-supplied text and replaces control characters, which databases and terminals reject.
pub fn printable_excerpt(text: &str) -> String {
    if text.len() <= TEXT_CHARS && text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        return text.to_owned();
    }
    let mut printable_excerpt: String = text.chars().take(TEXT_CHARS).map(plain).collect();
    if text.len() > printable_excerpt.len() && text.chars().nth(TEXT_CHARS).is_some() {
        printable_excerpt.push('…');
    }
    printable_excerpt
}

fn plain(char: char) -> char {
    if char.is_control() { char::REPLACEMENT_CHARACTER } else { char }
}

/// Returns the SHA-256 of `bytes` in hex, recorded in place of the bytes themselves.
pub fn digest(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes).as_slice())
}

/// Columns by which records are searched, each with the record member that it repeats.
pub const COLUMNS: [(&str, &str); 8] = [
    ("kind", "kind"),
    ("decision", "decision"),
    ("outcome", "outcome"),
    ("request_id", "requestId"),
    ("subject", "subject"),
    ("project", "project"),
    ("module", "module"),
    ("tool", "tool"),
];

/// The end of an audit chain: the last sequence number and hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditChain {
    pub seq: u64,
    /// Hash of the last record; empty before the first.
    pub hash: String,
}

/// The first record at which a chain does not verify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainBreak {
    pub seq: u64,
    pub problem: String,
}

impl ChainBreak {
    pub fn new(seq: u64, problem: impl Into<String>) -> Self {
        Self { seq, problem: problem.into() }
    }
}

impl AuditChain {
    pub fn new(seq: u64, hash: impl Into<String>) -> Self {
        Self { seq, hash: hash.into() }
    }

    /// Appends a record, updates the chain's hash, and returns the record's text.
    pub fn append(&mut self, record: &AuditRecord) -> String {
        self.seq += 1;
        let text = record.text(self.seq);
        self.hash = link(&self.hash, &text);
        text
    }

    /// Verifies the next record against its hash and sequence number, and returns its members.
    pub fn follow(&mut self, seq: u64, record: &str, hash: &str) -> Result<Object, ChainBreak> {
        let expected = self.seq + 1;
        if seq != expected {
            let problem = if seq > expected { "the record is missing" } else { "another record has the same number" };
            return Err(ChainBreak::new(expected.min(seq), problem));
        }
        let wrong = |problem: &str| Err(ChainBreak::new(seq, problem));
        if link(&self.hash, record) != hash {
            return wrong("the hash does not match the record and the previous hash");
        }
        let Some(members) = Raw::parse(record.to_owned()).ok().and_then(|record| record.object()) else {
            return wrong("the record is not a JSON object");
        };
        if members.get("seq").and_then(|seq| seq.decode::<u64>().ok()) != Some(seq) {
            return wrong("the record contains a different number");
        }
        *self = Self::new(seq, hash);
        Ok(members)
    }
}

/// Hashes the previous hash and the record. The boundary is unambiguous: the previous hash is empty or 64 digits long,
/// and a record begins with a brace.
fn link(before: &str, record: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(before);
    hash.update(record);
    hex(hash.finalize().as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(what: &str) -> AuditRecord {
        AuditRecord { at: 5, kind: "call", outcome: "ok", what: printable_excerpt(what), ..AuditRecord::default() }
    }

    fn chain(count: u64) -> (Vec<(u64, String, String)>, AuditChain) {
        let mut chain = AuditChain::new(0, "");
        let rows = (0..count).map(|n| {
            let text = chain.append(&record(&format!("m:{n}")));
            (chain.seq, text, chain.hash.clone())
        });
        (rows.collect(), chain)
    }

    fn walk(rows: &[(u64, String, String)]) -> Result<AuditChain, ChainBreak> {
        let mut chain = AuditChain::new(0, "");
        for (seq, text, hash) in rows {
            chain.follow(*seq, text, hash)?;
        }
        Ok(chain)
    }

    #[test]
    fn a_record_has_one_text_and_says_nothing_of_what_it_does_not_have() {
        assert_eq!(
            record("m:t").text(7),
            r#"{"seq":7,"at":5,"kind":"call","decision":"","outcome":"ok","what":"m:t","ms":0.0}"#
        );
        let whole = AuditRecord { bytes_in: 3, bytes_out: 6, results: Some(0), ..record("x") }.with_tokens();
        assert!(
            whole.text(1).ends_with(r#""bytesIn":3,"bytesOut":6,"tokensEstimated":3,"results":0}"#),
            "{}",
            whole.text(1)
        );
    }

    #[test]
    fn text_of_a_client_is_short_and_plain() {
        assert_eq!(printable_excerpt("a\0b\nc\u{1b}[0m"), "a\u{fffd}b\u{fffd}c\u{fffd}[0m");
        assert_eq!(printable_excerpt(&"é".repeat(200)), "é".repeat(200));
        assert_eq!(printable_excerpt(&"é".repeat(201)), "é".repeat(200) + "…");
    }

    #[test]
    fn a_chain_follows_itself_and_the_hash_is_the_one_that_is_described() {
        let (rows, end) = chain(5);
        assert_eq!(walk(&rows), Ok(end));
        assert_eq!(rows[0].2, digest(rows[0].1.as_bytes()));
        assert_eq!(rows[1].2, digest(format!("{}{}", rows[0].2, rows[1].1).as_bytes()));
    }

    #[test]
    fn every_byte_of_every_record_counts() {
        let (rows, _) = chain(3);
        for at in 0..rows.len() {
            let (_, text, hash) = &rows[at];
            for byte in 0..text.len() {
                let mut changed = rows.clone();
                let mut bytes = text.clone().into_bytes();
                bytes[byte] ^= 1;
                changed[at].1 = String::from_utf8_lossy(&bytes).into_owned();
                assert_eq!(walk(&changed).expect_err("changed").seq, rows[at].0);
            }
            for digit in 0..hash.len() {
                let mut changed = rows.clone();
                let other = if &hash[digit..=digit] == "0" { "1" } else { "0" };
                changed[at].2.replace_range(digit..=digit, other);
                assert_eq!(walk(&changed).expect_err("changed").seq, rows[at].0);
            }
        }
    }

    #[test]
    fn what_is_missing_moved_or_doubled_is_named() {
        let (rows, _) = chain(4);
        let broken = |rows: &[(u64, String, String)]| walk(rows).expect_err("broken");
        assert_eq!(broken(&[rows[0].clone(), rows[2].clone()]), ChainBreak::new(2, "the record is missing"));
        assert_eq!(broken(&[rows[0].clone(), rows[0].clone()]).seq, 1);
        let swapped: Vec<_> =
            rows.iter().zip([0, 2, 1, 3]).map(|(row, n)| (row.0, rows[n].1.clone(), rows[n].2.clone())).collect();
        assert_eq!(broken(&swapped).seq, 2);
    }
}
