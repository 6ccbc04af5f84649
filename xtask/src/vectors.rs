//! `cargo xtask vectors`: recomputes the vectors that the encoder ships with. The work is done by the encoder's own
//! tests, because linking the encoder would make every other task wait for its weights.

use std::process::Command;

use anyhow::{Context, Result, ensure};

pub(crate) fn run() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--quiet", "--package=hikite-encoder", "--lib", "shipped"])
        .env("HIKITE_UPDATE", "1")
        .current_dir(crate::root()?)
        .status()
        .context("cargo does not start")?;
    ensure!(status.success(), "the vectors were not written");
    Ok(())
}
