//! Optimised builds of hikite and of this program, which must not be slower than what it measures.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

/// Cargo profile of a build.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BuildProfile {
    /// Quick to build, with function names.
    Release,
    /// The profile of published builds. Benchmarks measure it.
    Dist,
}

impl BuildProfile {
    /// Name for cargo's `--profile`, and of the folder that cargo builds into.
    fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Dist => "dist",
        }
    }
}

/// Builds both and returns the folder of the programs. A debug build of this program runs the command in the optimised
/// build instead and returns `None`.
pub(crate) fn build(profile: BuildProfile, command: &str, words: &[&str]) -> Result<Option<PathBuf>> {
    build_some(profile, &["hikite", "xtask"], command, words)
}

/// Makes sure that this program is an optimised build, for a given hikite binary.
pub(crate) fn build_xtask(profile: BuildProfile, command: &str, words: &[&str]) -> Result<Option<PathBuf>> {
    if cfg!(debug_assertions) { build_some(profile, &["xtask"], command, words) } else { Ok(Some(PathBuf::new())) }
}

fn build_some(profile: BuildProfile, packages: &[&str], command: &str, words: &[&str]) -> Result<Option<PathBuf>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = crate::root()?;
    let built = Command::new(cargo)
        .args(["build", "-q", "--profile", profile.name()])
        .args(packages.iter().flat_map(|package| ["-p", package]))
        .current_dir(&root)
        .status()?;
    if !built.success() {
        bail!("the {} build failed", profile.name());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let folder = target.join(profile.name());
    if !cfg!(debug_assertions) {
        return Ok(Some(folder));
    }
    let status = Command::new(folder.join("xtask")).arg(command).args(words).status()?;
    if !status.success() {
        bail!("`{command}` failed");
    }
    Ok(None)
}
