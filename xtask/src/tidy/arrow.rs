//! Allowed crate dependencies, checked against the manifests. Dev-dependencies are free, except that only tests may
//! depend on the test kit.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{SourceTree, TidyFinding};

/// Our crates, and which of them each may depend on. Unlisted crates are not allowed.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "hikite",
        &[
            "hikite-api",
            "hikite-config",
            "hikite-core",
            "hikite-egress",
            "hikite-encoder",
            "hikite-gateway",
            "hikite-identity",
            "hikite-measure",
            "hikite-modules",
            "hikite-search",
            "hikite-server",
            "hikite-store",
            "hikite-upstream",
            "hikite-vault",
            "hikite-wire",
        ],
    ),
    (
        "hikite-config",
        &[
            "hikite-core",
            "hikite-egress",
            "hikite-gateway",
            "hikite-identity",
            "hikite-modules",
            "hikite-server",
            "hikite-store",
        ],
    ),
    (
        "hikite-server",
        &[
            "hikite-api",
            "hikite-core",
            "hikite-egress",
            "hikite-gateway",
            "hikite-identity",
            "hikite-ui",
            "hikite-vault",
            "hikite-wire",
        ],
    ),
    ("hikite-gateway", &["hikite-api", "hikite-core", "hikite-identity", "hikite-store", "hikite-vault"]),
    ("hikite-identity", &["hikite-core", "hikite-store", "hikite-vault"]),
    ("hikite-api", &["hikite-core"]),
    ("hikite-measure", &["hikite-core", "hikite-gateway"]),
    ("hikite-store", &["hikite-core"]),
    ("hikite-ui", &["hikite-api", "hikite-core"]),
    ("hikite-modules", &["hikite-core", "hikite-egress"]),
    ("hikite-upstream", &["hikite-core", "hikite-egress", "hikite-wire"]),
    ("hikite-egress", &["hikite-core"]),
    ("hikite-encoder", &["hikite-core"]),
    ("hikite-search", &["hikite-core", "hikite-egress"]),
    ("hikite-vault", &["hikite-core"]),
    ("hikite-wire", &["hikite-core"]),
    ("hikite-core", &[]),
    // Only for tests and tooling.
    (
        "hikite-testkit",
        &[
            "hikite",
            "hikite-core",
            "hikite-egress",
            "hikite-gateway",
            "hikite-identity",
            "hikite-store",
            "hikite-upstream",
            "hikite-vault",
            "hikite-wire",
        ],
    ),
    ("hikite-fuzz", &["hikite-config", "hikite-core", "hikite-wire"]),
    ("xtask", &[]),
];

/// External crates that only some of ours may use.
const RESERVED: &[(&str, &[&str], &str)] = &[
    ("axum", &["hikite-server", "hikite-testkit", "hikite-ui"], "only the server and its pages know axum"),
    ("askama", &["hikite-ui"], "only the UI has templates"),
    ("hyper-rustls", &["hikite-egress"], "only egress builds HTTP clients"),
    ("aws-lc-rs", &["hikite-vault"], "only the vault encrypts and signs"),
    ("sqlx", &["hikite-store"], "only the store knows SQL"),
    ("rmcp", &[], "the SDK is for tests: its types lose fields"),
];

/// External crates that some of ours must not use.
const FORBIDDEN: &[(&str, &[&str], &str)] = &[
    ("hikite-core", &["tokio", "tokio-util", "http", "hyper", "tracing"], "core never awaits and does no I/O"),
    ("hikite-vault", &["tokio", "tokio-util", "http", "hyper", "tracing"], "the vault does no I/O"),
    ("hikite-wire", &["tokio", "tokio-util", "http", "hyper"], "wire only turns bytes into messages"),
    ("hikite-gateway", &["http", "hyper", "hyper-util"], "the gateway knows no HTTP"),
    ("hikite-identity", &["http", "hyper", "hyper-util"], "identity knows no HTTP"),
];

pub(super) fn check(_: &SourceTree) -> Vec<TidyFinding> {
    match metadata() {
        Ok(metadata) => metadata["packages"].as_array().into_iter().flatten().flat_map(package).collect(),
        Err(error) => vec![TidyFinding::file("Cargo.toml", format!("{error:#}"))],
    }
}

fn package(package: &Value) -> Vec<TidyFinding> {
    let name = package["name"].as_str().unwrap_or_default();
    let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
        return vec![TidyFinding::file(name, "a new crate: give it a line in xtask/src/tidy/arrow.rs")];
    };
    // Build dependencies count as well.
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies
        .filter(|dependency| dependency["kind"] != "dev")
        .filter_map(|dependency| objection(name, allowed, dependency["name"].as_str()?))
        .map(|reason| TidyFinding::file(name, reason))
        .collect()
}

fn objection(name: &str, allowed: &[&str], dependency: &str) -> Option<String> {
    if ARROWS.iter().any(|(ours, _)| *ours == dependency) {
        return (!allowed.contains(&dependency)).then(|| format!("{name} may not know {dependency}"));
    }
    let reserved = RESERVED.iter().find(|(foreign, _, _)| *foreign == dependency);
    if let Some((_, owners, reason)) = reserved
        && !owners.contains(&name)
    {
        return Some(format!("{name} may not know {dependency}: {reason}"));
    }
    let (_, _, reason) = FORBIDDEN.iter().find(|(ours, foreign, _)| *ours == name && foreign.contains(&dependency))?;
    Some(format!("{name} may not know {dependency}: {reason}"))
}

fn metadata() -> Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(crate::root()?)
        .output()
        .context("cargo does not start")?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("cargo metadata gave no JSON: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_arrows_are_seen() {
        assert!(objection("hikite-gateway", &["hikite-core"], "hikite-wire").is_some());
        assert!(objection("hikite-server", &[], "axum").is_none());
        assert!(objection("hikite", &[], "axum").is_some());
        assert!(objection("hikite-core", &[], "tokio").is_some());
        assert!(objection("hikite", &[], "hikite-testkit").is_some());
        assert!(objection("hikite-server", &[], "rmcp").is_some());
    }
}
