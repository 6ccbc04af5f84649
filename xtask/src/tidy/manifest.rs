//! Every external dependency has a comment with its reason above it in the workspace manifest. Adjacent crates of one
//! family (`http`, `http-body`) share a comment.

use super::{SourceTree, TidyFinding};

const FILE: &str = "Cargo.toml";

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let Some(file) = tree.get(FILE) else { return vec![TidyFinding::file(FILE, "is not there")] };
    without_reason(&file.text)
        .map(|(line, name)| TidyFinding::line(FILE, line, format!("no line above `{name}` says why it is here")))
        .collect()
}

fn without_reason(manifest: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    let mut explained = "";
    let mut comment = false;
    manifest.lines().enumerate().filter_map(move |(index, line)| {
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
            return None;
        }
        if line.starts_with('#') || line.is_empty() || !inside {
            comment = line.starts_with('#');
            return None;
        }
        let (name, _) = line.split_once([' ', '.', '='])?;
        let has_reason = std::mem::take(&mut comment) || name.starts_with("hikite") || family(name) == explained;
        if has_reason {
            explained = family(name);
            return None;
        }
        Some((index + 1, name))
    })
}

fn family(name: &str) -> &str {
    name.split(['-', '_']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_covers_a_family() {
        let manifest = "[workspace.dependencies]\nhikite-core = 1\n\n# why\nhttp = \"1\"\nhttp-body = \"1\"\nbytes = \"1\"\n[lints]\nx = 1\n";
        assert_eq!(without_reason(manifest).collect::<Vec<_>>(), [(7, "bytes")]);
    }
}
