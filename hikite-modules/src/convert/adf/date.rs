//! Date of a timestamp.

/// Formats milliseconds since 1970 as a UTC date like `2026-07-04`. Returns any other text unchanged.
pub(super) fn day(timestamp: &str) -> String {
    let Ok(milliseconds) = timestamp.trim().parse::<i64>() else { return timestamp.to_owned() };
    let days = milliseconds.div_euclid(86_400_000);
    // Years that begin in March have the leap day at the end, and every 400 years the calendar repeats.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year_of_era + era * 400 + next_year)
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (timestamp, expected) in [
            ("0", "1970-01-01"),
            ("951782400000", "2000-02-29"),
            ("951868800000", "2000-03-01"),
            ("1783123200000", "2026-07-04"),
            ("-1", "1969-12-31"),
            ("soon", "soon"),
        ] {
            assert_eq!(day(timestamp), expected);
        }
    }
}
