//! Generators for property tests: trees that Markdown can express, full of possible markup.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::markdown::{Callout, DocumentBlock, Inline, InlineKind, InlineStyle, Item, Marks, normalize};

/// Generates words of many scripts, and characters that are markup somewhere.
pub(super) fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-z]{1,6}",
        4 => prop::sample::select(vec!["日本語", "東京", "「注意」", "（例）", "です。", "カタカナ", "한국어", "ü", "🎌"]).prop_map(str::to_owned),
        3 => Just(" ".to_owned()),
        3 => prop::sample::select(vec![
            "*", "**", "_", "__", "~", "~~", "`", "``", "#", "# ", "> ", ">", "- ", "-", "---", "+ ", "1. ", "2) ", "[", "]", "](", "](x)",
            "![", "[ ] ", "[x] ", "[!NOTE]", "(", ")", "<", "<b>", "</b>", "<br>", "<!--", "<x>", "<div>", "&", "&amp;", "&lt", "&#35;", "\\", "\\*", "|", "|-|",
            "$", "$$", "$5", "=", "===", ":", "[a]: b", "http://a.b/c_d", "snake_case", "2 * 3", "a*b*c", "!", "\u{3000}", "\t", "@x", "%", "^", "\"", "'",
        ]).prop_map(str::to_owned),
    ];
    vec(part, 1..8).prop_map(|parts| parts.concat())
}

fn url() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "https://example.com/",
        "https://example.com/a_b_c?d=1&e=*2*#f",
        "https://example.com/日本語",
        "https://example.com/a(b)c",
        "https://example.com/(",
        "https://example.com/a b",
        "https://example.com/<x>|y\\z",
        "https://example.com/?a=1&copy;=2",
        "mailto:a@example.com",
        "user:12345",
        "page:ABC/題名",
        "#anchor",
        "../a.md",
    ])
    .prop_map(str::to_owned)
}

/// Generates image URLs.
fn picture() -> impl Strategy<Value = String> {
    url().prop_filter("a picture", |url| !url.starts_with("user:"))
}

fn style() -> impl Strategy<Value = InlineStyle> {
    let mark = prop::sample::select(Marks::ALL.to_vec());
    (vec(mark, 0..3), prop::option::weighted(0.2, url())).prop_map(|(marks, link)| {
        let style = marks.into_iter().fold(InlineStyle::default(), |style, mark| style.marked(mark));
        style.to(&link.unwrap_or_default())
    })
}

fn inline() -> impl Strategy<Value = Inline> {
    let kind = prop_oneof![
        12 => text().prop_map(InlineKind::Text),
        1 => Just(InlineKind::Break),
        1 => (text(), picture()).prop_map(|(alt, url)| InlineKind::Image { alt, url }),
        1 => prop::sample::select(vec!["x", "E = mc^2", "\\frac{a}{b}", "a_1 + b_2", "日本"]).prop_map(|text| InlineKind::Math(text.to_owned())),
    ];
    let plain = (kind, prop_oneof![2 => Just(InlineStyle::default()), 1 => style()]);
    plain.prop_map(|(kind, style)| Inline { kind, style })
}

/// Generates a line in canonical form.
pub(super) fn line() -> impl Strategy<Value = Vec<Inline>> {
    vec(inline(), 1..6).prop_map(normalize).prop_filter("a line", |line| {
        let is_blank = |inline: &Inline| matches!(&inline.kind, InlineKind::Text(text) if text.trim().is_empty());
        !line.iter().all(is_blank)
    })
}

/// Generates a line that markup can express: single blanks, single breaks, no equations.
fn summary() -> impl Strategy<Value = Vec<Inline>> {
    line().prop_map(|line| {
        let simple = line.into_iter().map(|inline| match &inline.kind {
            InlineKind::Text(text) | InlineKind::Math(text) => {
                let mut text = text.clone();
                while text.contains("  ") {
                    text = text.replace("  ", " ");
                }
                Inline::text(text, &inline.style)
            }
            _ => inline,
        });
        let mut simple: Vec<Inline> = simple.collect();
        simple.dedup_by(|next, last| next.kind == InlineKind::Break && last.kind == InlineKind::Break);
        normalize(simple)
    })
}

fn paragraph() -> impl Strategy<Value = DocumentBlock> {
    line().prop_map(|line| match line.as_slice() {
        [Inline { kind: InlineKind::Math(_), .. }] => DocumentBlock::words("x"),
        _ => DocumentBlock::Paragraph(line),
    })
}

fn cell() -> impl Strategy<Value = Vec<Inline>> {
    prop_oneof![1 => Just(Vec::new()), 4 => line()]
}

fn table() -> impl Strategy<Value = DocumentBlock> {
    (1_usize..4, 0_usize..3).prop_flat_map(|(width, height)| {
        (vec(cell(), width), vec(vec(cell(), width), height))
            .prop_map(|(head, rows)| DocumentBlock::Table { head, rows })
    })
}

fn leaf() -> impl Strategy<Value = DocumentBlock> {
    let language = prop::sample::select(vec!["", "rust", "c++", "plain text"]);
    let code = vec(text(), 0..4).prop_map(|lines| lines.join("\n"));
    prop_oneof![
        8 => paragraph(),
        2 => (1_u8..=6, line()).prop_map(|(level, text)| DocumentBlock::Heading { level, text }),
        2 => (language, code).prop_map(|(language, text)| DocumentBlock::Code { language: language.to_owned(), text }),
        1 => Just(DocumentBlock::Rule),
        1 => prop::sample::select(vec!["x^2", "a\nb", "\\sum_{i=0}^n $i$"]).prop_map(|text| DocumentBlock::Equation(text.to_owned())),
        1 => table(),
    ]
}

pub(super) fn tree() -> impl Strategy<Value = Vec<DocumentBlock>> {
    let block = leaf().prop_recursive(4, 24, 4, |inner| {
        let kind = prop::sample::select(vec![
            Callout::Note,
            Callout::Tip,
            Callout::Important,
            Callout::Warning,
            Callout::Caution,
        ]);
        let blocks = || vec(inner.clone(), 0..4);
        let checked = prop_oneof![2 => Just(None), 1 => any::<bool>().prop_map(Some)];
        let item = (checked, blocks()).prop_map(|(checked, blocks)| Item { checked, blocks });
        let start = prop::sample::select(vec![None, Some(1), Some(3)]);
        prop_oneof![
            vec(inner.clone(), 1..4).prop_map(DocumentBlock::Quote),
            (kind, blocks()).prop_map(|(kind, blocks)| DocumentBlock::Callout { kind, blocks }),
            (summary(), blocks()).prop_map(|(summary, blocks)| DocumentBlock::Details { summary, blocks }),
            (start, vec(item, 1..4)).prop_map(list),
        ]
    });
    vec(block, 1..5)
}

/// Builds a list whose last item is not empty.
fn list((start, mut items): (Option<u64>, Vec<Item>)) -> DocumentBlock {
    while items.pop_if(|last| last.checked.is_none() && last.blocks.is_empty()).is_some() {}
    if items.is_empty() {
        items.push(Item { checked: None, blocks: vec![DocumentBlock::words("x")] });
    }
    DocumentBlock::List { start, items }
}
