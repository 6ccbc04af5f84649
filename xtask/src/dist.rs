//! `cargo xtask dist`: makes everything that is published from built programs, one per platform: wheels, npm packages,
//! Debian packages, tarballs with an install script, a Homebrew formula, SBOMs, licences, release notes and checksums.
//! Names and version come from the workspace manifest. It publishes nothing.

mod crates;
mod debian;
mod elf;
mod homebrew;
mod licence;
mod npm;
mod product;
mod release_notes;
mod sbom;
mod stage;
mod tarball;
mod wheel;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crates::LinkedCrates;
use elf::Program;
use product::Product;

/// Names of the checksum file and of the script that checks it.
const SUMS: &str = "SHA256SUMS";

/// Documents that every package contains.
struct Documents(Vec<Document>);

struct Document {
    name: &'static str,
    kind: DocumentKind,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DocumentKind {
    Licence,
    Sbom,
    Notes,
}

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let root = crate::root()?;
    let (binaries, out) = parse(words, &root)?;
    let product = Product::read(&root)?;
    let programs = binaries.iter().map(|path| program(path, &product)).collect::<Result<Vec<_>>>()?;
    fs::create_dir_all(&out)?;
    ensure!(fs::read_dir(&out)?.next().is_none(), "{} is not empty; name an empty folder with --out", out.display());
    for program in &programs {
        let documents = documents(&root, &product, program, &out)?;
        wheel::make(&root, &product, program, &documents, &out)?;
        npm::make_platform(&product, program, &programs, &documents, &out)?;
        debian::make(&root, &product, program, &documents, &out)?;
        tarball::make(&root, &product, program, &documents, &out)?;
    }
    let common = documents(&root, &product, &programs[0], &out)?;
    npm::make_main(&root, &product, &programs, &common, &out)?;
    homebrew::make(&product, &programs, &out)?;
    tarball::install_script(&root, &product, &out)?;
    for document in common.0.iter().filter(|document| document.kind != DocumentKind::Sbom) {
        fs::write(out.join(document.name), &document.text)?;
    }
    checksums(&out)?;
    for name in names(&out)? {
        crate::print(&out.join(name).display().to_string());
    }
    Ok(())
}

/// Returns the programs, built here if none is given, and the output folder.
fn parse(words: &[&str], root: &Path) -> Result<(Vec<PathBuf>, PathBuf)> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let (mut binaries, mut out) = (Vec::new(), target.join("packages"));
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let value = rest.next().with_context(|| format!("`{word}` needs a value"))?;
        match *word {
            "--binary" => binaries.push(PathBuf::from(value)),
            "--out" => out = PathBuf::from(value),
            _ => bail!("`{word}` is unknown; there are --binary FILE (once per platform) and --out FOLDER"),
        }
    }
    if binaries.is_empty() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args(["build", "--locked", "--profile", "dist", "-p", "hikite"])
            .current_dir(root)
            .status()?;
        ensure!(built.success(), "the dist build failed");
        binaries.push(target.join("dist/hikite"));
    }
    Ok((binaries, out))
}

/// Reads a program. If it runs on this machine, it must report the version of the workspace.
fn program(path: &Path, product: &Product) -> Result<Program> {
    let program = Program::read(path)?;
    if program.machine.is_here() {
        let output = Command::new(fs::canonicalize(path)?).arg("--version").output()?;
        let reported = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let expected = format!("{} {}", product.name, product.version);
        ensure!(
            reported == expected,
            "{} reports `{reported}` instead of `{expected}`; build it from this workspace",
            path.display()
        );
    }
    Ok(program)
}

/// Collects the documents of a program, and writes its SBOM beside the packages.
fn documents(root: &Path, product: &Product, program: &Program, out: &Path) -> Result<Documents> {
    let crates = LinkedCrates::of(root, &program.triple())?;
    let sbom = sbom::make(product, &crates)?;
    fs::write(out.join(format!("{}-{}-{}.cdx.json", product.name, product.version, program.triple())), &sbom)?;
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| name.to_owned());
    let document = |name, kind, text| Document { name, kind, text };
    Ok(Documents(vec![
        document("LICENSE-APACHE", DocumentKind::Licence, read("LICENSE-APACHE")?),
        document("LICENSE-MIT", DocumentKind::Licence, read("LICENSE-MIT")?),
        document("THIRD-PARTY-LICENSES.txt", DocumentKind::Licence, licence::gather(root, &crates)?),
        document("sbom.cdx.json", DocumentKind::Sbom, sbom),
        document(
            "RELEASE-NOTES.md",
            DocumentKind::Notes,
            release_notes::cut(&read("CHANGELOG.md")?, &product.version)?,
        ),
    ]))
}

/// Writes the SHA-256 of every file, in the form of `sha256sum`.
fn checksums(out: &Path) -> Result<()> {
    let mut sums = String::new();
    for name in names(out)? {
        writeln!(sums, "{}  {name}", digest(&out.join(&name))?)?;
    }
    Ok(fs::write(out.join(SUMS), sums)?)
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Returns the SHA-256 of a file in hexadecimal digits.
fn digest(path: &Path) -> Result<String> {
    let hash = Sha256::digest(fs::read(path).with_context(|| path.display().to_string())?);
    Ok(hash.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

/// Fills `@NAME@`, `@VERSION@` and the other names of a template. One that is left is an error.
fn fill(template: &str, product: &Product, more: &[(&str, &str)]) -> Result<String> {
    let names = [
        ("@NAME@", product.name.as_str()),
        ("@VERSION@", &product.version),
        ("@LICENSE@", &product.license),
        ("@SUMMARY@", &product.summary),
        ("@HOMEPAGE@", &product.homepage),
        ("@DOWNLOAD@", &product.download),
        ("@MAINTAINER@", &product.maintainer),
    ];
    let text = names.iter().chain(more).fold(template.to_owned(), |text, (name, value)| text.replace(name, value));
    let left = text
        .split('@')
        .skip(1)
        .find(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'));
    match left {
        Some(word) => bail!("nothing fills in @{word}@"),
        None => Ok(text),
    }
}
