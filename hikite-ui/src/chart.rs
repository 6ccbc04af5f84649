//! Bar charts as SVG, without scripts and readable by screen readers.

use std::fmt::Write;

use hikite_core::html::escape;

/// A bar: its label, its amount, and the amount as text.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) amount: u64,
    pub(crate) amount_text: String,
}

const WIDTH: usize = 720;
const HEIGHT: usize = 140;
const GROUND: usize = 118;

/// Renders a bar chart. Labels are escaped; colours come from the stylesheet.
pub(crate) fn bars(title: &str, bars: &[Bar]) -> String {
    let most = bars.iter().map(|bar| bar.amount).max().unwrap_or(0).max(1);
    let step = WIDTH / bars.len().max(1);
    let mut out =
        format!("<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">", escape(title));
    for (index, bar) in bars.iter().enumerate() {
        let full = u64::try_from(GROUND - 14).unwrap_or(0);
        // Non-zero amounts are always visible.
        let tall = (bar.amount.saturating_mul(full) / most).max(u64::from(bar.amount > 0) * 2);
        let (x, y) = (index * step, u64::try_from(GROUND).unwrap_or(0) - tall);
        let _ = write!(
            out,
            "<g><title>{}: {}</title><rect class=\"bar\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{tall}\" rx=\"2\"/></g>",
            escape(&bar.label),
            escape(&bar.amount_text),
            x + step / 8,
            (step * 3 / 4).max(1),
        );
        if index % (bars.len() / 6).max(1) == 0 {
            let _ = write!(
                out,
                "<text class=\"axis\" x=\"{}\" y=\"{}\">{}</text>",
                x + step / 8,
                HEIGHT - 6,
                escape(&bar.label)
            );
        }
    }
    let _ = write!(out, "<line class=\"ground\" x1=\"0\" y1=\"{GROUND}\" x2=\"{WIDTH}\" y2=\"{GROUND}\"/></svg>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, amount: u64) -> Bar {
        Bar { label: label.into(), amount, amount_text: amount.to_string() }
    }

    #[test]
    fn bars_are_to_scale_and_little_is_not_nothing() {
        let drawn = bars("x", &[bar("a", 0), bar("b", 1), bar("c", 1000)]);
        let tall: Vec<&str> =
            drawn.split("height=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default()).collect();
        assert_eq!(tall, ["0", "2", "104"]);
    }

    #[test]
    fn no_label_becomes_a_mark() {
        let drawn = bars("\"><script>", &[bar("</title><script>alert(1)</script>", 1)]);
        assert!(!drawn.contains("<script"), "{drawn}");
    }
}
