//! Names, version and addresses of what is published. All come from the workspace manifest.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

pub(super) struct Product {
    pub(super) name: String,
    pub(super) version: String,
    /// SPDX expression.
    pub(super) license: String,
    pub(super) summary: String,
    pub(super) homepage: String,
    /// Address of the folder that holds the files of this version.
    pub(super) download: String,
    /// `Name <address>`.
    pub(super) maintainer: String,
    /// npm scope of the platform packages, with `@`.
    pub(super) npm_scope: String,
    /// Time of all files, in seconds since 1970: `SOURCE_DATE_EPOCH`, or that of the last commit.
    pub(super) time: String,
}

impl Product {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let metadata = metadata(root, &["--no-deps"])?;
        let dist = &metadata["metadata"]["dist"];
        let text = |name: &str| {
            let value = dist[name].as_str().with_context(|| format!("`workspace.metadata.dist.{name}` is not there"));
            value.map(ToOwned::to_owned)
        };
        let name = text("name")?;
        let packages = metadata["packages"].as_array().context("no packages")?;
        let package = packages.iter().find(|package| package["name"] == *name).context("no package of that name")?;
        let member = |name: &str| package[name].as_str().map(ToOwned::to_owned).with_context(|| name.to_owned());
        let version = member("version")?;
        Ok(Self {
            license: member("license")?,
            summary: text("summary")?,
            homepage: text("homepage")?,
            download: text("download")?.replace("{version}", &version),
            maintainer: text("maintainer")?,
            npm_scope: text("npm_scope")?,
            time: time(root)?,
            name,
            version,
        })
    }

    /// Returns the base name of files and folders for a platform.
    pub(super) fn archive(&self, triple: &str) -> String {
        format!("{}-{}-{triple}", self.name, self.version)
    }
}

/// Runs `cargo metadata` on the locked workspace.
pub(super) fn metadata(root: &Path, more: &[&str]) -> Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1"])
        .args(more)
        .current_dir(root)
        .output()?;
    ensure!(output.status.success(), "`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn time(root: &Path) -> Result<String> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(time);
    }
    let output = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root).output()?;
    let time = String::from_utf8(output.stdout)?.trim().to_owned();
    ensure!(!time.is_empty(), "there is no commit whose time the files could have; set SOURCE_DATE_EPOCH");
    Ok(time)
}
