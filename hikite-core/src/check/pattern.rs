//! Regular expressions that take more than one look at a text.

/// True if the expression must be able to go back: it looks around, refers to what it has found, or keeps what it has
/// taken. All others take linear time. Where that is not certain, it must.
pub(super) fn goes_back(pattern: &str) -> bool {
    let bytes = pattern.as_bytes();
    let (mut at, mut in_class) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let rest = &bytes[at + 1..];
        match byte {
            b'\\' => {
                if !in_class && rest.first().is_some_and(|escaped| !is_plain(*escaped)) {
                    return true;
                }
                at += 1;
            }
            b'[' => in_class = true,
            b']' => in_class = false,
            _ if in_class => {}
            b'(' if is_special(rest) => return true,
            // What is taken once is never given back.
            b'*' | b'+' | b'?' | b'}' if rest.first() == Some(&b'+') => return true,
            _ => {}
        }
        at += 1;
    }
    false
}

/// Escapes after a backslash that need no backtracking.
fn is_plain(escaped: u8) -> bool {
    match escaped {
        // Edges of words are looked around for.
        b'<' | b'>' => false,
        _ => !escaped.is_ascii_alphanumeric() || b"0ADPSWcdfnprstuvwxz".contains(&escaped),
    }
}

/// Characters after a parenthesis that begin anything but a group, with or without a name or flags.
fn is_special(rest: &[u8]) -> bool {
    match rest {
        [b'?', b'<', next, ..] => matches!(next, b'=' | b'!'),
        [b'?', b'P', next, ..] => *next != b'<',
        [b'?', next, ..] => !(matches!(next, b':' | b'-') || next.is_ascii_lowercase() || *next == b'U'),
        [b'*', ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::goes_back;

    #[test]
    fn what_looks_around_or_back_is_told_from_the_rest() {
        for pattern in [
            r"^(?=.*[a-z]).+$",
            r"a(?!b)",
            r"(?<=a)b",
            r"(?<!a)b",
            r"(a)\1",
            r"(?<x>a)\k<x>",
            "(?>a*)b",
            "a++b",
            "a*+b",
            "a{2}+b",
            r"(?P=x)",
            r"\bword\b",
            r"a\Kb",
            "(?(a)b|c)",
            "(*FAIL)",
            r"[\]](?=a)",
            r"[(](?=a)",
        ] {
            assert!(goes_back(pattern), "{pattern}");
        }
        for pattern in [
            "",
            "^[a-z]+$",
            r"^\d{4}-\d{2}$",
            r"^(?:a|b)+?$",
            r"(?i)a",
            "(?<name>a)",
            "(?P<name>a)",
            r"\(?=a",
            r"[(?=]",
            r"[*+]",
            r"\p{L}\u00e9\x41",
            r"^[^\s@]+@[^\s@]+\.[a-z]{2,}$",
            r"\++",
            r"[\1]",
        ] {
            assert!(!goes_back(pattern), "{pattern}");
        }
    }
}
