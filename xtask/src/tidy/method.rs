//! Methods per type. A type with many methods has many duties; the methods of all its `impl` blocks in its crate count,
//! in whatever file they are.

use std::collections::BTreeMap;

use super::block::{block_length, function_name, indent, production};
use super::ratchet::Ratchet;
use super::tree::SourceFile;
use super::{SourceTree, TidyFinding};

const METHODS_MAX: usize = 40;

/// Types over the limit, and how many methods each has today.
const EXCEPTIONS: &[(&str, usize)] = &[];

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut methods = BTreeMap::new();
    for file in tree.rust() {
        let Some(package) = file.package() else { continue };
        for (name, count) in inherent_impls(file) {
            *methods.entry(format!("{package}::{name}")).or_default() += count;
        }
    }
    let ratchet =
        Ratchet { table: "xtask/src/tidy/method.rs", unit: "methods", max: METHODS_MAX, exceptions: EXCEPTIONS };
    ratchet.check(&methods)
}

/// Returns the type and the number of functions of each `impl` block without a trait.
fn inherent_impls(file: &SourceFile) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = production(file).into_iter().map(|(_, line)| line).collect();
    let starts = lines.iter().enumerate().filter(|(_, line)| {
        let rest = line.trim_start().strip_prefix("impl");
        rest.is_some_and(|rest| rest.starts_with([' ', '<']))
    });
    let impls = starts.filter_map(|(start, first)| {
        let block = &lines[start..start + block_length(&lines[start..])?];
        let header_lines = block.iter().position(|line| line.ends_with(['{', '}']))? + 1;
        let has_trait = block[..header_lines].iter().any(|line| line.contains(" for ") || line.trim() == "for");
        let inside = format!("{}    ", indent(first));
        let functions = block.iter().filter(|line| indent(line) == inside && function_name(line).is_some()).count();
        (!has_trait).then_some((type_name(first)?, functions))
    });
    impls.collect()
}

/// Returns the type's name in the first line of an `impl` block without a trait.
fn type_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start().strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.char_indices().find(|(index, c)| {
            // The arrow of a function type does not close a bracket.
            let is_arrow = *c == '>' && rest[..*index].ends_with('-');
            depth += i32::from(*c == '<') - i32::from(*c == '>' && !is_arrow);
            depth == 0
        });
        rest = &rest[end?.0 + 1..];
    }
    let path = rest.trim_start().split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | ':')).next()?;
    path.rsplit("::").next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: String) -> SourceFile {
        SourceFile { path: path.into(), text }
    }

    #[test]
    fn inherent_functions_are_counted() {
        let text = "impl<'a, F: Fn(u8) -> u8> a::Key<'a, F> {\n    fn a() {}\n\n    pub(crate) async fn b() {\n        fn inner() {}\n    }\n}\n\
            impl fmt::Debug for Key {\n    fn fmt() {}\n}\nimpl Key {}\n#[cfg(test)]\nmod tests {\n    impl Key {\n        fn c() {}\n    }\n}\n";
        assert_eq!(inherent_impls(&file("a/src/x.rs", text.into())), [("Key", 2), ("Key", 0)]);
    }

    #[test]
    fn a_type_with_many_methods_in_two_files_fails() {
        let half = format!("impl Everything {{\n{}}}\n", "    fn a() {}\n".repeat(METHODS_MAX / 2 + 1));
        let files = vec![file("a/src/x.rs", half.clone()), file("a/src/y.rs", half.clone()), file("b/src/x.rs", half)];
        let findings: Vec<String> = check(&SourceTree { files }).iter().map(ToString::to_string).collect();
        assert!(findings.contains(&"a::Everything: 42 methods; at most 40 are allowed".to_owned()), "{findings:?}");
        assert!(!findings.iter().any(|finding| finding.starts_with("b::")), "{findings:?}");
    }
}
