//! The npm packages: one with the program for each platform, and a main one that depends on all of them, so that npm
//! installs the one that fits, and starts it.

use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::Documents;
use super::elf::{Libc, Program};
use super::product::Product;
use super::stage::{EXECUTABLE, PLAIN, Stage};

pub(super) fn make_platform(
    product: &Product,
    program: &Program,
    all: &[Program],
    documents: &Documents,
    out: &Path,
) -> Result<()> {
    let mut manifest = manifest(product, &name(product, program));
    manifest["os"] = json!(["linux"]);
    manifest["cpu"] = json!([program.machine.npm()]);
    let has_other = all.iter().any(|other| other.machine == program.machine && other.libc != program.libc);
    // A static program runs everywhere; beside one for glibc it is for the others.
    if program.libc != Libc::Static || has_other {
        manifest["libc"] = json!([if program.libc == Libc::Static { "musl" } else { "glibc" }]);
    }
    // Package managers that do not unpack packages would hide the program.
    manifest["preferUnplugged"] = true.into();
    let stage = Stage::new()?;
    stage.copy(&program.path, &format!("package/bin/{}", product.name), EXECUTABLE)?;
    pack(product, &stage, &manifest, documents, out)
}

pub(super) fn make_main(
    root: &Path,
    product: &Product,
    all: &[Program],
    documents: &Documents,
    out: &Path,
) -> Result<()> {
    let mut manifest = manifest(product, &product.name);
    let launcher = format!("bin/{}.js", product.name);
    manifest["bin"] = json!({ &product.name: launcher });
    manifest["engines"] = json!({ "node": ">=18" });
    let platforms = all.iter().map(|program| (name(product, program), Value::from(product.version.clone())));
    manifest["optionalDependencies"] = platforms.collect::<Map<_, _>>().into();
    let stage = Stage::new()?;
    stage.copy(&root.join("deploy/npm/launcher.js"), &format!("package/{launcher}"), EXECUTABLE)?;
    stage.copy(&root.join("README.md"), "package/README.md", PLAIN)?;
    pack(product, &stage, &manifest, documents, out)
}

fn name(product: &Product, program: &Program) -> String {
    let libc = if program.libc == Libc::Static { "-musl" } else { "" };
    format!("{}/linux-{}{libc}", product.npm_scope, program.machine.npm())
}

fn manifest(product: &Product, name: &str) -> Value {
    json!({
        "name": name,
        "version": product.version,
        "description": product.summary,
        "homepage": product.homepage,
        "license": product.license,
        "author": product.maintainer,
    })
}

/// Writes the tarball under the name that `npm pack` gives it.
fn pack(product: &Product, stage: &Stage, manifest: &Value, documents: &Documents, out: &Path) -> Result<()> {
    for document in &documents.0 {
        stage.write(&format!("package/{}", document.name), &document.text, PLAIN)?;
    }
    stage.write("package/package.json", &(serde_json::to_string_pretty(manifest)? + "\n"), PLAIN)?;
    let name = manifest["name"].as_str().unwrap_or_default().trim_start_matches('@').replace('/', "-");
    stage.tar("package", product, &out.join(format!("{name}-{}.tgz", product.version)))
}
