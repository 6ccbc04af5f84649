//! The tarball: the program with its documents, an example config and the systemd unit; and the script that installs it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Result;

use super::elf::Program;
use super::product::Product;
use super::stage::{EXECUTABLE, PLAIN, Stage};
use super::{Documents, fill};

pub(super) fn make(root: &Path, product: &Product, program: &Program, documents: &Documents, out: &Path) -> Result<()> {
    let folder = product.archive(&program.triple());
    let stage = Stage::new()?;
    stage.copy(&program.path, &format!("{folder}/{}", product.name), EXECUTABLE)?;
    for document in &documents.0 {
        stage.write(&format!("{folder}/{}", document.name), &document.text, PLAIN)?;
    }
    stage.copy(&root.join("hikite.example.json"), &format!("{folder}/hikite.example.json"), PLAIN)?;
    stage.copy(&root.join("deploy/systemd/hikite.service"), &format!("{folder}/hikite.service"), PLAIN)?;
    stage.tar(&folder, product, &out.join(format!("{folder}.tar.gz")))
}

pub(super) fn install_script(root: &Path, product: &Product, out: &Path) -> Result<()> {
    let script = fill(&fs::read_to_string(root.join("deploy/install.sh"))?, product, &[])?;
    let path = out.join("install.sh");
    fs::write(&path, script)?;
    Ok(fs::set_permissions(path, Permissions::from_mode(EXECUTABLE))?)
}
