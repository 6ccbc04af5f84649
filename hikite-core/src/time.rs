//! Formatting and parsing of timestamps.

/// Last millisecond that RFC 3339 can express.
const LAST_MS: u64 = 253_402_300_799_999;

/// Formats milliseconds since 1970 as RFC 3339 in UTC: `2026-11-15T08:30:00.000Z`. Times after the year 9999 are
/// clamped to its end.
pub fn rfc3339(ms: u64) -> String {
    let ms = ms.min(LAST_MS);
    let (seconds, rest) = (ms / 1000, ms % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    for (number, end, digits) in
        [(year, 4, 4), (month, 7, 2), (day, 10, 2), (hour, 13, 2), (minute, 16, 2), (second, 19, 2), (rest, 23, 3)]
    {
        write_digits(&mut text[end - digits..end], number);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Writes the last digits of a number, as many as fit.
fn write_digits(text: &mut [u8], mut number: u64) {
    for digit in text.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
}

/// Parses RFC 3339, or a plain number of milliseconds since 1970. Accepts offsets such as `+09:00` and fractional
/// seconds; times before 1970 become 1970.
pub fn read(text: &str) -> Option<u64> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let bytes = text.as_bytes();
    let number = |from: usize, length: usize| -> Option<u64> {
        let digits = text.get(from..from + length)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let signs = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    let joint = bytes.get(10).is_some_and(|joint| b"Tt ".contains(joint));
    if !joint || signs.iter().any(|(at, sign)| bytes.get(*at) != Some(sign)) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    // Days are counted from 1970, and the calendar repeats every 400 years.
    let like = if year < 1970 { year + 2000 } else { year };
    let days = day_number(like, month, day)?;
    if date(days) != (like, month, day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (rest, offset) = fraction(text.get(19..)?)?;
    let minutes = i64::try_from(days * 1440 + hour * 60 + minute).ok()?.checked_sub(offset)?;
    let minutes = u64::try_from(minutes).ok().filter(|_| like == year);
    Some(minutes.map_or(0, |minutes| minutes * 60_000 + second * 1000 + rest))
}

/// Parses fraction and offset after the seconds, as milliseconds and minutes.
fn fraction(text: &str) -> Option<(u64, i64)> {
    let digits = text.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    let (part, offset) = if digits == 0 { ("", text) } else { (&text[1..=digits], &text[1 + digits..]) };
    let ms = format!("{part:0<3}").get(..3)?.parse().ok()?;
    if matches!(offset, "Z" | "z") {
        return Some((ms, 0));
    }
    let (sign, rest) = offset.split_at_checked(1)?;
    let (hours, minutes) = rest.split_once(':')?;
    let whole = |text: &str| -> Option<i64> {
        (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
    };
    let total = whole(hours)? * 60 + whole(minutes)?;
    match sign {
        "+" => Some((ms, total)),
        "-" => Some((ms, -total)),
        _ => None,
    }
}

/// Returns the number of days since 1970; an invalid date gives some other day.
fn day_number(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let from_march = if month > 2 { month.checked_sub(3)? } else { month + 9 };
    let of_year = (153 * from_march + 2) / 5 + day.checked_sub(1)?;
    (year * 365 + year / 4 + year / 400 + of_year).checked_sub(719_468 + year / 100)
}

/// Returns the Gregorian date of a day since 1970, computed in 400-year eras that begin in March.
fn date(days: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097;
    let days = days + 719_468;
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year + era * 400 + u64::from(month <= 2), month, of_year - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(rfc3339(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
        assert_eq!(rfc3339(LAST_MS), "9999-12-31T23:59:59.999Z");
        assert_eq!(rfc3339(u64::MAX), rfc3339(LAST_MS), "no other year is told");
    }

    #[test]
    fn what_is_written_can_be_read_again() {
        for ms in [0, 1, 951_782_400_000, 1_709_251_199_999, 4_107_542_400_000, 253_402_300_799_999] {
            assert_eq!(read(&rfc3339(ms)), Some(ms));
            assert_eq!(read(&ms.to_string()), Some(ms));
        }
        for day in 0..60_000 {
            assert_eq!(read(&rfc3339(day * 86_400_000)), Some(day * 86_400_000));
        }
        for (text, ms) in [
            ("1970-01-01T09:00:00+09:00", 0),
            ("1970-01-01T00:00:00-05:00", 18_000_000),
            ("1970-01-01t00:00:01.25z", 1250),
            ("1970-01-01 00:00:00.1239999Z", 123),
            ("1970-01-01T00:00:00+00:01", 0),
            ("1969-12-31T23:59:59Z", 0),
            ("0862-08-09T20:02:50+20:22", 0),
            ("0000-02-29T00:00:00Z", 0),
        ] {
            assert_eq!(read(text), Some(ms), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_not_read() {
        for text in [
            "",
            "-1",
            "now",
            "2026-11-15",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00+9:00",
            "2026-01-01T00:00:00é",
            "1969-02-29T00:00:00Z",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00.Z",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
