//! The Debian package: the program, a systemd unit with a user of its own, and a config in /etc.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::elf::Program;
use super::product::Product;
use super::stage::{EXECUTABLE, PLAIN, Stage, execute};
use super::{DocumentKind, Documents, fill};

/// Packages that the program needs beside its libraries: root certificates, and the tool that creates its user.
const DEPENDENCIES: &[&str] = &["ca-certificates", "systemd | systemd-standalone-sysusers | systemd-sysusers"];

pub(super) fn make(root: &Path, product: &Product, program: &Program, documents: &Documents, out: &Path) -> Result<()> {
    let (name, version, architecture) = (&product.name, &product.version, program.machine.debian());
    let stage = Stage::new()?;
    stage.copy(&program.path, &format!("usr/bin/{name}"), EXECUTABLE)?;
    let files = root.join("deploy");
    stage.copy(&files.join("systemd/hikite.service"), &format!("usr/lib/systemd/system/{name}.service"), PLAIN)?;
    stage.copy(&files.join("systemd/hikite.sysusers"), &format!("usr/lib/sysusers.d/{name}.conf"), PLAIN)?;
    stage.copy(&files.join("debian/hikite.json"), &format!("etc/{name}/{name}.json"), PLAIN)?;
    for script in ["postinst", "prerm", "postrm"] {
        stage.copy(&files.join("debian").join(script), &format!("DEBIAN/{script}"), EXECUTABLE)?;
    }
    stage.write("DEBIAN/conffiles", &format!("/etc/{name}/{name}.json\n"), PLAIN)?;
    write_documents(root, product, &stage, documents)?;
    let libraries = program.debian_dependencies();
    let dependencies: Vec<&str> = libraries.iter().map(String::as_str).chain(DEPENDENCIES.iter().copied()).collect();
    let more = [
        ("@ARCHITECTURE@", architecture),
        ("@DEPENDENCIES@", &dependencies.join(", ")),
        ("@KILOBYTES@", &kilobytes(stage.path())?.to_string()),
    ];
    let control = fill(&fs::read_to_string(files.join("debian/control"))?, product, &more)?;
    stage.write("DEBIAN/control", &control, PLAIN)?;
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zgzip", "--build"]).arg(stage.path());
    build.arg(out.join(format!("{name}_{version}-1_{architecture}.deb"))).env("SOURCE_DATE_EPOCH", &product.time);
    execute(&mut build)
}

/// Writes the documents where Debian looks for them: licences in `copyright`, release notes as the changelog.
fn write_documents(root: &Path, product: &Product, stage: &Stage, documents: &Documents) -> Result<()> {
    let folder = format!("usr/share/doc/{}", product.name);
    let copyright = fill(&fs::read_to_string(root.join("deploy/debian/copyright"))?, product, &[])?;
    let mit = fs::read_to_string(root.join("LICENSE-MIT"))?;
    let indented = mit.lines().map(|line| if line.is_empty() { " .".into() } else { format!(" {line}") });
    let indented: Vec<String> = indented.collect();
    stage.write(&format!("{folder}/copyright"), &copyright.replace(" @MIT", &indented.join("\n")), PLAIN)?;
    for document in &documents.0 {
        // `copyright` has our own licences.
        if document.kind == DocumentKind::Licence && document.name.starts_with("LICENSE-") {
            continue;
        }
        stage.write(&format!("{folder}/{}", document.name), &document.text, PLAIN)?;
    }
    let date = Command::new("date").args(["-u", "-R", "-d", &format!("@{}", product.time)]).output()?;
    let date = String::from_utf8(date.stdout)?;
    let entry = format!(
        "{} ({}-1) unstable; urgency=medium\n\n  * See RELEASE-NOTES.md.\n\n -- {}  {}\n",
        product.name,
        product.version,
        product.maintainer,
        date.trim()
    );
    let changelog = stage.path().join(&folder).join("changelog.Debian");
    fs::write(&changelog, entry)?;
    execute(Command::new("gzip").args(["-9", "-n"]).arg(&changelog))
}

/// Returns the installed size, in the way of `Installed-Size`.
fn kilobytes(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_file() {
            sum += metadata.len().div_ceil(1024);
        } else if entry.file_name() != "DEBIAN" {
            sum += 1 + kilobytes(&entry.path())?;
        }
    }
    Ok(sum)
}
