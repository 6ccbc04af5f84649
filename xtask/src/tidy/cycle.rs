//! Import cycles between the files of a crate: files that reach each other over `crate::` and `super::` paths. A module
//! and the files below it are one unit, so imports between them do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::block::production;
use super::ratchet::Ratchet;
use super::tree::SourceFile;
use super::{SourceTree, TidyFinding};

const CYCLE_FILES_MAX: usize = 3;
const TABLE: &str = "xtask/src/tidy/cycle.rs";

/// Crates over the limit, and the number of files in the longest cycle of each today.
const LONGEST: &[(&str, usize)] = &[];

/// Those crates, and the number of files in all their cycles over the limit.
const TOTAL: &[(&str, usize)] = &[];

type ModulePath = Vec<String>;
type ImportGraph = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut longest = BTreeMap::new();
    let mut total = BTreeMap::new();
    for (package, files) in by_package(tree) {
        let graph = import_graph(&files);
        let sizes = cycles(&graph).into_iter().map(|cycle| cycle.len());
        let sizes: Vec<usize> = sizes.filter(|size| *size > CYCLE_FILES_MAX).collect();
        longest.insert(package.to_owned(), sizes.iter().copied().max().unwrap_or_default());
        total.insert(package.to_owned(), sizes.iter().sum());
    }
    let ratchet = |unit, exceptions| Ratchet { table: TABLE, unit, max: CYCLE_FILES_MAX, exceptions };
    let mut findings = ratchet("files in its longest import cycle", LONGEST).check(&longest);
    findings.extend(ratchet("files in import cycles", TOTAL).check(&total));
    findings
}

/// Returns a line for each cycle over the limit, with its files.
pub(super) fn warnings(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut warnings = Vec::new();
    for (package, files) in by_package(tree) {
        for cycle in cycles(&import_graph(&files)).iter().filter(|cycle| cycle.len() > CYCLE_FILES_MAX) {
            let modules: Vec<String> = cycle.iter().map(|module| module.join("::")).collect();
            let message = format!("{} files import each other: {}", cycle.len(), modules.join(", "));
            warnings.push(TidyFinding::file(package, message));
        }
    }
    warnings
}

fn by_package(tree: &SourceTree) -> BTreeMap<&str, Vec<&SourceFile>> {
    let mut packages: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for file in tree.rust().filter(|file| !file.is_test()) {
        if let Some(package) = file.package() {
            packages.entry(package).or_default().push(file);
        }
    }
    packages
}

fn import_graph(files: &[&SourceFile]) -> ImportGraph {
    let modules: BTreeSet<ModulePath> = files.iter().filter_map(|file| module_path(file)).collect();
    let mut graph = ImportGraph::new();
    for file in files {
        let Some(from) = module_path(file) else { continue };
        let targets = imports(file, &from).into_iter().filter_map(|path| {
            let ends = (0..=path.len()).rev();
            ends.map(|end| path[..end].to_vec()).find(|module| modules.contains(module))
        });
        let targets = targets.filter(|to| !to.starts_with(&from) && !from.starts_with(to)).collect();
        graph.insert(from, targets);
    }
    graph
}

fn module_path(file: &SourceFile) -> Option<ModulePath> {
    let (_, inside) = file.path.split_once("/src/")?;
    let module = inside.strip_suffix(".rs")?;
    let is_root = matches!(module, "lib" | "main");
    Some(if is_root { Vec::new() } else { module.split('/').map(str::to_owned).collect() })
}

/// Returns what a file names by `crate::` or `super::`, as paths from the root of the crate.
fn imports(file: &SourceFile, module: &[String]) -> Vec<ModulePath> {
    let code: Vec<&str> =
        production(file).into_iter().map(|(_, line)| line.trim()).filter(|line| !line.starts_with("//")).collect();
    let code = code.join(" ");
    let starts = code.match_indices("crate::").chain(code.match_indices("super::"));
    let starts =
        starts.filter(|(start, _)| !code[..*start].ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c)));
    starts.flat_map(|(start, _)| expand(&code[start..])).filter_map(|path| from_root(&path, module)).collect()
}

/// Returns the paths of a `use` tree or of a single path at the start of the text.
fn expand(text: &str) -> Vec<String> {
    let end = text.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | ':')).unwrap_or(text.len());
    let (path, rest) = text.split_at(end);
    let Some(rest) = rest.strip_prefix('{').filter(|_| path.ends_with("::")) else { return vec![path.to_owned()] };
    let mut depth = 0;
    let mut item = 0;
    let mut paths = Vec::new();
    for (index, c) in rest.char_indices() {
        if depth == 0 && matches!(c, ',' | '}') {
            paths.extend(expand(rest[item..index].trim()).iter().map(|tail| format!("{path}{tail}")));
            item = index + 1;
        }
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            _ => {}
        }
    }
    paths
}

fn from_root(path: &str, module: &[String]) -> Option<ModulePath> {
    let mut segments = path.split("::").filter(|segment| !segment.is_empty()).peekable();
    let mut base = module;
    if segments.next_if_eq(&"crate").is_some() {
        base = &[];
    }
    while segments.next_if_eq(&"super").is_some() {
        base = base.split_last()?.1;
    }
    Some(base.iter().cloned().chain(segments.map(str::to_owned)).collect())
}

/// Returns the groups of two and more files that all reach each other.
fn cycles(graph: &ImportGraph) -> Vec<BTreeSet<&ModulePath>> {
    let reached: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
        graph.keys().map(|module| (module, reachable(graph, module))).collect();
    let mut cycles: Vec<BTreeSet<&ModulePath>> = Vec::new();
    for (module, others) in &reached {
        if cycles.iter().any(|cycle| cycle.contains(module)) {
            continue;
        }
        let cycle: BTreeSet<&ModulePath> =
            others.iter().copied().filter(|other| reached[other].contains(module)).collect();
        if cycle.len() > 1 {
            cycles.push(cycle);
        }
    }
    cycles
}

fn reachable<'a>(graph: &'a ImportGraph, from: &ModulePath) -> BTreeSet<&'a ModulePath> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&ModulePath> = graph[from].iter().collect();
    while let Some(module) = open.pop() {
        if seen.insert(module) {
            open.extend(&graph[module]);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn use_trees_are_expanded() {
        assert_eq!(
            expand("crate::a::{self, b::{C, D as E}, f}; x"),
            ["crate::a::self", "crate::a::b::C", "crate::a::b::D", "crate::a::f"]
        );
        assert_eq!(expand("super::run(1)"), ["super::run"]);
        let module = ["a".to_owned(), "b".to_owned()];
        assert_eq!(from_root("super::super::c::D", &module), Some(vec!["c".to_owned(), "D".to_owned()]));
        assert_eq!(from_root("super::super::super::c", &module), None);
    }

    #[test]
    fn four_files_that_import_each_other_fail() {
        let files = vec![
            file("a/src/lib.rs", "mod one;\nuse one::One;\n"),
            file("a/src/one.rs", "use crate::{\n    lib_item,\n    two::{Two, Three},\n};\n"),
            file("a/src/two.rs", "fn f() {\n    super::three::run();\n}\n"),
            file("a/src/three.rs", "mod child;\n// crate::one::One\nuse super::four::Four;\n"),
            file("a/src/three/child.rs", "use super::Three;\n"),
            file("a/src/four.rs", "use crate::one::One;\n"),
        ];
        let tree = SourceTree { files };
        let findings = check(&tree).into_iter().filter(|finding| finding.file == "a");
        let expected = [
            "a: 4 files in its longest import cycle; at most 3 are allowed",
            "a: 4 files in import cycles; at most 3 are allowed",
        ];
        assert_eq!(findings.map(|finding| finding.to_string()).collect::<Vec<_>>(), expected);
        let warnings: Vec<String> = warnings(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(warnings, ["a: 4 files import each other: four, one, three, two"]);
    }

    #[test]
    fn a_test_module_and_a_parent_make_no_cycle() {
        let files = [
            file("a/src/one.rs", "use crate::two::Two;\nuse crate::one::child::Child;\n"),
            file("a/src/one/child.rs", "use super::One;\nuse crate::one::One;\n"),
            file("a/src/two.rs", "#[cfg(test)]\nmod tests {\n    use crate::one::One;\n}\n"),
        ];
        assert!(cycles(&import_graph(&files.iter().collect::<Vec<_>>())).is_empty());
    }
}
