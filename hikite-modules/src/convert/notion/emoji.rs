//! Splits off a leading emoji, the icon of a callout. Notion rejects anything else as an icon, so symbols that only
//! some fonts show as emoji stay in the text.

/// Returns the emoji and the text after it.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (icon, rest) = text.split_at(end);
    let first = icon.chars().next()?;
    let is_shown = is_picture(first) || icon[first.len_utf8()..].starts_with('\u{fe0f}') && !first.is_ascii();
    let is_whole = icon.chars().all(|c| is_picture(c) || is_joiner(c) || c == first) && icon.chars().count() <= 12;
    (is_shown && is_whole).then(|| (icon, rest.trim_start()))
}

fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{fe0f}' | '\u{20e3}' | '\u{e0020}'..='\u{e007f}' | '♀' | '♂' | '⚕' | '⚖' | '✈' | '❤')
}

/// Returns `true` for characters with `Emoji_Presentation`.
fn is_picture(c: char) -> bool {
    matches!(c,
        '\u{1f004}' | '\u{1f0cf}' | '\u{1f18e}' | '\u{1f191}'..='\u{1f19a}' | '\u{1f1e6}'..='\u{1f1ff}'
        | '\u{1f300}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6ff}' | '\u{1f7e0}'..='\u{1f7eb}' | '\u{1f90c}'..='\u{1faff}'
        | '\u{231a}' | '\u{231b}' | '\u{23e9}'..='\u{23ec}' | '\u{23f0}' | '\u{23f3}' | '\u{25fd}' | '\u{25fe}'
        | '\u{2614}' | '\u{2615}' | '\u{2648}'..='\u{2653}' | '\u{267f}' | '\u{2693}' | '\u{26a1}' | '\u{26aa}' | '\u{26ab}'
        | '\u{26bd}' | '\u{26be}' | '\u{26c4}' | '\u{26c5}' | '\u{26ce}' | '\u{26d4}' | '\u{26ea}' | '\u{26f2}' | '\u{26f3}'
        | '\u{26f5}' | '\u{26fa}' | '\u{26fd}' | '\u{2705}' | '\u{270a}' | '\u{270b}' | '\u{2728}' | '\u{274c}' | '\u{274e}'
        | '\u{2753}'..='\u{2755}' | '\u{2757}' | '\u{2795}'..='\u{2797}' | '\u{27b0}' | '\u{27bf}' | '\u{2b1b}' | '\u{2b1c}'
        | '\u{2b50}' | '\u{2b55}')
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn an_emoji_is_told_from_a_text() {
        assert_eq!(split("💡 考え"), Some(("💡", "考え")));
        assert_eq!(split("⚠️ care"), Some(("⚠️", "care")));
        assert_eq!(split("👩‍💻"), Some(("👩‍💻", "")));
        assert_eq!(split("🇯🇵 日本"), Some(("🇯🇵", "日本")));
        for text in ["", "✓ done", "→ there", "text", "日本", "💡考え", "1 2", "* a"] {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
