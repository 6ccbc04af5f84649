//! Code languages of Notion. It rejects all others, so they become plain text.

pub(super) const PLAIN: &str = "plain text";

const KNOWN: &[&str] = &[
    "abap",
    "abc",
    "agda",
    "arduino",
    "ascii art",
    "assembly",
    "bash",
    "basic",
    "bnf",
    "c",
    "c#",
    "c++",
    "clojure",
    "coffeescript",
    "coq",
    "css",
    "dart",
    "dhall",
    "diff",
    "docker",
    "ebnf",
    "elixir",
    "elm",
    "erlang",
    "f#",
    "flow",
    "fortran",
    "gherkin",
    "glsl",
    "go",
    "graphql",
    "groovy",
    "haskell",
    "hcl",
    "html",
    "idris",
    "java",
    "javascript",
    "json",
    "julia",
    "kotlin",
    "latex",
    "less",
    "lisp",
    "livescript",
    "llvm ir",
    "lua",
    "makefile",
    "markdown",
    "markup",
    "matlab",
    "mathematica",
    "mermaid",
    "nix",
    "notion formula",
    "objective-c",
    "ocaml",
    "pascal",
    "perl",
    "php",
    "plain text",
    "powershell",
    "prolog",
    "protobuf",
    "purescript",
    "python",
    "r",
    "racket",
    "reason",
    "ruby",
    "rust",
    "sass",
    "scala",
    "scheme",
    "scss",
    "shell",
    "smalltalk",
    "solidity",
    "sql",
    "swift",
    "toml",
    "typescript",
    "vb.net",
    "verilog",
    "vhdl",
    "visual basic",
    "webassembly",
    "xml",
    "yaml",
    "java/c/c++/c#",
];

/// Aliases of the languages above.
const ALIASES: &[(&str, &str)] = &[
    ("asm", "assembly"),
    ("clj", "clojure"),
    ("cmd", "shell"),
    ("coffee", "coffeescript"),
    ("console", "shell"),
    ("cpp", "c++"),
    ("cs", "c#"),
    ("csharp", "c#"),
    ("dockerfile", "docker"),
    ("ex", "elixir"),
    ("fs", "f#"),
    ("fsharp", "f#"),
    ("golang", "go"),
    ("hs", "haskell"),
    ("js", "javascript"),
    ("jsx", "javascript"),
    ("kt", "kotlin"),
    ("make", "makefile"),
    ("md", "markdown"),
    ("objc", "objective-c"),
    ("patch", "diff"),
    ("proto", "protobuf"),
    ("ps1", "powershell"),
    ("py", "python"),
    ("rb", "ruby"),
    ("rs", "rust"),
    ("sh", "shell"),
    ("terraform", "hcl"),
    ("tex", "latex"),
    ("tf", "hcl"),
    ("ts", "typescript"),
    ("tsx", "typescript"),
    ("vb", "visual basic"),
    ("wasm", "webassembly"),
    ("yml", "yaml"),
    ("zsh", "shell"),
];

/// Returns the language for the info string of a fence.
pub(super) fn known(info: &str) -> &'static str {
    let info = info.trim().to_ascii_lowercase();
    let first = info.split([' ', ',', '{', ':']).next().unwrap_or_default();
    let is_known = |name: &str| KNOWN.iter().find(|known| **known == name).copied();
    let alias = || ALIASES.iter().find(|(alias, _)| *alias == first).map(|(_, known)| *known);
    is_known(&info).or_else(|| is_known(first)).or_else(alias).unwrap_or(PLAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_those_of_notion_or_plain_text() {
        for (info, expected) in [
            ("rust", "rust"),
            ("Rust,ignore", "rust"),
            ("js title=\"a.js\"", "javascript"),
            ("visual basic", "visual basic"),
            ("java/c/c++/c#", "java/c/c++/c#"),
            ("brainfuck", PLAIN),
            ("日本語", PLAIN),
            ("", PLAIN),
        ] {
            assert_eq!(known(info), expected, "{info}");
        }
        assert!(ALIASES.iter().all(|(_, known)| KNOWN.contains(known)));
    }
}
