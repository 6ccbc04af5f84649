//! Config files crafted to take long in `hikite config check`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::HostileRow;
use super::case::SIZES;
use crate::rig::table::median;

pub(super) struct HostileConfig {
    name: &'static str,
    smallest: usize,
    make: fn(usize) -> String,
}

pub(super) const CASES: &[HostileConfig] = &[
    HostileConfig { name: "config: servers", smallest: 500, make: servers },
    HostileConfig { name: "config: unknown keys", smallest: 2000, make: unknown_keys },
    HostileConfig { name: "config: depth", smallest: 10_000, make: depth },
    HostileConfig {
        name: "config: globs of one server",
        smallest: 250,
        make: |n| patterns(n, |n| format!("*a{n}*b*")),
    },
    HostileConfig {
        name: "config: regexes of one server",
        smallest: 250,
        make: |n| patterns(n, |n| format!("/^(get|list)_{n}.*$/")),
    },
    HostileConfig { name: "config: one long glob", smallest: 250, make: |n| patterns(1, |_| "*a".repeat(n)) },
    HostileConfig {
        name: "config: one long regex",
        smallest: 250,
        make: |n| patterns(1, |_| format!("/^{}$/", "(a|b)?".repeat(n))),
    },
];

pub(super) fn row(hikite: &Path, case: &HostileConfig, rounds: usize) -> Result<HostileRow> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("hikite.json");
    let sizes: Vec<usize> = (0..SIZES).map(|doubled| case.smallest << doubled).collect();
    let (mut times_ms, mut status) = (Vec::new(), 0);
    for size in &sizes {
        std::fs::write(&file, (case.make)(*size))?;
        let mut times = Vec::new();
        for _ in 0..rounds {
            let started = Instant::now();
            let ended = Command::new(hikite)
                .args(["config", "check", "--config"])
                .arg(&file)
                .arg("--data")
                .arg(folder.path().join("data"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()?;
            times.push(started.elapsed().as_secs_f64() * 1000.0);
            status = if ended.success() { 0 } else { 400 };
        }
        times_ms.push(median(times));
    }
    Ok(HostileRow { name: case.name.into(), sizes, times_ms, status, health_ms: None })
}

fn servers(count: usize) -> String {
    let entry = |n| (format!("s{n}"), json!({ "url": format!("http://127.0.0.1:9/{n}") }));
    json!({ "mcpServers": (0..count).map(entry).collect::<Map<_, _>>() }).to_string()
}

fn unknown_keys(count: usize) -> String {
    let keys: Map<String, Value> = (0..count).map(|n| (format!("serverr{n}"), json!(1))).collect();
    json!({ "server": keys }).to_string()
}

fn depth(levels: usize) -> String {
    format!(r#"{{"mcpServers":{}1{}}}"#, r#"{"a":"#.repeat(levels), "}".repeat(levels))
}

fn patterns(count: usize, pattern: impl Fn(usize) -> String) -> String {
    let patterns: Vec<String> = (0..count).map(pattern).collect();
    let server = json!({ "url": "http://127.0.0.1:9/", "tools": { "includePatterns": patterns } });
    json!({ "mcpServers": { "a": server } }).to_string()
}
