//! Maximum length of files and functions, in lines formatted by rustfmt. Test modules do not count towards a file, but
//! a test is a function like any other.

use super::tree::SourceFile;
use super::{SourceTree, TidyFinding};

const FILE_LINES_MAX: usize = 600;
const FILE_LINES_WARN: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        if !file.is_test() {
            let lines = production_lines(&file.text);
            if lines > FILE_LINES_MAX {
                findings.push(TidyFinding::file(&file.path, format!("{lines} lines; split before {FILE_LINES_MAX}")));
            }
        }
        findings.extend(long_functions(file));
    }
    findings
}

pub(super) fn warnings(tree: &SourceTree) -> Vec<TidyFinding> {
    let files = tree.rust().filter(|file| !file.is_test());
    files
        .map(|file| (file, production_lines(&file.text)))
        .filter(|(_, lines)| *lines > FILE_LINES_WARN)
        .map(|(file, lines)| TidyFinding::file(&file.path, format!("{lines} lines; think about splitting it")))
        .collect()
}

fn long_functions(file: &SourceFile) -> Vec<TidyFinding> {
    let lines: Vec<&str> = file.text.lines().collect();
    let long = lines.iter().enumerate().filter_map(|(index, line)| {
        let name = function_name(line)?;
        let length = block_length(&lines[index..])?;
        (length > FUNCTION_LINES_MAX).then(|| {
            let message = format!("`{name}` has {length} lines; split before {FUNCTION_LINES_MAX}");
            TidyFinding::line(&file.path, index + 1, message)
        })
    });
    long.collect()
}

/// Counts all lines outside `#[cfg(test)] mod … { … }`.
fn production_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let mut count = 0;
    let mut index = 0;
    while index < lines.len() {
        let is_test_module = lines[index].trim() == "#[cfg(test)]"
            && lines.get(index + 1).is_some_and(|next| next.trim().starts_with("mod ") && next.ends_with('{'));
        if is_test_module {
            index += 1 + block_length(&lines[index + 1..]).unwrap_or(1);
        } else {
            count += 1;
            index += 1;
        }
    }
    count
}

/// Returns the length of the item that starts here, up to the closing brace at its indentation.
fn block_length(lines: &[&str]) -> Option<usize> {
    let first = lines.first()?;
    let indent = &first[..first.len() - first.trim_start().len()];
    let is_end = |line: &str| line.strip_prefix(indent).is_some_and(|rest| matches!(rest, "}" | ");" | "};"));
    let one_line = first.ends_with('}') || first.ends_with(';');
    if one_line { Some(1) } else { lines.iter().position(|line| is_end(line)).map(|last| last + 1) }
}

fn function_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let introduces = |word: &str| {
        word.starts_with("pub") || word.ends_with(')') || matches!(word, "async" | "const" | "unsafe" | "extern" | "in")
    };
    let keyword = words.by_ref().find(|word| !introduces(word))?;
    let name = (keyword == "fn").then(|| words.next()).flatten()?;
    name.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_and_measured() {
        assert_eq!(function_name("    pub(crate) async fn run<T>(self) -> T {"), Some("run"));
        assert_eq!(function_name("    // fn is a keyword"), None);
        assert_eq!(function_name("    let fn_name = 1;"), None);
        let lines = ["    fn a() {", "        if x {", "        }", "    }", "}"];
        assert_eq!(block_length(&lines), Some(4));
        assert_eq!(block_length(&["fn a() {}", "}"]), Some(1));
    }

    #[test]
    fn test_modules_do_not_count() {
        let text = "use a;\n#[cfg(test)]\nmod tests {\n    fn a() {\n    }\n}\nfn b() {}\n#[cfg(test)]\nmod more;\n";
        assert_eq!(production_lines(text), 4);
    }
}
