//! Detects regular expressions that need backtracking.

/// Returns `true` if the pattern needs backtracking: look-around, back-references, atomic or possessive matching. All
/// other patterns match in linear time. Errs on the side of `true`.
pub(super) fn needs_backtracking(pattern: &str) -> bool {
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
            // A possessive quantifier.
            b'*' | b'+' | b'?' | b'}' if rest.first() == Some(&b'+') => return true,
            _ => {}
        }
        at += 1;
    }
    false
}

/// Returns `true` if the escape needs no backtracking.
fn is_plain(escaped: u8) -> bool {
    match escaped {
        // Word boundaries are look-arounds.
        b'<' | b'>' => false,
        _ => !escaped.is_ascii_alphanumeric() || b"0ADPSWcdfnprstuvwxz".contains(&escaped),
    }
}

/// Returns `true` if the text after a parenthesis begins anything but a plain, named or flagged group.
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
    use super::needs_backtracking;

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
            assert!(needs_backtracking(pattern), "{pattern}");
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
            assert!(!needs_backtracking(pattern), "{pattern}");
        }
    }
}
