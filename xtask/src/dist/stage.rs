//! A scratch folder in which the content of a package is laid out, and the archives made of it. The same content gives
//! the same bytes: names are sorted, owners are root, times are those of the release.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::product::Product;

pub(super) const PLAIN: u32 = 0o644;
pub(super) const EXECUTABLE: u32 = 0o755;

pub(super) struct Stage {
    folder: TempDir,
}

impl Stage {
    pub(super) fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::set_permissions(folder.path(), Permissions::from_mode(EXECUTABLE))?;
        Ok(Self { folder })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn write(&self, name: &str, content: &str, mode: u32) -> Result<()> {
        let path = self.place(name)?;
        fs::write(&path, content)?;
        Ok(fs::set_permissions(path, Permissions::from_mode(mode))?)
    }

    pub(super) fn copy(&self, from: &Path, name: &str, mode: u32) -> Result<()> {
        let path = self.place(name)?;
        fs::copy(from, &path).with_context(|| from.display().to_string())?;
        Ok(fs::set_permissions(path, Permissions::from_mode(mode))?)
    }

    /// Packs one entry of the folder, or `.` for all, as a compressed tar archive.
    pub(super) fn tar(&self, entry: &str, product: &Product, file: &Path) -> Result<()> {
        let mut command = Command::new("tar");
        command
            .args(["--create", "--sort=name", "--owner=root:0", "--group=root:0", "--format=ustar"])
            .arg(format!("--mtime=@{}", product.time))
            .args(["--use-compress-program=gzip -n", "--file"])
            .arg(file)
            .arg("--directory")
            .arg(self.path())
            .arg(entry);
        execute(&mut command)
    }

    /// Returns the path of a new file, with its folders.
    fn place(&self, name: &str) -> Result<PathBuf> {
        let path = self.path().join(name);
        let folder = path.parent().context("no folder")?;
        fs::create_dir_all(folder)?;
        for folder in folder.ancestors().take_while(|folder| *folder != self.path()) {
            fs::set_permissions(folder, Permissions::from_mode(EXECUTABLE))?;
        }
        Ok(path)
    }
}

/// Runs a program that must be there and succeed.
pub(super) fn execute(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run `{name}`; install it"))?;
    ensure!(output.status.success(), "`{name}` failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
