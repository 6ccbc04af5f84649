//! Writes a line as Markdown. Markers are tried first; if parsing does not return the same line, HTML tags are used
//! (`**「注意」**です` is not bold without a blank), and finally everything that could be markup is escaped.

use super::super::escape::{self, PairedMarkers, TextContext};
use super::super::read::read;
use super::super::{DocumentBlock, Inline, InlineKind, InlineStyle, Marks, normalize};
use super::destination;

/// Context of a line, and its restrictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineContext {
    Paragraph,
    /// Single line.
    Heading,
    /// Single line that ends at a bar.
    Cell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineNotation {
    Markers,
    Tags,
    Escaped,
}

/// Returns Markdown that parses as this line.
pub(super) fn line(inlines: &[Inline], place: LineContext) -> String {
    let line = normalize(inlines.to_vec());
    for notation in [LineNotation::Markers, LineNotation::Tags] {
        let text = LineWriter { place, notation, pairs: PairedMarkers::of(&line) }.line(&line);
        if reads_as(&text, &line, place) {
            return text;
        }
    }
    LineWriter { place, notation: LineNotation::Escaped, pairs: PairedMarkers::default() }.line(&line)
}

fn reads_as(text: &str, line: &[Inline], place: LineContext) -> bool {
    let blocks = match place {
        LineContext::Paragraph => read(text),
        LineContext::Heading => read(&format!("# {text}")),
        LineContext::Cell => read(&format!("|{text}|\n|-|")),
    };
    match (place, blocks.as_slice()) {
        (_, []) => line.is_empty(),
        (LineContext::Paragraph, [DocumentBlock::Paragraph(found)])
        | (LineContext::Heading, [DocumentBlock::Heading { text: found, .. }]) => found == line,
        (LineContext::Paragraph, [DocumentBlock::Equation(found)]) => {
            matches!(line, [Inline { kind: InlineKind::Math(text), .. }] if text == found)
        }
        (LineContext::Cell, [DocumentBlock::Table { head, rows }]) => {
            rows.is_empty() && head.len() == 1 && head[0] == line
        }
        _ => false,
    }
}

struct LineWriter {
    place: LineContext,
    notation: LineNotation,
    pairs: PairedMarkers,
}

/// Link or mark that encloses pieces.
#[derive(Clone, Copy)]
enum StyleLayer {
    Link,
    Mark(Marks),
}

/// Layers, outermost first, for pieces enclosed by several.
const LAYERS: [StyleLayer; 7] = [
    StyleLayer::Link,
    StyleLayer::Mark(Marks::STRONG),
    StyleLayer::Mark(Marks::EMPHASIS),
    StyleLayer::Mark(Marks::STRIKE),
    StyleLayer::Mark(Marks::UNDERLINE),
    StyleLayer::Mark(Marks::SUBSCRIPT),
    StyleLayer::Mark(Marks::SUPERSCRIPT),
];

/// Context of the pieces being written.
#[derive(Clone, Copy)]
struct PieceContext<'a> {
    open: &'a InlineStyle,
    before: Option<char>,
    after: Option<char>,
}

impl LineWriter {
    fn line(&self, line: &[Inline]) -> String {
        let mut out = String::new();
        self.pieces(line, PieceContext { open: &InlineStyle::default(), before: None, after: None }, &mut out);
        out
    }

    fn pieces(&self, pieces: &[Inline], surroundings: PieceContext<'_>, out: &mut String) {
        let mut at = 0;
        while at < pieces.len() {
            let (layer, end) = widest(&pieces[at..], surroundings.open);
            let end = at + end;
            let after = pieces.get(end).map_or(surroundings.after, |next| first_char(next, surroundings.open));
            let before = out.chars().next_back().or(surroundings.before);
            match layer {
                None => self.piece(&pieces[at], PieceContext { before, after, ..surroundings }, out),
                Some(layer) => {
                    let open = opened(surroundings.open, layer, &pieces[at]);
                    let mut inner = String::new();
                    let edge = Some('*');
                    self.pieces(&pieces[at..end], PieceContext { open: &open, before: edge, after: edge }, &mut inner);
                    self.enclose(layer, &pieces[at..end], &inner, (before, after), out);
                }
            }
            at = end;
        }
    }

    fn enclose(
        &self,
        layer: StyleLayer,
        pieces: &[Inline],
        inner: &str,
        (before, after): (Option<char>, Option<char>),
        out: &mut String,
    ) {
        let mark = match layer {
            StyleLayer::Link => {
                let url = pieces[0].style.link.as_deref().unwrap_or_default();
                if let [Inline { kind: InlineKind::Text(text), style }] = pieces
                    && self.notation != LineNotation::Escaped
                    && !style.is_code()
                    && text == url
                    && destination::is_plain(url)
                {
                    out.extend(["<", url, ">"]);
                    return;
                }
                out.extend(["[", inner, "]("]);
                destination::write(url, self.place == LineContext::Cell, out);
                out.push(')');
                return;
            }
            StyleLayer::Mark(mark) => mark,
        };
        match marker(mark).filter(|_| self.notation == LineNotation::Markers && may_mark(before, inner, after)) {
            Some(marker) => out.extend([marker, inner, marker]),
            None => {
                let tag = tag(mark);
                out.extend(["<", tag, ">", inner, "</", tag, ">"]);
            }
        }
    }

    fn piece(&self, piece: &Inline, surroundings: PieceContext<'_>, out: &mut String) {
        match &piece.kind {
            InlineKind::Text(text) if piece.style.is_code() => self.code(text, out),
            InlineKind::Text(text) => self.text(text, surroundings, out),
            InlineKind::Break if self.place == LineContext::Paragraph && self.notation != LineNotation::Escaped => {
                out.push_str("\\\n");
            }
            InlineKind::Break => out.push_str("<br>"),
            InlineKind::Image { alt, url } => {
                out.push_str("![");
                let open = surroundings.open.to("image");
                self.text(alt, PieceContext { open: &open, before: Some('['), after: Some(']') }, out);
                out.push_str("](");
                destination::write(url, self.place == LineContext::Cell, out);
                out.push(')');
            }
            InlineKind::Math(text) => match self.notation {
                LineNotation::Escaped if text.contains(['$', '`', '|']) => self.code(text, out),
                LineNotation::Markers => out.extend(["$", text, "$"]),
                _ => out.extend(["$$", text, "$$"]),
            },
        }
    }

    fn text(&self, text: &str, surroundings: PieceContext<'_>, out: &mut String) {
        if self.notation == LineNotation::Escaped {
            return escape::escape_all(text, out);
        }
        let begins_line = match out.chars().next_back() {
            None => surroundings.before.is_none(),
            Some(last) => last == '\n',
        };
        let text_context = TextContext {
            before: surroundings.before,
            after: surroundings.after,
            begins_line,
            in_link: surroundings.open.link.is_some(),
            in_cell: self.place == LineContext::Cell,
            pairs: self.pairs,
        };
        escape::escape_minimal(text, text_context, out);
        // Trailing hashes of a heading would be removed.
        if self.place == LineContext::Heading && surroundings.after.is_none() && text.ends_with('#') {
            out.pop();
            out.push_str("\\#");
        }
    }

    fn code(&self, text: &str, out: &mut String) {
        if self.notation == LineNotation::Escaped {
            out.push_str("<code>");
            escape::escape_all(text, out);
            out.push_str("</code>");
            return;
        }
        let fence = "`".repeat(longest_run(text, '`') + 1);
        let edges = text.starts_with('`') || text.ends_with('`');
        let blanks = text.starts_with(' ') && text.ends_with(' ') && !text.trim_matches(' ').is_empty();
        let pad = if edges || blanks { " " } else { "" };
        out.extend([&fence, pad]);
        if self.place == LineContext::Cell {
            out.push_str(&text.replace('|', "\\|"));
        } else {
            out.push_str(text);
        }
        out.extend([pad, &fence]);
    }
}

/// Returns the length of the longest run of a character.
pub(super) fn longest_run(text: &str, wanted: char) -> usize {
    let runs = text.split(|c| c != wanted).map(str::len);
    runs.max().unwrap_or_default()
}

/// Returns the layer that encloses the most pieces from the first on, and their number.
fn widest(pieces: &[Inline], open: &InlineStyle) -> (Option<StyleLayer>, usize) {
    let mut best = (None, 1);
    for layer in LAYERS {
        let is_in = |piece: &&Inline| match layer {
            StyleLayer::Link => piece.style.link.is_some() && piece.style.link == pieces[0].style.link,
            StyleLayer::Mark(mark) => piece.style.marks.has(mark),
        };
        let is_open = match layer {
            StyleLayer::Link => open.link.is_some(),
            StyleLayer::Mark(mark) => open.marks.has(mark),
        };
        let length = if is_open { 0 } else { pieces.iter().take_while(is_in).count() };
        if length > best.1 || length > 0 && best.0.is_none() {
            best = (Some(layer), length);
        }
    }
    best
}

fn opened(open: &InlineStyle, layer: StyleLayer, piece: &Inline) -> InlineStyle {
    match layer {
        StyleLayer::Link => InlineStyle { marks: open.marks, link: piece.style.link.clone() },
        StyleLayer::Mark(mark) => open.marked(mark),
    }
}

/// Returns the first character of a piece as written, as far as its neighbour depends on it.
fn first_char(piece: &Inline, open: &InlineStyle) -> Option<char> {
    match &piece.kind {
        InlineKind::Break => Some('\n'),
        InlineKind::Text(text) if widest(std::slice::from_ref(piece), open).0.is_none() && !piece.style.is_code() => {
            text.chars().next()
        }
        _ if piece.style.link.is_some() && open.link.is_none() => Some('['),
        _ => Some('*'),
    }
}

fn marker(mark: Marks) -> Option<&'static str> {
    match mark {
        Marks::STRONG => Some("**"),
        Marks::EMPHASIS => Some("*"),
        Marks::STRIKE => Some("~~"),
        _ => None,
    }
}

/// Returns the HTML tag of a mark.
pub(in crate::convert) fn tag(mark: Marks) -> &'static str {
    match mark {
        Marks::STRONG => "strong",
        Marks::EMPHASIS => "em",
        Marks::STRIKE => "del",
        Marks::UNDERLINE => "u",
        Marks::SUBSCRIPT => "sub",
        Marks::SUPERSCRIPT => "sup",
        _ => "code",
    }
}

/// Returns `true` if markers around this text are parsed as markers (flanking rules).
fn may_mark(before: Option<char>, inner: &str, after: Option<char>) -> bool {
    let leans = |inside: Option<char>, outside: Option<char>| {
        let outside_ends = outside.is_none_or(|c| c.is_whitespace() || is_punctuation(c));
        inside.is_some_and(|c| !c.is_whitespace() && (!is_punctuation(c) || outside_ends))
    };
    leans(inner.chars().next(), before) && leans(inner.chars().next_back(), after)
}

/// Returns `true` for characters that are neither letters, numbers nor blanks, including symbols.
fn is_punctuation(c: char) -> bool {
    !c.is_alphanumeric() && !c.is_whitespace() && !c.is_control()
}
