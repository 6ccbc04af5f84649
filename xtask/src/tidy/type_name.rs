//! Names of types can be searched for: at most two types of the workspace share one.

use std::collections::BTreeMap;

use super::block::{declared, indent};
use super::ratchet::Ratchet;
use super::tree::SourceFile;
use super::{SourceTree, TidyFinding};

const SAME_NAME_MAX: usize = 2;

/// Names over the limit, and how many types have each today.
const EXCEPTIONS: &[(&str, usize)] = &[];

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut declarations = BTreeMap::new();
    let lines = tree.rust().flat_map(SourceFile::lines);
    for name in lines.filter_map(|(_, line)| type_name(line)) {
        *declarations.entry(name.to_owned()).or_default() += 1;
    }
    let ratchet = Ratchet {
        table: "xtask/src/tidy/type_name.rs",
        unit: "types of this name",
        max: SAME_NAME_MAX,
        exceptions: EXCEPTIONS,
    };
    ratchet.check(&declarations)
}

fn type_name(line: &str) -> Option<&str> {
    // An indented `type` belongs to a trait, which gives it its name.
    let alias = declared(line, &["type"]).filter(|_| indent(line).is_empty());
    alias.or_else(|| declared(line, &["struct", "enum", "trait", "union"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_three_types_fails() {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let files = vec![
            file("a/src/x.rs", "pub struct Reader;\nstruct Place;\n/// struct Place\n"),
            file(
                "b/src/x.rs",
                "pub(crate) enum Reader<T> {\n}\ntrait Place {}\nimpl A for B {\n    type Place = u8;\n}\n",
            ),
            file("b/tests/it.rs", "type Reader = u8;\n"),
        ];
        let findings: Vec<String> = check(&SourceTree { files }).iter().map(ToString::to_string).collect();
        assert_eq!(findings, ["Reader: 3 types of this name; at most 2 are allowed"]);
    }
}
