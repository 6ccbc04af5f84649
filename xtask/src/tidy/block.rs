//! Blocks of Rust source, found by their indentation. Relies on rustfmt and does not parse.

use super::tree::SourceFile;

/// Returns the numbered lines outside `#[cfg(test)] mod … { … }`; none for a file that only tests use.
pub(super) fn production(file: &SourceFile) -> Vec<(usize, &str)> {
    if file.is_test() { Vec::new() } else { outside_test_modules(&file.text) }
}

pub(super) fn outside_test_modules(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut kept = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let is_test_module = lines[index].trim() == "#[cfg(test)]"
            && lines.get(index + 1).is_some_and(|next| next.trim().starts_with("mod ") && next.ends_with('{'));
        if is_test_module {
            index += 1 + block_length(&lines[index + 1..]).unwrap_or(1);
        } else {
            kept.push((index + 1, lines[index]));
            index += 1;
        }
    }
    kept
}

/// Returns the length of the item that starts here, up to the closing brace at its indentation.
pub(super) fn block_length(lines: &[&str]) -> Option<usize> {
    let first = lines.first()?;
    let indent = indent(first);
    let is_end = |line: &str| line.strip_prefix(indent).is_some_and(|rest| matches!(rest, "}" | ");" | "};"));
    let one_line = first.ends_with('}') || first.ends_with(';');
    if one_line { Some(1) } else { lines.iter().position(|line| is_end(line)).map(|last| last + 1) }
}

pub(super) fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

pub(super) fn function_name(line: &str) -> Option<&str> {
    declared(line, &["fn"])
}

/// Returns the name that the line declares with one of the keywords.
pub(super) fn declared<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let mut words = line.split_whitespace();
    let introduces = |word: &str| {
        word.starts_with("pub") || word.ends_with(')') || matches!(word, "async" | "const" | "unsafe" | "extern" | "in")
    };
    let keyword = words.by_ref().find(|word| !introduces(word))?;
    let name = keywords.contains(&keyword).then(|| words.next()).flatten()?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
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
    fn declared_names_end_at_generics_and_braces() {
        assert_eq!(declared("pub struct Key<'a> {", &["struct"]), Some("Key"));
        assert_eq!(declared("struct Unit;", &["struct", "enum"]), Some("Unit"));
        assert_eq!(declared("/// struct Unit", &["struct"]), None);
    }

    #[test]
    fn test_modules_do_not_count() {
        let text = "use a;\n#[cfg(test)]\nmod tests {\n    fn a() {\n    }\n}\nfn b() {}\n#[cfg(test)]\nmod more;\n";
        let numbers: Vec<usize> = outside_test_modules(text).iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 7, 8, 9]);
        let file = SourceFile { path: "a/src/tests.rs".into(), text: text.into() };
        assert!(production(&file).is_empty());
    }
}
