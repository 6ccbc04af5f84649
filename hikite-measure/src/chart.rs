//! Draws the measurements as an SVG chart with bars to scale, for light and dark themes, without external fonts or
//! scripts. The description repeats all values for screen readers.

use std::fmt::Write;

use super::MeasureReport;
use super::number::{counted, percent, thousands};

const WIDTH: usize = 760;
const MARGIN: usize = 28;
/// Length of the longest bar.
const BAR: usize = WIDTH - 2 * MARGIN;
/// Distance between bars, and between groups.
const STEP: usize = 62;
const GROUP: usize = 40;
/// Space above the first group and below the last.
const HEAD: usize = 62;
const FOOT: usize = 30;

const STYLE: &str = r#"
    .card { fill: #ffffff; stroke: #d0d7de; }
    .text { fill: #1f2328; }
    .quiet { fill: #59636e; }
    .track { fill: #eaeef2; }
    .before { fill: #bc4c00; }
    .after { fill: #1a7f37; }
    text { font-family: system-ui, -apple-system, "Segoe UI", "Noto Sans", "Helvetica Neue", Arial, sans-serif; }
    .head { font-size: 17px; font-weight: 600; }
    .label { font-size: 14px; }
    .figure { font-size: 18px; font-weight: 600; }
    .small { font-size: 12px; }
    @media (prefers-color-scheme: dark) {
      .card { fill: #0d1117; stroke: #3d444d; }
      .text { fill: #f0f6fc; }
      .quiet { fill: #9198a1; }
      .track { fill: #21262d; }
      .before { fill: #f0883e; }
      .after { fill: #3fb950; }
    }
"#;

/// Bars that are compared with each other; the first is the baseline.
#[derive(Clone, Debug)]
struct BarGroup {
    title: String,
    bars: Vec<(String, usize)>,
}

/// Returns an SVG chart of the report.
pub fn chart(report: &MeasureReport) -> String {
    let groups = groups(report);
    let bars: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height = HEAD + groups.len() * GROUP + bars * STEP + FOOT;
    let told: Vec<String> = groups.iter().map(BarGroup::told).collect();
    let told = escaped(&told.join(" "));
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" aria-labelledby=\"title desc\">\n  <title id=\"title\">What tools cost a model</title>\n  \
         <desc id=\"desc\">{told}</desc>\n  <style>{STYLE}  </style>\n  \
         <rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"10\"/>\n  \
         <text class=\"head text\" x=\"{MARGIN}\" y=\"38\">What tools cost a model</text>\n  \
         <text class=\"small quiet\" x=\"{MARGIN}\" y=\"58\">{}, in tokens of the o200k vocabulary</text>\n",
        WIDTH - 1,
        height - 1,
        escaped(&subject(report)),
    );
    let mut top = HEAD;
    for group in &groups {
        top += GROUP;
        let _ = writeln!(
            picture,
            "  <text class=\"label quiet\" x=\"{MARGIN}\" y=\"{}\">{}</text>",
            top - 12,
            escaped(&group.title)
        );
        for (at, (label, tokens)) in group.bars.iter().enumerate() {
            bar(&mut picture, top, label, *tokens, (at == 0, group.whole()));
            top += STEP;
        }
    }
    let _ = write!(
        picture,
        "  <text class=\"small quiet\" x=\"{MARGIN}\" y=\"{}\">Bars are drawn to scale. Made by `hikite measure --chart`.</text>\n</svg>\n",
        height - 14
    );
    picture
}

fn subject(report: &MeasureReport) -> String {
    format!("{} of {}", counted(report.tools(), "tool"), counted(report.modules.len(), "module"))
}

fn groups(report: &MeasureReport) -> Vec<BarGroup> {
    let even = &report.even;
    let tools = report.menus.iter().find(|menu| menu.is_default()).map_or(0, |menu| menu.tools);
    let modules = counted(report.modules.len(), "module");
    let through = format!("through hikite: {} that open {modules}", counted(tools, "tool"));
    let mut groups = vec![BarGroup {
        title: "The tools".into(),
        bars: vec![
            ("all in one list".into(), even.flat),
            (through, even.menu),
            ("… and a module of median size opened".into(), even.menu + even.median),
            ("… and every module opened".into(), even.all),
        ],
    }];
    if report.answers.is_empty() {
        return groups;
    }
    let answers = &report.answers;
    let mut bars = vec![
        ("as JSON".to_owned(), answers.iter().map(|answer| answer.plain).sum()),
        ("compact".to_owned(), answers.iter().map(|answer| answer.compact).sum()),
    ];
    let shaped = answers.iter().filter(|answer| answer.shaped.is_some()).count();
    if shaped > 0 {
        let least = answers.iter().map(|answer| answer.shaped.unwrap_or(answer.compact)).sum();
        bars.push((format!("compact, {} of them with a shape", thousands(shaped)), least));
    }
    groups.push(BarGroup { title: counted(answers.len(), "answer"), bars });
    groups
}

impl BarGroup {
    fn whole(&self) -> usize {
        self.bars.iter().map(|(_, tokens)| *tokens).max().unwrap_or(0)
    }

    fn told(&self) -> String {
        let bars = self.bars.iter().map(|(label, tokens)| format!("{label}: {} tokens", thousands(*tokens)));
        format!("{}: {}.", self.title, bars.collect::<Vec<_>>().join("; "))
    }
}

/// Draws a label and a bar; the baseline has another colour.
fn bar(picture: &mut String, top: usize, label: &str, tokens: usize, (is_before, whole): (bool, usize)) {
    let (right, below, length) = (WIDTH - MARGIN, top + 25, length(tokens, whole));
    let class = if is_before { "before" } else { "after" };
    let _ = write!(
        picture,
        "  <text class=\"label text\" x=\"{MARGIN}\" y=\"{words}\">{label}</text>\n  \
         <text class=\"figure text\" x=\"{right}\" y=\"{words}\" text-anchor=\"end\">{figure}</text>\n  \
         <rect class=\"track\" x=\"{MARGIN}\" y=\"{below}\" width=\"{BAR}\" height=\"18\" rx=\"4\"/>\n  \
         <rect class=\"{class}\" x=\"{MARGIN}\" y=\"{below}\" width=\"{length:.1}\" height=\"18\" rx=\"{corner}\"/>\n",
        words = top + 16,
        label = escaped(label),
        figure = thousands(tokens),
        corner = if length < 8.0 { 0 } else { 4 },
    );
}

/// Returns the length to scale; a non-zero value is always visible.
fn length(tokens: usize, whole: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "it is a few hundred")]
    let bar = BAR as f64;
    let length = percent(tokens, whole).unwrap_or(0.0) / 100.0 * bar;
    if tokens > 0 { length.clamp(1.0, bar) } else { 0.0 }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(tokens: usize, whole: usize, expected: f64) {
        assert!((length(tokens, whole) - expected).abs() < 0.05, "{}", length(tokens, whole));
    }

    #[test]
    fn bars_are_to_scale_and_never_vanish() {
        is(0, 100, 0.0);
        is(0, 0, 0.0);
        is(100, 100, 704.0);
        is(25, 100, 176.0);
        is(1, 1_000_000, 1.0);
    }

    #[test]
    fn words_of_others_cannot_leave_their_place() {
        assert_eq!(escaped("<a b=\"c\">&"), "&lt;a b=&quot;c&quot;&gt;&amp;");
    }
}
