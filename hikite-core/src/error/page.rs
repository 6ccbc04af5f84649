//! Generates `docs/errors.md` from the error table. `HIKITE_UPDATE=1 cargo test -p hikite-core` rewrites it.

use std::fmt::Write;
use std::path::Path;

use super::{FaultParty, TABLE};

const HEAD: &str = "\
# Errors

Every failure is of one of these kinds, whatever surface shows it. This page is made from `error::TABLE` in
`hikite-core/src/error.rs`; a test fails when it is stale.

- Over REST the kind is the status and the `code` of the body: `{success: false, error, code, hint?, details?,
  requestId, executionTime?, timestamp}`.
- In the result of a tool it is `structuredContent.error`: `{code, name?, message, hint?, schema?, details?}`, with
  `isError: true`.
- As an error of the protocol it has the JSON-RPC number, and the `code` in its `data`. An error that an upstream
  server itself answered with is relayed as it came.

*Again* says whether the same request may succeed later without a change. hikite tries again by itself only where
`retry` is set for the server, the tool or the call, the kind says yes here, and the tool promises with its
annotations (`readOnlyHint`, `idempotentHint`) that running it twice does no harm.

| code | HTTP | JSON-RPC | at fault | again | meaning | what to do |
|---|---|---|---|---|---|---|
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for definition in TABLE {
        let fault = match definition.fault {
            FaultParty::Caller => "the caller",
            FaultParty::Upstream => "the server behind",
            FaultParty::Gateway => "hikite",
        };
        let again = if definition.retry { "yes" } else { "no" };
        let (code, http, rpc, meaning, cure) =
            (definition.code, definition.http, definition.rpc, definition.meaning, definition.cure);
        writeln!(page, "| `{code}` | {http} | {rpc} | {fault} | {again} | {meaning} | {cure} |")
            .expect("a string takes everything");
    }
    page
}

#[test]
fn the_page_of_errors_is_the_table() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
    if std::env::var_os("HIKITE_UPDATE").is_some() {
        std::fs::write(&file, page()).expect("a file");
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(written, page(), "docs/errors.md is stale: HIKITE_UPDATE=1 cargo test -p hikite-core");
}

#[test]
fn the_codes_of_the_specification_have_their_statuses() {
    let specified = [
        ("TOOL_NOT_FOUND", 404),
        ("TOOL_DISABLED", 403),
        ("TOOL_EXECUTION_ERROR", 500),
        ("VALIDATION_ERROR", 400),
        ("TIMEOUT", 408),
        ("AUTHENTICATION_ERROR", 401),
        ("AUTHORIZATION_ERROR", 403),
        ("RATE_LIMIT_EXCEEDED", 429),
        ("INTERNAL_ERROR", 500),
        ("UPSTREAM_UNAVAILABLE", 502),
        ("ACCOUNT_REQUIRED", 403),
        ("PAYLOAD_TOO_LARGE", 413),
        ("CONFLICT", 409),
        ("OVERLOADED", 503),
    ];
    for (code, status) in specified {
        let definition = TABLE.iter().find(|definition| definition.code == code).expect(code);
        assert_eq!(definition.http, status, "{code}");
        assert!(definition.meaning.ends_with('.') && definition.cure.ends_with('.'), "{code}");
    }
}
