//! Generators of hostile inputs of any size.

use serde_json::{Map, Value, json};

/// Number of sizes of each case, every one twice the previous.
pub(super) const SIZES: usize = 4;

pub(super) struct HostileCase {
    pub(super) name: &'static str,
    pub(super) smallest: usize,
    /// Builds the requests of one measurement from a size and a round.
    pub(super) make: fn(usize, usize) -> Vec<HostileRequest>,
}

pub(super) struct HostileRequest {
    pub(super) kind: RequestKind,
    pub(super) path: String,
    pub(super) body: String,
}

#[derive(Clone, Copy)]
pub(super) enum RequestKind {
    Json,
    Form,
    Query,
}

pub(super) const CASES: &[HostileCase] = &[
    HostileCase {
        name: "arguments: texts for integers",
        smallest: 3000,
        make: |n, _| call("registered:open", &ints(n)),
    },
    HostileCase {
        name: "arguments: members that stand twice",
        smallest: 5000,
        make: |n, _| {
            let members = (0..n).map(|at| format!(r#""m{at}":1"#)).collect::<Vec<_>>().join(",");
            call("registered:open", &format!(r#"{{"a":0,{members},"a":1}}"#))
        },
    },
    HostileCase {
        name: "arguments: unknown names",
        smallest: 5000,
        make: |n, _| call("registered:closed", &named(n, "unknown").to_string()),
    },
    HostileCase {
        name: "arguments: a long name above many faults",
        smallest: 5000,
        make: |n, _| call("registered:map", &json!({ ("n".repeat(8 * n)): vec!["x"; n] }).to_string()),
    },
    HostileCase {
        name: "arguments: a text against a pattern",
        smallest: 100_000,
        make: |n, _| call("registered:pattern", &json!({ "t": "ab".repeat(n / 2) }).to_string()),
    },
    HostileCase {
        name: "arguments: values against alternatives",
        smallest: 10_000,
        make: |n, _| call("registered:either", &json!({ "l": vec![7; n] }).to_string()),
    },
    HostileCase {
        name: "JSON depth",
        smallest: 10_000,
        make: |n, _| call("registered:open", &format!(r#"{{"d":{}{}}}"#, "[".repeat(n), "]".repeat(n))),
    },
    HostileCase { name: "schemas: properties", smallest: 500, make: |n, round| schema(n, round, "p", &properties(n)) },
    HostileCase { name: "schemas: long names", smallest: 4000, make: |n, round| schema(n, round, "l", &long_names(n)) },
    HostileCase { name: "schemas: patterns", smallest: 25, make: |n, round| schema(n, round, "r", &patterns(n)) },
    HostileCase { name: "schemas: references", smallest: 200, make: |n, round| schema(n, round, "c", &references(n)) },
    HostileCase {
        name: "plans: tasks in a chain",
        smallest: 125,
        make: |n, _| batch(&(0..n).map(task).collect::<Vec<_>>()),
    },
    HostileCase {
        name: "plans: references of one task",
        smallest: 10_000,
        make: |n, _| {
            let first = json!({ "id": "t0", "toolKey": "bench:echo" });
            batch(&[first, json!({ "id": "t1", "toolKey": "bench:echo", "params": { "l": vec!["${t0[*].x}"; n] } })])
        },
    },
    HostileCase {
        name: "plans: unknown fields",
        smallest: 10_000,
        make: |n, _| {
            let mut task = json!({ "id": "t0", "toolKey": "bench:echo" });
            (0..n).for_each(|at| task[format!("paramz{at}")] = json!(1));
            batch(&[task])
        },
    },
    HostileCase {
        name: "plans: tools that are not there",
        smallest: 125,
        make: |n, _| {
            let tasks: Vec<Value> =
                (0..n).map(|at| json!({ "id": format!("t{at}"), "toolKey": format!("bench:eco{at}") })).collect();
            batch(&tasks)
        },
    },
    HostileCase {
        name: "forms: fields at the token endpoint",
        smallest: 1000,
        make: |n, _| {
            let body = (0..n).map(|at| format!("f{at}=1")).collect::<Vec<_>>().join("&");
            vec![HostileRequest { kind: RequestKind::Form, path: "/oauth/token".into(), body }]
        },
    },
    HostileCase {
        name: "forms: unknown members",
        smallest: 5000,
        make: |n, _| vec![post("/v1/tools", &named(n, "descriptionn"))],
    },
    HostileCase {
        name: "forms: unknown query parameters",
        smallest: 500,
        make: |n, _| {
            let query = (0..n).map(|at| format!("pagee{at}=1")).collect::<Vec<_>>().join("&");
            vec![HostileRequest { kind: RequestKind::Query, path: format!("/v1/tools?{query}"), body: String::new() }]
        },
    },
    HostileCase {
        name: "globs: one long",
        smallest: 100,
        make: |n, _| permissions(&json!([{ "pattern": "*a".repeat(n) }])),
    },
    HostileCase {
        name: "globs: many",
        smallest: 100,
        make: |n, _| permissions(&(0..n).map(|at| json!({ "pattern": format!("*a{at}*b*") })).collect()),
    },
    HostileCase {
        name: "regexes: one long",
        smallest: 100,
        make: |n, _| permissions(&json!([{ "pattern": format!("/^{}$/", "(a|b)?".repeat(n)) }])),
    },
    HostileCase {
        name: "regexes: many",
        smallest: 100,
        make: |n, _| permissions(&(0..n).map(|at| json!({ "pattern": format!("/^(get|list)_{at}.*$/") })).collect()),
    },
    HostileCase {
        name: "search: words",
        smallest: 250,
        make: |n, _| {
            let query = (0..n).map(|at| format!("word{at}")).collect::<Vec<_>>().join(" ");
            vec![post("/v1/tools/search", &json!({ "query": query }))]
        },
    },
    HostileCase { name: "names: a tool that is not there", smallest: 10_000, make: |n, _| call(&"x".repeat(n), "{}") },
    HostileCase {
        name: "jq: a program that computes",
        smallest: 50_000,
        make: |n, _| select("x", &format!(". | [range({n})] | map(. * 7 % 1000) | sort | length")),
    },
    HostileCase {
        name: "HTML: elements that do not end",
        smallest: 4000,
        make: |n, _| select(&"<div><p>a ".repeat(n), ". | html_to_md"),
    },
    HostileCase {
        name: "HTML: signs that begin something",
        smallest: 20_000,
        make: |n, _| select(&"<&".repeat(n), ". | html_to_md"),
    },
    HostileCase {
        name: "Markdown: brackets that do not end",
        smallest: 10_000,
        make: |n, _| select(&"[a](".repeat(n), ". | md_to_notion"),
    },
    HostileCase {
        name: "Markdown: emphasis that does not end",
        smallest: 10_000,
        make: |n, _| select(&"*a _b ".repeat(n), ". | md_to_adf"),
    },
    HostileCase {
        name: "Markdown: lists in lists",
        smallest: 1000,
        make: |n, _| {
            let lines = (0..n).fold(String::new(), |lines, at| lines + &"  ".repeat(at % 100) + "- a\n");
            select(&lines, ". | md_to_storage")
        },
    },
    HostileCase {
        name: "Markdown: quotes in quotes",
        smallest: 2000,
        make: |n, _| select(&format!("{} a", ">".repeat(n)), ". | md_to_notion"),
    },
    HostileCase {
        name: "Confluence storage: elements that do not end",
        smallest: 4000,
        make: |n, _| select(&"<ac:structured-macro><p>a ".repeat(n), ". | storage_to_md"),
    },
];

/// Returns the tools that the cases call, in registration format.
pub(super) fn tools() -> Vec<Value> {
    let integers = json!({ "type": "array", "items": { "type": "integer" } });
    let branches: Vec<Value> = (0..500).map(|n| json!({ "const": [n] })).collect();
    let known: Map<String, Value> = (0..500).map(|n| (format!("known{n}"), json!(true))).collect();
    let schemas = [
        ("open", json!({ "type": "object", "properties": { "l": integers } })),
        ("closed", json!({ "type": "object", "properties": known, "additionalProperties": false })),
        ("map", json!({ "type": "object", "additionalProperties": integers })),
        (
            "pattern",
            json!({ "type": "object", "properties": { "t": { "type": "string", "pattern": "^(?=a)([ab]+)+c$" } } }),
        ),
        (
            "either",
            json!({ "type": "object", "properties": { "l": { "type": "array", "items": { "anyOf": branches } } } }),
        ),
    ];
    schemas.into_iter().map(|(name, schema)| form(name, &schema)).collect()
}

fn form(name: &str, schema: &Value) -> Value {
    json!({ "name": name, "description": "It is not reached.", "inputSchema": schema, "overwrite": true,
        "http": { "url": "https://hikite.invalid/" } })
}

fn post(path: &str, body: &Value) -> HostileRequest {
    HostileRequest { kind: RequestKind::Json, path: path.into(), body: body.to_string() }
}

fn call(name: &str, parameters: &str) -> Vec<HostileRequest> {
    let body = format!(r#"{{"name":{},"parameters":{parameters}}}"#, json!(name));
    vec![HostileRequest { kind: RequestKind::Json, path: "/v1/tools/call".into(), body }]
}

fn select(text: &str, program: &str) -> Vec<HostileRequest> {
    let body = json!({ "name": "bench:echo", "parameters": { "text": text }, "options": { "select": program } });
    vec![post("/v1/tools/call", &body)]
}

fn batch(commands: &[Value]) -> Vec<HostileRequest> {
    vec![post("/v1/batch", &json!({ "commands": commands, "dry_run": true }))]
}

fn task(at: usize) -> Value {
    let after = at.checked_sub(1).map(|before| format!("t{before}"));
    json!({ "id": format!("t{at}"), "toolKey": "bench:echo", "params": { "text": "x" }, "after": after })
}

fn permissions(allow: &Value) -> Vec<HostileRequest> {
    vec![post("/v1/permissions/preview", &json!({ "permissions": { "allow": allow } }))]
}

fn ints(count: usize) -> String {
    json!({ "l": vec!["1"; count] }).to_string()
}

fn named(count: usize, name: &str) -> Value {
    Value::Object((0..count).map(|at| (format!("{name}{at}"), json!(1))).collect())
}

/// Registers a tool and calls it once, so that its schema is compiled twice.
fn schema(size: usize, round: usize, name: &str, schema: &Value) -> Vec<HostileRequest> {
    let name = format!("{name}-{size}-{round}");
    let mut sent = vec![post("/v1/tools", &form(&name, schema))];
    sent.extend(call(&format!("registered:{name}"), r#"{"l":["1"]}"#));
    sent
}

fn properties(count: usize) -> Value {
    let all: Map<String, Value> =
        (0..count).map(|at| (format!("p{at}"), json!({ "type": "string", "maxLength": at }))).collect();
    json!({ "type": "object", "properties": all, "required": ["p0"] })
}

fn long_names(count: usize) -> Value {
    let all: Map<String, Value> = (0..count / 16).map(|at| (format!("p{at}"), json!({}))).collect();
    json!({ "type": "object", "properties": { ("n".repeat(8 * count)): { "properties": all } }, "required": ["x"] })
}

fn patterns(count: usize) -> Value {
    let all: Map<String, Value> = (0..count)
        .map(|at| (format!("p{at}"), json!({ "pattern": format!("^(a{{50}}b?){{{}}}$", 20 + at % 7) })))
        .collect();
    json!({ "type": "object", "properties": all, "required": ["x"] })
}

fn references(count: usize) -> Value {
    let next = |at: usize| json!({ "type": "object", "properties": { "x": { "$ref": format!("#/$defs/d{}", (at + 1) % count) } } });
    let defs: Map<String, Value> = (0..count).map(|at| (format!("d{at}"), next(at))).collect();
    json!({ "type": "object", "$defs": defs, "properties": { "x": { "$ref": "#/$defs/d0" } }, "required": ["y"] })
}
