//! Names of files and modules, the `//!` head of every file, and `expect` instead of `allow`.

use super::tree::SourceFile;
use super::{SourceTree, TidyFinding};

/// Names that say nothing about the content.
const EMPTY_NAMES: &[&str] = &["common", "helper", "helpers", "manager", "misc", "service", "util", "utils"];
const HEAD_LINES_MAX: usize = 8;

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        findings.extend(name(file));
        findings.extend(head(file));
        findings.extend(silenced(file));
    }
    findings
}

fn name(file: &SourceFile) -> Vec<TidyFinding> {
    let stem = file.path.strip_suffix(".rs").unwrap_or(&file.path);
    let empty = stem.split('/').filter(|part| EMPTY_NAMES.contains(part));
    let mut findings: Vec<TidyFinding> =
        empty.map(|part| TidyFinding::file(&file.path, format!("`{part}` does not say what is inside"))).collect();
    if stem.ends_with("/mod") {
        findings.push(TidyFinding::file(&file.path, "write `foo.rs` beside `foo/`, not `foo/mod.rs`"));
    }
    for (line, text) in file.lines() {
        let module = text.trim().strip_suffix(" {").and_then(|text| text.rsplit_once("mod ")).map(|(_, name)| name);
        if module.is_some_and(|name| EMPTY_NAMES.contains(&name)) {
            findings.push(TidyFinding::line(&file.path, line, "this module's name does not say what is inside"));
        }
    }
    findings
}

fn head(file: &SourceFile) -> Option<TidyFinding> {
    let lines = file.text.lines().take_while(|line| line.starts_with("//!")).count();
    match lines {
        0 => Some(TidyFinding::file(&file.path, "starts without a `//!` head that says what the file is for")),
        1..=HEAD_LINES_MAX => None,
        _ => Some(TidyFinding::file(&file.path, format!("a head of {lines} lines; say it in {HEAD_LINES_MAX}"))),
    }
}

fn silenced(file: &SourceFile) -> Vec<TidyFinding> {
    let allows = |text: &str| {
        let text = text.trim_start();
        text.starts_with("#[allow(")
            || text.starts_with("#![allow(")
            || (text.starts_with("#[cfg_attr(") && text.contains(" allow("))
    };
    let lines = file.lines().filter(|(_, text)| allows(text));
    lines.map(|(line, _)| TidyFinding::line(&file.path, line, "write `#[expect(…, reason = \"…\")]`")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn finds(path: &str, text: &str, count: usize) {
        let file = SourceFile { path: path.into(), text: text.into() };
        let findings = check(&SourceTree { files: vec![file] });
        assert_eq!(findings.len(), count, "{findings:?}");
    }

    #[test]
    fn each_rule_bites() {
        finds("a/src/catalog.rs", "//! Good.\n", 0);
        finds("a/src/utils.rs", "//! Bad.\n", 1);
        finds("a/src/helpers/x.rs", "//! Bad.\nmod common {\n}\n", 2);
        finds("a/src/x/mod.rs", "//! Bad.\n", 1);
        finds("a/src/x.rs", "use a;\n", 1);
        finds("a/src/x.rs", &"//! long\n".repeat(9), 1);
        finds("a/src/x.rs", &format!("//! Bad.\n#[{}(dead_code)]\n", "allow"), 1);
    }
}
