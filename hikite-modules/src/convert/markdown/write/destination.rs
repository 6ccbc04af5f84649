//! Link and image destinations in Markdown.

/// Returns `true` if a URL can be written as an autolink in `<` and `>`.
pub(super) fn is_plain(url: &str) -> bool {
    let is_scheme = |scheme: &str| {
        (2..=32).contains(&scheme.len())
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
    };
    let is_bare = || !url.contains(|c: char| c.is_whitespace() || c.is_control() || "<>|\\&".contains(c));
    url.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)) && is_bare()
}

/// Appends the destination in parentheses.
pub(super) fn write(url: &str, in_cell: bool, out: &mut String) {
    let angled = url.is_empty() || url.starts_with('<') || url.contains(|c: char| " ()".contains(c) || c.is_control());
    if angled {
        out.push('<');
    }
    let mut rest = url.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\r' => out.push_str("%0A"),
            '\0' => out.push('\u{fffd}'),
            '&' => out.push_str(if url.contains(';') { "&amp;" } else { "&" }),
            '\\' if rest.peek().is_none_or(char::is_ascii_punctuation) => out.push_str("\\\\"),
            '<' | '>' => out.extend(['\\', c]),
            '|' if in_cell => out.push_str("\\|"),
            '*' | '_' | '`' | '~' | '[' | ']' | '$' if angled => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    if angled {
        out.push('>');
    }
}
