//! Counts tokens with the `o200k_base` vocabulary, which is embedded: nothing is sent anywhere. It is unpacked on
//! first use, so that no other command pays for it.

use std::sync::LazyLock;

use serde_json::Value;
use tiktoken::CoreBpe;

pub const VOCABULARY: &str = "o200k_base";

static O200K: LazyLock<CoreBpe> = LazyLock::new(tiktoken::encoding::o200k_base);

/// Counts the tokens of a text. Special tokens (`<|endoftext|>`) are counted as plain text.
pub fn tokens(text: &str) -> usize {
    O200K.count(text)
}

/// Counts the tokens of a value as minified JSON.
pub(crate) fn tokens_of(value: &Value) -> usize {
    tokens(&value.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Counts from two independent programs (the npm packages gpt-tokenizer 4 and js-tiktoken 1), which agreed with
    /// this one on 2,988 texts of 759,384 tokens.
    const KNOWN: &[(usize, &str)] = &[
        (0, ""),
        (1, " "),
        (2, "   x"),
        (1, "\n\n\n"),
        (1, "\r\n\r\n"),
        (2, "\t\tx"),
        (6, "don't WON'T I'LL they've"),
        (4, "1234567890"),
        (4, "3.14159"),
        (12, "🙂👨\u{200d}👩\u{200d}👧\u{200d}👦"),
        (4, "e\u{301}e\u{301}"),
        (3, "العربية نص"),
        (4, "नमस्ते"),
        (7, "<|endoftext|>"),
        (6, "XMLHttpRequest getHTTPUrl"),
        (8, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        (3, "\u{0}\u{1}\u{200b}"),
        (10, "ＦＵＬＬ\u{3000}テスト"),
        (8, "日本語のツールを検索する"),
        (9, "ファイルを読み、要約を書く。"),
        (8, "ⅣⅤ²³ ǅ"),
        (3, "trailing "),
        (3, "snake_case_name"),
        (6, "kebab-case/path/to.file"),
        (13, "{\"a\":[1,2,3],\"b\":null}"),
        (22, "[{\"number\":1,\"title\":\"Fix the login\"},{\"number\":2,\"title\":\"直す\"}]"),
        (22, "issues[2]{number,title}:\n  1,Fix the login\n  2,直す"),
        (18, "search(query: string /* Text to look for. */, limit?: integer = 10)"),
    ];

    #[test]
    fn texts_have_as_many_tokens_as_others_count() {
        for (count, text) in KNOWN {
            assert_eq!(tokens(text), *count, "{text:?}");
        }
    }

    #[test]
    fn blanks_between_members_are_not_counted() {
        let spaced: Value = serde_json::from_str("{ \"a\" : [ 1 ,\n 2 ] }").expect("JSON");
        assert_eq!(tokens_of(&spaced), tokens(r#"{"a":[1,2]}"#));
        assert_eq!(tokens_of(&json!("日本語")), tokens("\"日本語\""), "letters are not escaped");
    }
}
