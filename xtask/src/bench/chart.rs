//! SVG chart of the two main figures: bars on a logarithmic scale, readable on light and dark backgrounds, without
//! external fonts or scripts. A text alternative repeats its content.

use std::fmt::Write as _;

use super::side::GatewayRole;

const WIDTH: f64 = 760.0;
const MARGIN: f64 = 28.0;
/// Left edge of the bars, behind the names, and the longest bar.
const LEFT: f64 = 200.0;
const BAR: f64 = 440.0;
const STEP: f64 = 30.0;
const GROUP: f64 = 44.0;
const HEAD: f64 = 62.0;
const FOOT: f64 = 34.0;

const STYLE: &str = r#"
    .card { fill: #ffffff; stroke: #d0d7de; }
    .text { fill: #1f2328; }
    .quiet { fill: #59636e; }
    .other { fill: #8c959f; }
    .limit { fill: #0969da; }
    .own { fill: #1a7f37; }
    text { font-family: system-ui, -apple-system, "Segoe UI", "Noto Sans", "Helvetica Neue", Arial, sans-serif; }
    .head { font-size: 17px; font-weight: 600; }
    .label { font-size: 14px; }
    .small { font-size: 12px; }
    @media (prefers-color-scheme: dark) {
      .card { fill: #0d1117; stroke: #3d444d; }
      .text { fill: #f0f6fc; }
      .quiet { fill: #9198a1; }
      .other { fill: #6e7681; }
      .limit { fill: #4493f8; }
      .own { fill: #3fb950; }
    }
"#;

/// A title, and the name, the role and the value of each bar.
pub(super) type ChartGroup = (&'static str, Vec<(&'static str, GatewayRole, f64)>);

pub(super) fn chart(groups: &[ChartGroup]) -> String {
    let bars: usize = groups.iter().map(|(_, bars)| bars.len()).sum();
    let height = HEAD + FOOT + times(groups.len(), GROUP) + times(bars, STEP);
    let told: Vec<String> = groups.iter().map(told).collect();
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" aria-labelledby=\"title desc\">\n  <title id=\"title\">hikite beside its peers</title>\n  \
         <desc id=\"desc\">{}</desc>\n  <style>{STYLE}  </style>\n  \
         <rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"10\"/>\n  \
         <text class=\"head text\" x=\"{MARGIN}\" y=\"38\">hikite beside its peers</text>\n  \
         <text class=\"small quiet\" x=\"{MARGIN}\" y=\"58\">tools/call with answers of 100 B, upstream over HTTP, on one machine in one run</text>\n",
        told.join(" "),
        WIDTH - 1.0,
        height - 1.0,
    );
    let mut top = HEAD;
    for (title, bars) in groups {
        top += GROUP;
        let _ = writeln!(picture, "  <text class=\"label quiet\" x=\"{MARGIN}\" y=\"{}\">{title}</text>", top - 14.0);
        for (name, role, value) in bars {
            let (words, above, length) = (top + 15.0, top + 2.0, length(*value, bars));
            let class = match role {
                GatewayRole::Hikite | GatewayRole::HikiteOpen => "own",
                GatewayRole::Limit | GatewayRole::Floor => "limit",
                GatewayRole::Peer | GatewayRole::Reference => "other",
            };
            let _ = write!(
                picture,
                "  <text class=\"label text\" x=\"{MARGIN}\" y=\"{words}\">{name}</text>\n  \
                 <rect class=\"{class}\" x=\"{LEFT}\" y=\"{above}\" width=\"{length:.1}\" height=\"17\" rx=\"3\"/>\n  \
                 <text class=\"label text\" x=\"{:.1}\" y=\"{words}\">{}</text>\n",
                LEFT + length + 8.0,
                figure(*value),
            );
            top += STEP;
        }
    }
    let _ = write!(
        picture,
        "  <text class=\"small quiet\" x=\"{MARGIN}\" y=\"{}\">The scale is logarithmic: a bar that is a little longer means much. Made by `cargo xtask bench --write`.</text>\n</svg>\n",
        height - 14.0
    );
    picture
}

fn times(count: usize, step: f64) -> f64 {
    u32::try_from(count).map_or(0.0, f64::from) * step
}

/// Returns the length of a bar on a scale from a tenth below the smallest power of ten to the largest value.
fn length(value: f64, bars: &[(&'static str, GatewayRole, f64)]) -> f64 {
    let values = bars.iter().map(|(_, _, value)| *value).filter(|value| *value > 0.0);
    let largest = values.clone().fold(f64::MIN_POSITIVE, f64::max).log10();
    let smallest = values.fold(f64::MAX, f64::min).log10().floor() - 0.1;
    if value <= 0.0 { 0.0 } else { (value.log10() - smallest) / (largest - smallest) * BAR }
}

fn figure(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn told((title, bars): &ChartGroup) -> String {
    let bars: Vec<String> = bars.iter().map(|(name, _, value)| format!("{name} {}", figure(*value))).collect();
    format!("{title}: {}.", bars.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_value_has_a_longer_bar_and_all_fit() {
        let bars = vec![
            ("a", GatewayRole::Peer, 12.0),
            ("b", GatewayRole::Hikite, 12_345.6),
            ("c", GatewayRole::Limit, 60_000.0),
        ];
        let lengths: Vec<f64> = bars.iter().map(|(_, _, value)| length(*value, &bars)).collect();
        assert!(lengths[0] > 0.0 && lengths.is_sorted() && lengths[2] <= BAR + 0.01);
        let picture = chart(&[("Requests", bars)]);
        assert!(picture.contains("12,346") && picture.ends_with("</svg>\n") && !picture.contains("script"));
    }
}
