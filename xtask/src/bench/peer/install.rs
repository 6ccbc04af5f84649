//! Installation of another gateway: a fixed version from its registry, in its own folder under the user's cache.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

#[derive(Clone, Copy)]
pub(in crate::bench) struct Install {
    /// Name of the folder.
    pub(in crate::bench) name: &'static str,
    pub(in crate::bench) version: &'static str,
    pub(in crate::bench) way: Way,
    /// Path of the program in its folder.
    pub(in crate::bench) program: &'static str,
}

#[derive(Clone, Copy)]
pub(in crate::bench) enum Way {
    /// A Python virtual environment with this package.
    Python(&'static str),
    /// An npm folder with this package.
    Npm(&'static str),
    /// A build of this crate, with further options.
    Cargo(&'static str, &'static [&'static str]),
    /// A program that the system provides, if at all.
    System,
}

impl Install {
    pub(in crate::bench) fn folder(&self) -> Result<PathBuf> {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let cache = cache.filter(|cache| cache.is_absolute()).or(home).context("neither a cache nor a home folder")?;
        Ok(cache.join("hikite/peers").join(self.name))
    }

    /// Returns the program if it is installed.
    pub(in crate::bench) fn program(&self) -> Result<Option<PathBuf>> {
        let program = match self.way {
            Way::System => PathBuf::from(self.program),
            _ => self.folder()?.join(self.program),
        };
        Ok(program.exists().then_some(program))
    }

    fn run(&self) -> Result<()> {
        let folder = self.folder()?;
        std::fs::create_dir_all(&folder)?;
        let version = self.version;
        match self.way {
            Way::Python(package) => {
                finish(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
                let package = format!("{package}=={version}");
                finish(Command::new(folder.join("bin/pip")).args(["install", "-q", &package]))
            }
            Way::Npm(package) => {
                let package = format!("{package}@{version}");
                finish(
                    Command::new("npm")
                        .args(["install", "--no-fund", "--no-audit", "--prefix"])
                        .arg(&folder)
                        .arg(package),
                )
            }
            Way::Cargo(package, options) => {
                let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
                let mut command = Command::new(cargo);
                command.args(["install", "-q", "--locked", package, "--version", version, "--root"]).arg(&folder);
                finish(command.args(options).env_remove("CARGO_TARGET_DIR"))
            }
            Way::System => bail!("it comes with the system, not from a registry"),
        }
    }
}

/// Installs the missing ones. A failed installation does not prevent the others.
pub(in crate::bench) fn install(all: impl Iterator<Item = (&'static str, Install)>) -> Result<()> {
    for (name, install) in all {
        if install.program()?.is_some() {
            crate::print(&format!("{name} {}: is there", install.version));
            continue;
        }
        crate::print(&format!("{name} {}: is being installed", install.version));
        match install.run() {
            Ok(()) if install.program()?.is_some() => crate::print(&format!("{name}: installed")),
            Ok(()) => crate::print(&format!("{name}: installed, but without `{}`", install.program)),
            Err(error) => crate::print(&format!("{name}: not installed: {error:#}")),
        }
    }
    Ok(())
}

fn finish(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot start `{name}`"))?;
    ensure!(status.success(), "`{name}` failed");
    Ok(())
}
