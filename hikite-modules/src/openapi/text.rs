//! Shortens foreign texts to one line.

const LINE_CHARS: usize = 120;

/// Joins a text to one line without control characters.
pub(super) fn single(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first sentence, without HTML tags and limited in length.
pub(super) fn line(text: &str) -> String {
    let paragraph = text.trim().split("\n\n").next().unwrap_or_default();
    let mut plain = String::new();
    let mut rest = paragraph;
    while let Some((before, after)) = rest.split_once('<') {
        let is_tag = after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        plain.push_str(before);
        rest = match after.split_once('>') {
            Some((_, behind)) if is_tag => behind,
            _ => {
                plain.push('<');
                after
            }
        };
    }
    plain.push_str(rest);
    shortened(&single(&plain), LINE_CHARS)
}

fn shortened(text: &str, chars: usize) -> String {
    let sentence = text.split_once(". ").map_or(text, |(sentence, _)| sentence).trim_end_matches('.');
    if sentence.chars().count() <= chars {
        return sentence.to_owned();
    }
    let cut: String = sentence.chars().take(chars).collect();
    let end = cut.rfind(' ').unwrap_or(cut.len());
    format!("{}…", &cut[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_short_and_plain() {
        assert_eq!(line("Lists <b>all</b>\n  things. And more.\n\nMuch more."), "Lists all things");
        assert_eq!(line("a < b\tand c"), "a < b and c");
        assert!(line(&"word ".repeat(100)).chars().count() <= LINE_CHARS + 1);
    }
}
