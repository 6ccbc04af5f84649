//! Formats numbers: thousands with commas, and shares of a whole.

/// Formats `1234567` as `1,234,567`.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the percentage of `whole`; `None` if `whole` is zero.
pub(crate) fn percent(part: usize, whole: usize) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "tokens are counted in millions at most")]
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

/// Formats a percentage: `0.4 %`, `37 %`, `–`. A non-zero part is never shown as zero.
pub(crate) fn share(part: usize, whole: usize) -> String {
    match percent(part, whole) {
        None => "–".to_owned(),
        Some(percent) if part > 0 && percent < 0.05 => "<0.1 %".to_owned(),
        Some(percent) if percent < 9.95 => format!("{percent:.1} %"),
        Some(percent) => format!("{percent:.0} %"),
    }
}

/// Formats `1 module`, `2 modules`.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    format!("{} {thing}{}", thousands(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_commas() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (12_345, "12,345"),
            (123_456, "123,456"),
            (1_000_001, "1,000,001"),
        ] {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn shares_are_as_exact_as_they_need_to_be() {
        for (part, whole, text) in [
            (1, 0, "–"),
            (0, 10, "0.0 %"),
            (1, 100_000, "<0.1 %"),
            (945, 227_592, "0.4 %"),
            (994, 10_000, "9.9 %"),
            (996, 10_000, "10 %"),
            (1, 3, "33 %"),
            (10, 10, "100 %"),
            (15, 10, "150 %"),
        ] {
            assert_eq!(share(part, whole), text, "{part} of {whole}");
        }
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!((counted(1, "tool"), counted(1590, "tool")), ("1 tool".into(), "1,590 tools".into()));
    }
}
