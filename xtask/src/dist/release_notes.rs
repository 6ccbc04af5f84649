//! Release notes: the section of a version in the changelog.

use anyhow::{Context, Result};

/// Returns the section, with its heading as the title.
pub(super) fn cut(changelog: &str, version: &str) -> Result<String> {
    let is_heading = |line: &&str| {
        let name = line.strip_prefix("## ").map(|name| name.trim_start_matches('['));
        let rest = name.and_then(|name| name.strip_prefix(version));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([']', ' ']))
    };
    let mut lines = changelog.lines().skip_while(|line| !is_heading(line));
    let heading = lines.next().with_context(|| format!("CHANGELOG.md has no section `## {version}`; write one"))?;
    let body: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    Ok(format!("# {}\n\n{}\n", heading.trim_start_matches("## "), body.join("\n").trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_version_is_cut_out() {
        let changelog =
            "# Changelog\n\n## [Unreleased]\n\nnew\n\n## [1.2.3] - 2026-01-01\n\n### Added\n\n- one\n\n## 1.2\n";
        assert_eq!(cut(changelog, "1.2.3").expect("there"), "# [1.2.3] - 2026-01-01\n\n### Added\n\n- one\n");
        assert!(cut(changelog, "1.2.4").is_err() && cut(changelog, "1").is_err());
    }
}
