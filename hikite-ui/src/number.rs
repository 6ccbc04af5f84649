//! Formatting of numbers, sizes and times.

use std::borrow::Borrow;

/// Formats as `1,234,567`.
pub(crate) fn grouped(number: impl Borrow<u64>) -> String {
    let digits = number.borrow().to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats as `950`, `12.3 k`, `4.6 M`.
pub(crate) fn short(number: impl Borrow<u64>) -> String {
    let number = *number.borrow();
    let scaled = |unit: u64, name: &str| {
        let tenths = number.saturating_mul(10) / unit;
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => scaled(1_000, "k"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "M"),
        _ => scaled(1_000_000_000, "G"),
    }
}

/// Formats as `512 B`, `1.5 KiB`, `3.0 MiB`.
pub(crate) fn bytes(number: usize) -> String {
    let number = u64::try_from(number).unwrap_or(u64::MAX);
    let scaled = |shift: u32, name: &str| {
        let tenths = number.saturating_mul(10) >> shift;
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    };
    match number {
        0..1024 => format!("{number} B"),
        1024..1_048_576 => scaled(10, "KiB"),
        _ => scaled(20, "MiB"),
    }
}

/// Formats an API time such as `2026-11-16T09:00:00.123Z`, without fraction and zone.
pub(crate) fn time(rfc3339: &str) -> String {
    let plain = rfc3339.split('.').next().unwrap_or(rfc3339);
    plain.trim_end_matches('Z').replacen('T', " ", 1)
}

/// Formats milliseconds since 1970.
pub(crate) fn moment(milliseconds: u64) -> String {
    time(&hikite_core::time::rfc3339(milliseconds))
}

/// Truncates a text with an ellipsis.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        assert_eq!((grouped(0), grouped(1234), grouped(1_234_567)), ("0".into(), "1,234".into(), "1,234,567".into()));
        assert_eq!((short(950), short(12_345), short(4_600_000)), ("950".into(), "12.3 k".into(), "4.6 M".into()));
        assert_eq!((bytes(512), bytes(1536), bytes(3 << 20)), ("512 B".into(), "1.5 KiB".into(), "3.0 MiB".into()));
    }

    #[test]
    fn times_are_told_to_the_second() {
        assert_eq!(time("2026-11-16T09:00:00.123Z"), "2026-11-16 09:00:00");
        assert_eq!(moment(951_782_400_000), "2000-02-29 00:00:00");
    }
}
