//! The crates that a program is linked from, for a target: no macros, no build scripts, no tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::product;

pub(super) struct LinkedCrates {
    /// By name and version.
    pub(super) crates: Vec<LinkedCrate>,
}

pub(super) struct LinkedCrate {
    pub(super) name: String,
    pub(super) version: String,
    /// SPDX expression.
    pub(super) license: String,
    pub(super) authors: Vec<String>,
    pub(super) folder: PathBuf,
    /// SHA-256 of the package in the registry; `None` for our own crates.
    pub(super) checksum: Option<String>,
    /// Other linked crates that it uses: name and version.
    pub(super) uses: Vec<(String, String)>,
}

impl LinkedCrates {
    pub(super) fn of(root: &Path, triple: &str) -> Result<Self> {
        let linked = linked(root, triple)?;
        let metadata = product::metadata(root, &["--filter-platform", triple])?;
        let packages = metadata["packages"].as_array().context("no packages")?;
        let identity = |package: &Value| Some((text(package, "name")?, text(package, "version")?));
        let by_id: BTreeMap<&str, (String, String)> =
            packages.iter().filter_map(|package| Some((package["id"].as_str()?, identity(package)?))).collect();
        let nodes = metadata["resolve"]["nodes"].as_array().context("no resolved dependencies")?;
        let uses_of = |id: &Value| -> Vec<(String, String)> {
            let node = nodes.iter().find(|node| node["id"] == *id);
            let dependencies = node.and_then(|node| node["deps"].as_array()).into_iter().flatten();
            let normal = dependencies.filter(|one| {
                one["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
            });
            let named = normal.filter_map(|one| by_id.get(one["pkg"].as_str()?).cloned());
            named.filter(|one| linked.contains(one)).collect::<BTreeSet<_>>().into_iter().collect()
        };
        let checksums = checksums(&fs::read_to_string(root.join("Cargo.lock"))?);
        let mut crates = Vec::new();
        for package in packages {
            let Some(key) = identity(package).filter(|key| linked.contains(key)) else { continue };
            let manifest = PathBuf::from(text(package, "manifest_path").context("no manifest")?);
            let license = text(package, "license").with_context(|| format!("{} names no licence", key.0))?;
            crates.push(LinkedCrate {
                license: license.replace(" / ", " OR ").replace('/', " OR "),
                authors: package["authors"].as_array().into_iter().flatten().filter_map(as_text).collect(),
                folder: manifest.parent().context("no folder")?.to_owned(),
                checksum: checksums.get(&key).cloned(),
                uses: uses_of(&package["id"]),
                name: key.0,
                version: key.1,
            });
        }
        ensure!(crates.len() == linked.len(), "cargo tree and cargo metadata name different crates");
        crates.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
        Ok(Self { crates })
    }
}

/// Returns name and version of each linked crate. `cargo metadata` would add the features that only tests ask for.
fn linked(root: &Path, triple: &str) -> Result<BTreeSet<(String, String)>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "-p", "hikite", "-e", "normal,no-proc-macro", "--prefix", "none"])
        .args(["--no-dedupe", "--target", triple, "--format", "{p}"])
        .current_dir(root)
        .output()?;
    ensure!(output.status.success(), "`cargo tree` failed: {}", String::from_utf8_lossy(&output.stderr));
    let crates = String::from_utf8(output.stdout)?;
    let read = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        Some((name, words.next()?.strip_prefix('v')?.to_owned()))
    };
    crates.lines().map(|line| read(line).with_context(|| format!("`cargo tree` says `{line}`"))).collect()
}

/// Reads the checksums of a lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let read = |package: &str| {
        let value = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
            line.map(|line| line.trim_end_matches('"').to_owned())
        };
        Some(((value("name")?, value("version")?), value("checksum")?))
    };
    lock.split("[[package]]").filter_map(read).collect()
}

fn text(value: &Value, name: &str) -> Option<String> {
    as_text(&value[name])
}

fn as_text(value: &Value) -> Option<String> {
    value.as_str().map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_links_its_runtime_and_no_macro_or_test_crate() {
        let linked = linked(&crate::root().expect("a root"), "x86_64-unknown-linux-gnu").expect("crates");
        let has = |name: &str| linked.iter().any(|one| one.0 == name);
        assert!(has("tokio") && has("hikite-core") && has("hikite"));
        assert!(!has("serde_derive") && !has("proptest") && !has("hikite-testkit") && !has("xtask"));
    }
}
