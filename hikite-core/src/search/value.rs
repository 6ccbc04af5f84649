//! Finds the values in a query: ids, numbers, addresses, paths and quoted texts. They are data for a tool and say
//! nothing about its name.

use super::word::is_cjk;

/// Opening and closing quotation marks.
const QUOTES: [(char, char); 7] =
    [('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’'), ('「', '」'), ('『', '』'), ('«', '»')];
/// Digits that make an id of a word with letters; `base64` and `sha256` have fewer.
const ID_DIGITS: usize = 4;
/// Shortest hexadecimal id with letters and digits.
const HEX_LETTERS: usize = 7;

/// Returns the text with a space in place of each value.
pub(super) fn without_values(text: &str) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let length = quoted(text, at, letter).or_else(|| value(text, at));
        match length {
            Some(length) => {
                rest.push(' ');
                at += length;
            }
            None => {
                let end = if is_token(letter) { token(&text[at..]).len() } else { letter.len_utf8() };
                rest.push_str(&text[at..at + end]);
                at += end;
            }
        }
    }
    rest
}

/// Returns the length of the quoted text that begins at `at`.
fn quoted(text: &str, at: usize, letter: char) -> Option<usize> {
    let (open, close) = QUOTES.into_iter().find(|(open, _)| *open == letter)?;
    let is_word = |letter: char| letter.is_alphanumeric() && !is_cjk(letter);
    // An apostrophe follows a letter: `don't`.
    if open == close && text[..at].chars().next_back().is_some_and(is_word) {
        return None;
    }
    let inner = &text[at + open.len_utf8()..];
    let ends = |(end, _): &(usize, &str)| {
        let after = inner[end + close.len_utf8()..].chars().next();
        open != close || !after.is_some_and(is_word)
    };
    let (end, _) = inner.match_indices(close).find(ends)?;
    Some(open.len_utf8() + end + close.len_utf8())
}

/// Returns the length of the unquoted value that begins at `at`.
fn value(text: &str, at: usize) -> Option<usize> {
    let token = token(&text[at..]);
    let inner = token.trim_end_matches(['.', ':', '!', '?', '-']);
    is_value(inner).then_some(inner.len())
}

/// Returns the characters up to the next space, mark of punctuation or letter of a script without spaces.
fn token(text: &str) -> &str {
    &text[..text.find(|letter| !is_token(letter)).unwrap_or(text.len())]
}

fn is_token(letter: char) -> bool {
    let is_mark = matches!(letter, ',' | ';' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '"' | '\'' | '`');
    letter.is_ascii_graphic() && !is_mark || letter.is_alphanumeric() && !is_cjk(letter)
}

fn is_value(token: &str) -> bool {
    is_address(token) || is_path(token) || is_number(token) || is_id(token)
}

/// Returns `true` for `https://example.com` and `me@example.com`.
fn is_address(token: &str) -> bool {
    let mail = || token.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    token.contains("://") || token.starts_with("www.") || mail()
}

/// Returns `true` for `/etc/hosts`, `~/notes`, `src/main.rs` and `C:\data`, and `false` for `read/write`.
fn is_path(token: &str) -> bool {
    let rooted = ["/", "~/", "./", "../"].iter().any(|root| token.starts_with(root)) && token.len() > 2;
    let deep =
        token.matches('/').count() > 1 || token.contains('/') && token.rsplit('/').next().is_some_and(has_suffix);
    rooted || deep || token.contains(":\\") || token.starts_with("\\\\")
}

fn has_suffix(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(name, suffix)| !name.is_empty() && (1..=5).contains(&suffix.len()))
}

/// Returns `true` for `42`, `#7`, `3.5%`, `$20`, `2026-11-18` and `10:30`.
fn is_number(token: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_digit() || "#$€¥£%+-.:/".contains(letter);
    token.contains(|letter: char| letter.is_ascii_digit()) && token.chars().all(is_part)
}

/// Returns `true` for `PROJ-17`, `abc-123`, `C024BE91L` and a UUID, and `false` for `utf-8`, `base64` and `s3`.
fn is_id(token: &str) -> bool {
    let digits = token.chars().filter(char::is_ascii_digit).count();
    let has_letters = token.chars().any(char::is_alphabetic);
    let numbered = token.rsplit_once(['-', '_', '#']).is_some_and(|(name, number)| {
        !name.is_empty() && number.len() > 1 && number.chars().all(|letter| letter.is_ascii_digit())
    });
    let is_hex = token.len() >= HEX_LETTERS && token.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-');
    has_letters && (numbered || digits >= ID_DIGITS || digits > 0 && is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let rest = without_values(text);
        assert_eq!(rest.split_whitespace().collect::<Vec<_>>().join(" "), expected, "{text}");
    }

    #[test]
    fn values_are_left_out() {
        check("close PROJ-17 and abc-123, then #42.", "close and , then .");
        check("send 'Quarterly report' to a.b@example.com", "send to");
        check("open https://example.com/issues?x=1 in a browser", "open in a browser");
        check("read /etc/hosts, ~/notes and src/main.rs", "read , and");
        check("what is on 2026-11-18 at 10:30? 3.5% of $20", "what is on at ? of");
        check("get order 4f2a9c1 or 0b6c3c1e-9d1f-4d53-a8f2-1c2d3e4f5a6b", "get order or");
        check("message C024BE91L", "message");
        check("「見積書」を探す", "を探す");
        check("PROJ-17を閉じて、“設計”を読む", "を閉じて、 を読む");
    }

    #[test]
    fn words_stay() {
        for text in [
            "don't list the user's issues",
            "read/write a file",
            "utf-8 base64 sha256 s3 k8s oauth2",
            "list_issues of github:search_code",
            "Node.js and report.pdf",
            "天気を調べる",
            "it's \"unclosed",
        ] {
            check(text, text);
        }
    }
}
