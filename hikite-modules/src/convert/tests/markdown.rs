//! Tests that a written tree parses as the same tree.

use proptest::prelude::*;

use super::super::markdown::{DocumentBlock, read, write};
use super::generate::{line, tree};

#[track_caller]
fn check(text: &str, expected: &str) {
    let written = write(&read(text));
    assert_eq!(written, expected);
    assert_eq!(write(&read(&written)), written);
}

proptest! {
    #![proptest_config(super::cases(2000))]

    #[test]
    fn a_line_is_read_as_it_was_written(line in line()) {
        let text = write(&[DocumentBlock::Paragraph(line.clone())]);
        prop_assert_eq!(read(&text), vec![DocumentBlock::Paragraph(line)], "{}", text);
    }
}

proptest! {
    #![proptest_config(super::cases(1000))]

    #[test]
    fn a_tree_is_read_as_it_was_written(tree in tree()) {
        let text = write(&tree);
        prop_assert_eq!(read(&text), tree, "{}", text);
    }
}

#[test]
fn prose_is_left_alone() {
    for text in [
        "Costs $5 and $10, or 3 * 4 = 12; see snake_case and a_b_c (#12) [1] ~5 minutes.",
        "C:\\Users and https://example.com/a_b?c=d&e=f",
        "R&D, 1 < 2, x > y, a | b, 100% & more!",
        "日本語の文章です。「引用」（例）・ABC_def～",
        "- item\n- [ ] to do\n- [x] done\n  - inner",
        "1. one\n2. two\n   - inner\n3. three",
        "> quote\n>\n> - a",
        "> [!WARNING]\n> 注意",
        "| a | b |\n| --- | --- |\n| 1 | 2 |",
        "```rust\nfn main() {}\n```",
        "**太字**と*斜体*と~~取消~~と`code`",
        "a\\\nb",
        "<https://example.com/>",
        "[text](https://example.com/) ![alt](https://example.com/a.png)",
        "<details>\n<summary>Title</summary>\n\ntext\n\n</details>",
        "$E = mc^2$ です",
        "$$x^2$$",
    ] {
        check(text, text);
    }
}

#[test]
fn what_looks_like_markup_is_escaped_only_where_it_would_be() {
    for (text, expected) in [
        ("\\# no heading", "\\# no heading"),
        ("a \\# b", "a # b"),
        ("1\\. no item", "1\\. no item"),
        ("\\*a\\* 2 \\* 3", "\\*a\\* 2 * 3"),
        ("**「注意」**です", "\\*\\*「注意」\\*\\*です"),
        ("<strong>「注意」</strong>です", "<strong>「注意」</strong>です"),
        ("<b>bold</b> <u>under</u>", "**bold** <u>under</u>"),
        ("`` a`b ``", "``a`b``"),
        ("````\n```\n````", "````\n```\n````"),
        ("a  \nb", "a\\\nb"),
        ("one\ntwo 日本\n語", "one two 日本語"),
        ("* a\n* b", "- a\n- b"),
        ("Title\n===", "# Title"),
        ("<your-token> here", "\\<your-token> here"),
    ] {
        check(text, expected);
    }
}
