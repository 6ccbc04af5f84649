//! OpenAPI: schemas of the audit log.

use serde_json::{Value, json};

pub(super) fn record() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let count = |description: &str| json!({ "type": "integer", "minimum": 0, "description": description });
    let hash = |description: &str| json!({ "type": "string", "pattern": "^[0-9a-f]{64}$", "description": description });
    json!({
        "type": "object",
        "description": "What does not apply is left out.",
        "required": ["seq", "at", "kind", "decision", "outcome", "ms", "hash"],
        "properties": {
            "seq": count("Its number; there is none left out."),
            "at": count("When it began, in milliseconds since 1970."),
            "kind": {
                "type": "string",
                "enum": ["call", "read", "subscribe", "prompt", "complete", "task", "batch", "search", "admin", "identity", "lost", "trim"],
            },
            "decision": { "type": "string", "enum": ["allowed", "refused"] },
            "outcome": text("`ok`, `tool_error`, `cancelled`, or the code of the error."),
            "requestId": text("The id of the request in logs and traces."),
            "subject": text("Who asked."),
            "userId": text("The user behind it, by an id that nobody else ever gets."),
            "user": text("What that user was called then."),
            "token": text("The id of the token it came with."),
            "client": text("What the client calls itself, `name/version`."),
            "project": text("The project it worked in."),
            "account": text("Whose credentials were used."),
            "session": count("The conversation; starts again with the program."),
            "surface": text("The surface that was spoken to."),
            "method": text("The method of the protocol, or the action of an admin."),
            "module": text("The module that was asked."),
            "tool": text("The tool, in its own name where it was found."),
            "what": text("What was asked for, in words."),
            "argumentsHash": hash("SHA-256 of the canonical JSON of the arguments."),
            "ms": { "type": "number", "minimum": 0, "description": "How long it took." },
            "attempts": count("How often the source was asked."),
            "cached": { "type": "boolean", "description": "The result was given before." },
            "bytesIn": count("Bytes of the arguments."),
            "bytesOut": count("Bytes of the result."),
            "tokensEstimated": count("An estimate from the bytes."),
            "provider": text("What searched."),
            "queries": count("How many questions a search had."),
            "queriesHash": hash("SHA-256 of the canonical JSON of the questions."),
            "results": count("What a search found."),
            "lost": count("Records that found no place, since the last that says so."),
            "traceId": text("The trace that the request belonged to, where there was one."),
            "trimmed": count("Of a trim: how many records were removed from the front of the chain."),
            "trimmedTo": count("The number of the last of them."),
            "trimmedHash": hash("And its hash."),
            "hash": hash("SHA-256 of the hash before it and the record."),
        },
    })
}

pub(super) fn page() -> Value {
    json!({
        "type": "object",
        "required": ["records"],
        "properties": {
            "records": { "type": "array", "items": { "$ref": "#/components/schemas/AuditRecord" } },
            "next": { "type": "integer", "minimum": 0, "description": "`before` (or `after`) for the next page, if there is one. A page may have fewer records than asked for, or none, and still have a next." },
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
            "records": seq("Records that are as they were written."),
            "first": seq("The chain begins after this record."),
            "last": seq("The last record that is as it was written."),
            "hash": { "type": "string", "description": "And its hash; write it down elsewhere." },
            "trimmed": {
                "type": "object",
                "description": "The records up to `first` were removed in order; nothing where none were.",
                "required": ["to"],
                "properties": {
                    "to": seq("The last record that was removed."),
                    "record": seq("The record that says so; a version before this one left none."),
                },
            },
            "broken": {
                "type": "object",
                "required": ["seq", "problem"],
                "properties": { "seq": seq("The first record that is not."), "problem": { "type": "string" } },
            },
        },
    })
}
