//! One check: its subject, the bound, and the measured value.

use std::fmt::{self, Write as _};

use serde_json::{Value, json};

pub(super) struct FaultCheck {
    pub(super) what: String,
    pub(super) bound: String,
    pub(super) seen: String,
    pub(super) ok: bool,
}

impl FaultCheck {
    pub(super) fn that(what: impl Into<String>, bound: impl Into<String>, seen: impl Into<String>, ok: bool) -> Self {
        Self { what: what.into(), bound: bound.into(), seen: seen.into(), ok }
    }

    pub(super) fn at_most(what: impl Into<String>, seen: f64, most: f64, unit: &str) -> Self {
        Self::that(what, format!("≤ {most} {unit}"), format!("{seen:.1} {unit}"), seen <= most)
    }

    pub(super) fn at_least(what: impl Into<String>, seen: f64, least: f64, unit: &str) -> Self {
        Self::that(what, format!("≥ {least} {unit}"), format!("{seen:.1} {unit}"), seen >= least)
    }

    /// Checks that something never happened.
    pub(super) fn none(what: impl Into<String>, seen: usize, of: usize) -> Self {
        Self::that(what, "0", format!("{seen} of {of}"), seen == 0 && of > 0)
    }
}

impl FaultCheck {
    pub(super) fn json(&self, row: &str) -> Value {
        json!({ "row": row, "what": self.what, "bound": self.bound, "seen": self.seen, "ok": self.ok })
    }
}

/// Formats all checks as a Markdown table.
pub(super) fn table(rows: &[(&str, FaultCheck)]) -> String {
    let mut text = "| row | what | bound | seen | ok |\n|---|---|---|---|---|\n".to_owned();
    for (row, FaultCheck { what, bound, seen, ok }) in rows {
        let _ =
            writeln!(text, "| {row} | {what} | {bound} | {} | {} |", seen.trim(), if *ok { "yes" } else { "**no**" });
    }
    text
}

impl fmt::Display for FaultCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.ok { "ok" } else { "NO" };
        write!(f, "{mark}  {}: {} ({})", self.what, self.seen, self.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_can_be_missed_and_nothing_tried_is_nothing_shown() {
        assert!(FaultCheck::at_most("a", 2.0, 2.0, "ms").ok && !FaultCheck::at_most("a", 2.1, 2.0, "ms").ok);
        assert!(FaultCheck::at_least("a", 2.0, 2.0, "%").ok && !FaultCheck::at_least("a", 1.9, 2.0, "%").ok);
        assert!(FaultCheck::none("a", 0, 1).ok && !FaultCheck::none("a", 1, 9).ok && !FaultCheck::none("a", 0, 0).ok);
        assert_eq!(FaultCheck::at_most("wait", 2.06, 2.0, "ms").to_string(), "NO  wait: 2.1 ms (≤ 2 ms)");
    }
}
