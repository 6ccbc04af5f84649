//! The licences of all linked crates in one text. Equal texts appear once, with the crates that they apply to.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::crates::{LinkedCrate, LinkedCrates};

/// Beginnings of the names of licence files.
const NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT"];
/// Depth of folders in a crate below which there are no licences of linked code, such as `c_src/mimalloc/LICENSE`.
const DEPTH_MAX: usize = 3;

pub(super) fn gather(root: &Path, crates: &LinkedCrates) -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut list = String::new();
    for one in crates.crates.iter().filter(|one| one.checksum.is_some()) {
        let label = format!("{} {}", one.name, one.version);
        writeln!(list, "{label}: {}", one.license)?;
        for text in texts_of(root, one)? {
            texts.entry(text).or_default().push(label.clone());
        }
    }
    let mut by_crate: Vec<(Vec<String>, String)> = texts.into_iter().map(|(text, labels)| (labels, text)).collect();
    by_crate.sort();
    let mut all = format!("Third-party code in this program, with the licence of each part:\n\n{list}");
    for (labels, text) in by_crate {
        let rule = "-".repeat(100);
        write!(all, "\n{rule}\n{}\n{rule}\n\n{text}\n", labels.join(", "))?;
    }
    Ok(all)
}

/// Returns the licence texts in the source of a crate; if there is none, the standard text with its authors.
fn texts_of(root: &Path, one: &LinkedCrate) -> Result<Vec<String>> {
    let mut files = Vec::new();
    find(&one.folder, 0, &mut files)?;
    files.sort();
    let read = |path: &PathBuf| Some(fs::read_to_string(path).ok()?.replace('\r', "").trim().to_owned());
    let mut texts: Vec<String> = files.iter().filter_map(read).filter(|text| !text.is_empty()).collect();
    texts.dedup();
    if !texts.is_empty() {
        return Ok(texts);
    }
    let authors = if one.authors.is_empty() { format!("The authors of {}", one.name) } else { one.authors.join(", ") };
    if one.license.contains("MIT") {
        let own = fs::read_to_string(root.join("LICENSE-MIT"))?;
        let lines = own
            .lines()
            .map(|line| if line.starts_with("Copyright") { format!("Copyright (c) {authors}") } else { line.into() });
        return Ok(vec![lines.collect::<Vec<_>>().join("\n")]);
    }
    if one.license.contains("Apache-2.0") {
        return Ok(vec![format!("Copyright {authors}\n\n{}", fs::read_to_string(root.join("LICENSE-APACHE"))?.trim())]);
    }
    bail!("{} {} contains no text of its licence ({})", one.name, one.version, one.license)
}

fn find(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let is_source = [".RS", ".C", ".H", ".PY", ".GO"].iter().any(|end| name.ends_with(end));
        if path.is_dir() {
            if depth < DEPTH_MAX && !["TESTS", "TEST", "BENCHES", "EXAMPLES", "TARGET"].contains(&&*name) {
                find(&path, depth + 1, files)?;
            }
        } else if !is_source && NAMES.iter().any(|start| name.starts_with(start)) {
            files.push(path);
        }
    }
    Ok(())
}
