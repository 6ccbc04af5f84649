//! Audit records as CSV for spreadsheets. Cells that a spreadsheet would run as a formula are escaped.

use crate::json::{Object, Raw};

/// CSV columns, named after the members of a record.
#[rustfmt::skip]
const COLUMNS: [&str; 35] = [
    "seq", "at", "kind", "decision", "outcome", "requestId", "subject", "userId", "user", "token", "client", "project",
    "account", "session", "surface", "method", "module", "tool", "what", "argumentsHash", "ms", "attempts", "cached", "bytesIn",
    "bytesOut", "tokensEstimated", "provider", "queries", "queriesHash", "results", "lost", "traceId", "trimmed",
    "trimmedTo", "trimmedHash",
];

/// Returns the header line.
pub fn head() -> String {
    format!("{},hash", COLUMNS.join(","))
}

/// Returns the CSV line of a record. `record` is the text that was hashed.
pub fn line(record: &str, hash: &str) -> String {
    let record = Raw::parse(record.to_owned()).ok().and_then(|record| record.object()).unwrap_or_default();
    let cells = COLUMNS.iter().map(|name| cell(&record, name));
    cells.chain([hash.to_owned()]).collect::<Vec<String>>().join(",")
}

fn cell(record: &Object, name: &str) -> String {
    match record.get(name) {
        None => String::new(),
        Some(value) => value.text().map_or_else(|| value.as_str().into_owned(), |text| quoted(&text)),
    }
}

/// Quotes a cell as in RFC 4180. A cell that looks like a formula gets a leading `'`, since names come from clients.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if !formula && !text.contains([',', '"', '\n', '\r']) {
        return text.to_owned();
    }
    format!("\"{}{}\"", if formula { "'" } else { "" }, text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_cell_and_never_a_formula() {
        for (text, cell) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
            ("@x", "\"'@x\""),
            ("", ""),
        ] {
            assert_eq!(quoted(text), cell);
        }
    }

    #[test]
    fn the_columns_are_the_members_of_a_record_in_their_order() {
        let full = crate::audit::AuditRecord {
            request_id: "r".into(),
            subject: "s".into(),
            user_id: "u".into(),
            user: "u".into(),
            token: "t".into(),
            client: "c".into(),
            project: "p".into(),
            account: "a".into(),
            session: Some(1),
            surface: "s",
            method: "m",
            module: "m".into(),
            tool: "t".into(),
            what: "w".into(),
            arguments_hash: "h".into(),
            attempts: 1,
            cached: true,
            bytes_in: 1,
            bytes_out: 1,
            tokens_estimated: 1,
            provider: "p",
            queries: 1,
            queries_hash: "h".into(),
            results: Some(1),
            lost: 1,
            trace_id: "t".into(),
            trimmed: 1,
            trimmed_to: 1,
            trimmed_hash: "h".into(),
            ..Default::default()
        };
        let record = Raw::parse(full.text(1)).expect("JSON").object().expect("an object");
        let members: Vec<&str> = record.iter().map(|(name, _)| name).collect();
        assert_eq!(members, COLUMNS);
    }
}
