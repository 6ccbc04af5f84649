//! Maximum length of files and functions, in lines formatted by rustfmt. Test modules do not count towards a file, but
//! a test is a function like any other.

use super::block::{block_length, function_name, outside_test_modules};
use super::tree::SourceFile;
use super::{SourceTree, TidyFinding};

const FILE_LINES_MAX: usize = 600;
const FILE_LINES_WARN: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        if !file.is_test() {
            let lines = outside_test_modules(&file.text).len();
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
        .map(|file| (file, outside_test_modules(&file.text).len()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_and_functions_are_found() {
        let text = format!("fn short() {{\n}}\nfn long() {{\n{}}}\n", "    call();\n".repeat(FUNCTION_LINES_MAX));
        let file = SourceFile { path: "a/src/x.rs".into(), text };
        assert_eq!(long_functions(&file).iter().map(|finding| finding.line).collect::<Vec<_>>(), [Some(3)]);
        let file = SourceFile { path: "a/src/x.rs".into(), text: "use a;\n".repeat(FILE_LINES_MAX + 1) };
        assert_eq!(check(&SourceTree { files: vec![file] }).len(), 1);
    }
}
