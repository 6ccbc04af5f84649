//! OpenAPI: schemas of the audit log.

use serde_json::{Value, json};

pub(super) fn record() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let count = |description: &str| json!({ "type": "integer", "minimum": 0, "description": description });
    let hash = |description: &str| json!({ "type": "string", "pattern": "^[0-9a-f]{64}$", "description": description });
    json!({
        "type": "object",
        "description": "Members that do not apply are left out.",
        "required": ["seq", "at", "kind", "decision", "outcome", "ms", "hash"],
        "properties": {
            "seq": count("Sequence number without gaps."),
            "at": count("Start time in milliseconds since 1970."),
            "kind": {
                "type": "string",
                "enum": ["call", "read", "subscribe", "prompt", "complete", "task", "batch", "search", "admin", "identity", "lost", "trim"],
            },
            "decision": { "type": "string", "enum": ["allowed", "refused"] },
            "outcome": text("`ok`, `tool_error`, `cancelled`, or the code of the error."),
            "requestId": text("Id of the request in logs and traces."),
            "subject": text("The caller."),
            "userId": text("Id of the user, never reused."),
            "user": text("Name of the user at that time."),
            "token": text("Id of the token that was used."),
            "client": text("Name and version of the client, `name/version`."),
            "project": text("The project it worked in."),
            "account": text("Account that was used."),
            "session": count("Number of the session; restarts with the program."),
            "surface": text("The surface that was used."),
            "method": text("The MCP method, or the action of an admin."),
            "module": text("The module that was called."),
            "tool": text("The tool, by its own name if it was found."),
            "what": text("Description of the request."),
            "argumentsHash": hash("SHA-256 of the canonical JSON of the arguments."),
            "ms": { "type": "number", "minimum": 0, "description": "Duration." },
            "attempts": count("Number of attempts."),
            "cached": { "type": "boolean", "description": "The result came from the cache." },
            "bytesIn": count("Bytes of the arguments."),
            "bytesOut": count("Bytes of the result."),
            "tokensEstimated": count("An estimate from the bytes."),
            "provider": text("The search provider."),
            "queries": count("Number of queries of a search."),
            "queriesHash": hash("SHA-256 of the canonical JSON of the queries."),
            "results": count("Number of search results."),
            "lost": count("Records lost since the last record with this member."),
            "traceId": text("Trace of the request, if there was one."),
            "trimmed": count("For a trim: number of records removed from the start of the chain."),
            "trimmedTo": count("Number of the last removed record."),
            "trimmedHash": hash("Its hash."),
            "hash": hash("SHA-256 of the previous hash and the record."),
        },
    })
}

pub(super) fn page() -> Value {
    json!({
        "type": "object",
        "required": ["records"],
        "properties": {
            "records": { "type": "array", "items": { "$ref": "#/components/schemas/AuditRecord" } },
            "next": { "type": "integer", "minimum": 0, "description": "`before` (or `after`) for the next page, if there is one. A page may have fewer records than \
             requested, or none, and still have a next page." },
        },
    })
}

pub(super) fn verdict() -> Value {
    let seq = |description: &str| json!({ "type": "integer", "minimum": 0, "description": description });
    json!({
        "type": "object",
        "required": ["intact", "records", "first", "last", "hash"],
        "properties": {
            "intact": { "type": "boolean" },
            "records": seq("Number of verified records."),
            "first": seq("The chain starts after this record."),
            "last": seq("The last verified record."),
            "hash": { "type": "string", "description": "Its hash; store it elsewhere." },
            "trimmed": {
                "type": "object",
                "description": "Trim of the records up to `first`; left out if none were removed.",
                "required": ["to"],
                "properties": {
                    "to": seq("The last removed record."),
                    "record": seq("The record of the trim; earlier versions wrote none."),
                },
            },
            "broken": {
                "type": "object",
                "required": ["seq", "problem"],
                "properties": { "seq": seq("The first record that fails the verification."), "problem": { "type": "string" } },
            },
        },
    })
}
