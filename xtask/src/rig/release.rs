//! Release builds of hikite and of this program, which must not be slower than what it measures.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

/// Builds both and returns the folder of the programs. A debug build of this program runs the command in the release
/// build instead and returns `None`.
pub(crate) fn build(command: &str, words: &[&str]) -> Result<Option<PathBuf>> {
    build_some(&["hikite", "xtask"], command, words)
}

/// Makes sure that this program is a release build, for a given hikite binary.
pub(crate) fn build_xtask(command: &str, words: &[&str]) -> Result<Option<PathBuf>> {
    if cfg!(debug_assertions) { build_some(&["xtask"], command, words) } else { Ok(Some(PathBuf::new())) }
}

fn build_some(packages: &[&str], command: &str, words: &[&str]) -> Result<Option<PathBuf>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = crate::root()?;
    let built = Command::new(cargo)
        .args(["build", "--release", "-q"])
        .args(packages.iter().flat_map(|package| ["-p", package]))
        .current_dir(&root)
        .status()?;
    if !built.success() {
        bail!("the release build failed");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let release = target.join("release");
    if !cfg!(debug_assertions) {
        return Ok(Some(release));
    }
    let status = Command::new(release.join("xtask")).arg(command).args(words).status()?;
    if !status.success() {
        bail!("`{command}` failed");
    }
    Ok(None)
}
