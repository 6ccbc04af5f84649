//! TOON of a large answer: ours beside the crate of the format's authors, and their JavaScript encoder if Node and the
//! package are there. All are given the same document as values of their language, and all must write the same.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use hikite_core::compact::toon;
use serde_json::{Value, json};

use crate::timer::Timer;

/// Records of each kind in about 10 MB of JSON.
const RECORDS: u64 = 11_400;
const ROUNDS: usize = 9;
const TITLES: [&str; 4] = [
    "Crash when the catalog is reloaded during a call",
    "議事録の共有: 検索結果が空になる",
    "Docs say 5 seconds, the default is 30",
    "日本語のファイル名が化ける",
];

pub(crate) fn rows(timer: Timer) -> Vec<Value> {
    let document = document(if timer.measures { RECORDS } else { 10 });
    let json = document.to_string();
    let text = toon::encode(&document);
    let theirs = toon_format::encode_default(&document).expect("it encodes");
    assert!(text == theirs, "ours is not what the authors' crate writes");
    let ours = milliseconds(timer, || toon::encode(&document));
    let row = |name: &str, ms: f64| json!([name, json.len(), ms, per_second(&json, ms), ms / ours]);
    let mut rows = vec![
        row("hikite", ours),
        row("serde_json, as JSON", milliseconds(timer, || document.to_string())),
        row("toon-format", milliseconds(timer, || toon_format::encode_default(&document))),
    ];
    if timer.measures {
        rows.push(match javascript(&json, &text) {
            Ok((name, ms)) => row(&name, ms),
            Err(reason) => json!([format!("JavaScript: skipped, {reason}"), "", "", "", ""]),
        });
    }
    rows
}

fn milliseconds<T>(timer: Timer, mut work: impl FnMut() -> T) -> f64 {
    let rounds = if timer.measures { ROUNDS } else { 1 };
    let mut all: Vec<f64> = (0..rounds)
        .map(|_| {
            let started = Instant::now();
            black_box(work());
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[rounds / 2]
}

/// Megabytes of JSON.
#[expect(clippy::cast_precision_loss, reason = "a few digits are shown")]
fn per_second(json: &str, ms: f64) -> f64 {
    json.len() as f64 / 1e3 / ms
}

/// The median that a script measures of itself, for the same document and the same text.
fn javascript(json: &str, text: &str) -> Result<(String, f64), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = std::env::temp_dir().join(format!("hikite-toon-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let outcome = measure(&root.join("tests/toon/speed.mjs"), &folder, json, text);
    // What is left of it does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

fn measure(script: &Path, folder: &Path, json: &str, text: &str) -> Result<(String, f64), String> {
    let file = |name: &str, content: &str| -> Result<PathBuf, String> {
        let path = folder.join(name);
        std::fs::write(&path, content).map_err(|error| error.to_string())?;
        Ok(path)
    };
    let output = Command::new("node")
        .args([script, &file("document.json", json)?, &file("document.toon", text)?])
        .arg(ROUNDS.to_string())
        .output()
        .map_err(|error| format!("node does not start: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.lines().next().unwrap_or("it failed").to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// Typical results of tools: tables, tables with groups, tables with keys, and records that are no table.
fn document(records: u64) -> Value {
    let list = |make: fn(u64) -> Value| -> Value { (0..records).map(make).collect() };
    let servers = (0..records).map(|id| (format!("node_{id}"), server(id)));
    json!({
        "total": records * 5,
        "issues": list(issue),
        "pages": list(page),
        "readings": list(reading),
        "changes": list(change),
        "servers": servers.collect::<serde_json::Map<_, _>>(),
    })
}

fn issue(id: u64) -> Value {
    json!({
        "number": id,
        "title": title(id),
        "state": if id.is_multiple_of(3) { "closed" } else { "open" },
        "user": {"login": format!("user-{}", id % 97), "id": id * 7919},
        "comments": id % 12,
        "url": format!("https://example.org/octocat/hello-world/issues/{id}"),
        "created_at": format!("2026-{:02}-{:02}T08:{:02}:00Z", 1 + id % 12, 1 + id % 28, id % 60),
        "closed_by": null,
    })
}

fn page(id: u64) -> Value {
    let priority = ["高", "中", "低"][index(id, 3)];
    json!({
        "id": format!("{:08x}-5c1b-4f0e-9a53-{:012x}", id * 2_654_435_761 % 4_294_967_296, id),
        "properties": {"名前": title(id), "優先度": priority, "done": id.is_multiple_of(2)},
        "labels": [{"name": "bug", "color": "d73a4a"}, {"name": "docs", "color": "0075ca"}],
        "watchers": ["alice", "bob", format!("user-{}", id % 97)],
        "body": format!("{}. Steps: open the page, search for \"{}\", wait.\nExpected: {} hits.", title(id), id, id % 9),
    })
}

#[expect(clippy::cast_precision_loss, reason = "these numbers are small")]
fn reading(id: u64) -> Value {
    let id_float = id as f64;
    json!({
        "sensor": id % 16,
        "at": 1_780_000_000 + id * 60,
        "temperature": (id_float * 0.37).sin().mul_add(8.0, 21.5),
        "humidity": (id_float % 1000.0) / 10.0,
        "ok": true,
    })
}

fn change(id: u64) -> Value {
    let kind = ["added", "removed", "moved"][index(id, 3)];
    let mut change = json!({"kind": kind, "path": format!("src/part_{}/file_{id}.rs", id % 40), "lines": id % 300});
    if kind == "moved" {
        change["from"] = format!("src/old/file_{id}.rs").into();
    }
    change
}

fn server(id: u64) -> Value {
    json!({"host": format!("10.0.{}.{}", id / 250, id % 250), "port": 8000 + id % 1000, "region": "ap-northeast-1", "load": 0.25})
}

fn title(id: u64) -> &'static str {
    TITLES[index(id, TITLES.len())]
}

fn index(id: u64, count: usize) -> usize {
    usize::try_from(id).unwrap_or_default() % count
}
