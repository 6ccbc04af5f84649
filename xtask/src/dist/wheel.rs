//! The wheel (PEP 427): the program as a script, no Python code. `pip`, `pipx` and `uv` install it like a Python command.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::elf::Program;
use super::product::Product;
use super::stage::{EXECUTABLE, PLAIN, Stage, execute};
use super::{DocumentKind, Documents};

pub(super) fn make(root: &Path, product: &Product, program: &Program, documents: &Documents, out: &Path) -> Result<()> {
    let stage = Stage::new()?;
    let (name, version, tag) = (&product.name, &product.version, program.wheel_tag());
    let (info, data) = (format!("{name}-{version}.dist-info"), format!("{name}-{version}.data"));
    stage.copy(&program.path, &format!("{data}/scripts/{name}"), EXECUTABLE)?;
    let mut licences = String::new();
    for document in &documents.0 {
        let folder = match document.kind {
            DocumentKind::Licence => format!("{info}/licenses"),
            DocumentKind::Sbom => format!("{info}/sboms"),
            DocumentKind::Notes => format!("{data}/data/share/doc/{name}"),
        };
        if document.kind == DocumentKind::Licence {
            writeln!(licences, "License-File: {}", document.name)?;
        }
        stage.write(&format!("{folder}/{}", document.name), &document.text, PLAIN)?;
    }
    let (summary, license, homepage) = (&product.summary, &product.license, &product.homepage);
    let readme = std::fs::read_to_string(root.join("README.md"))?;
    let metadata = format!(
        "Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nSummary: {summary}\nProject-URL: Homepage, {homepage}\n\
         License-Expression: {license}\n{licences}Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{readme}"
    );
    stage.write(&format!("{info}/METADATA"), &metadata, PLAIN)?;
    let tags = tag.split('.').fold(String::new(), |text, tag| text + &format!("Tag: py3-none-{tag}\n"));
    let wheel = format!("Wheel-Version: 1.0\nGenerator: hikite xtask\nRoot-Is-Purelib: false\n{tags}");
    stage.write(&format!("{info}/WHEEL"), &wheel, PLAIN)?;
    let mut pack = Command::new("python3");
    pack.arg(root.join("xtask/src/dist/wheel.py")).arg(stage.path()).arg(format!("{info}/RECORD"));
    pack.arg(out.join(format!("{name}-{version}-py3-none-{tag}.whl"))).arg(&product.time);
    execute(&mut pack)
}
