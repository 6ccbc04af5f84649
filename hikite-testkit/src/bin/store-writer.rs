//! Registers tools one after another, records each, and prints its number once both writes are committed, until killed.
//! With `--open` it only opens the store and prints the schema version.
//!
//!     store-writer sqlite:/tmp/x.db 100

use std::{io::Write, process::ExitCode};

use hikite_core::{audit::AuditRecord, json::Raw, key::ToolKey};
use hikite_store::{AuditBatch, RegisteredToolRow, Store, StoreError, StoreUrl};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(from)) = (arguments.next(), arguments.next()) else {
        return print_error("the arguments are the address of a store and the first number, or `--open`");
    };
    let url = match StoreUrl::parse(&url) {
        Ok(url) => url,
        Err(bad) => return print_error(&bad.to_string()),
    };
    let outcome = match from.parse() {
        Ok(from) => write(&url, from).await,
        Err(_) => open(&url).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_error(&error.to_string()),
    }
}

async fn open(url: &StoreUrl) -> Result<(), StoreError> {
    print_number(u64::try_from(Store::open(url).await?.found_version()).unwrap_or_default());
    Ok(())
}

async fn write(url: &StoreUrl, from: u64) -> Result<(), StoreError> {
    let store = Store::open(url).await?;
    for number in from.. {
        let tool = RegisteredToolRow {
            key: ToolKey::new("written", format!("t{number}")),
            form: Raw::of(&serde_json::json!({ "number": number, "filling": "x".repeat(500) })),
            registered_at: number,
        };
        store.tools().put(&tool, false).await?;
        let record = AuditRecord {
            at: number,
            kind: "admin",
            decision: "allowed",
            outcome: "ok",
            request_id: number.to_string(),
            ..AuditRecord::default()
        };
        store.audit().append(&mut AuditBatch::new(vec![record])).await?;
        if !print_number(number) {
            break;
        }
    }
    Ok(())
}

/// Returns `false` if stdout is closed.
fn print_number(number: u64) -> bool {
    let mut out = std::io::stdout();
    writeln!(out, "{number}").and_then(|()| out.flush()).is_ok()
}

#[expect(clippy::print_stderr, reason = "a program says why it failed")]
fn print_error(reason: &str) -> ExitCode {
    eprintln!("store-writer: {reason}");
    ExitCode::FAILURE
}
