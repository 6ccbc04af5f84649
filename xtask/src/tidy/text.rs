//! No file names the machine it was written on: no home folders, and lock files that use the public registries only.

use super::tree::SourceFile;
use super::{SourceTree, TidyFinding};

/// Fictional users of examples and tests.
const EXAMPLE_USERS: &[&str] = &["alice", "bob", "me", "user", "you"];

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    // Recorded third-party data is exempt.
    let foreign = ["/fixtures/", "/data/retrieval/"];
    let recorded = |file: &&SourceFile| foreign.iter().any(|folder| file.path.contains(folder));
    let files = tree.files.iter().filter(|file| !recorded(file));
    files.flat_map(|file| homes(file).into_iter().chain(registries(file))).collect()
}

fn homes(file: &SourceFile) -> Vec<TidyFinding> {
    let lines = file.lines().filter(|(_, text)| names_a_home(text));
    lines.map(|(line, _)| TidyFinding::line(&file.path, line, "a home folder of one machine")).collect()
}

fn names_a_home(text: &str) -> bool {
    let user_of = |rest: &str| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.'));
        rest[..end.unwrap_or(rest.len())].to_owned()
    };
    let folders = [concat!("/ho", "me/"), concat!("/Us", "ers/")];
    let users = folders.iter().flat_map(|folder| text.split(folder).skip(1)).map(user_of);
    let named = users.filter(|user| !user.is_empty()).any(|user| !EXAMPLE_USERS.contains(&user.as_str()));
    named || text.contains(concat!("/ro", "ot/"))
}

/// Reports lock file sources other than the public registry, such as a local mirror.
fn registries(file: &SourceFile) -> Vec<TidyFinding> {
    let (member, public) = match file.path.rsplit('/').next() {
        Some("Cargo.lock") => ("source = \"", "registry+https://github.com/rust-lang/crates.io-index\""),
        Some("package-lock.json") => ("\"resolved\": \"", "https://registry.npmjs.org/"),
        _ => return Vec::new(),
    };
    let foreign = file
        .lines()
        .filter(|(_, text)| text.trim_start().strip_prefix(member).is_some_and(|source| !source.starts_with(public)));
    foreign.map(|(line, _)| TidyFinding::line(&file.path, line, "not the public registry")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_and_mirrors_are_found() {
        assert!(names_a_home(&["see ", "/home", "/kim/x"].concat()));
        assert!(!names_a_home(&["see ", "/home", "/me/x and ", "/home", "/"].concat()));
        let text = "source = \"registry+https://mirror.example/index\"\n".to_owned();
        assert_eq!(registries(&SourceFile { path: "Cargo.lock".into(), text }).len(), 1);
    }
}
