//! Writes a line as Markdown. Markers are tried first; if parsing does not return the same line, HTML tags are used
//! (`**「注意」**です` is not bold without a blank), and finally everything that could be markup is escaped.

use super::super::escape::{self, Pairs, Spot};
use super::super::read::read;
use super::super::{Block, Inline, Kind, Marks, Style, tidy};
use super::address;

/// Context of a line, and its restrictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Paragraph,
    /// Single line.
    Heading,
    /// Single line that ends at a bar.
    Cell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Markers,
    Tags,
    Escaped,
}

/// Returns Markdown that parses as this line.
pub(super) fn line(inlines: &[Inline], place: Place) -> String {
    let line = tidy(inlines.to_vec());
    for manner in [Manner::Markers, Manner::Tags] {
        let text = Writer { place, manner, pairs: Pairs::of(&line) }.line(&line);
        if reads_as(&text, &line, place) {
            return text;
        }
    }
    Writer { place, manner: Manner::Escaped, pairs: Pairs::default() }.line(&line)
}

fn reads_as(text: &str, line: &[Inline], place: Place) -> bool {
    let blocks = match place {
        Place::Paragraph => read(text),
        Place::Heading => read(&format!("# {text}")),
        Place::Cell => read(&format!("|{text}|\n|-|")),
    };
    match (place, blocks.as_slice()) {
        (_, []) => line.is_empty(),
        (Place::Paragraph, [Block::Paragraph(found)])
        | (Place::Heading, [Block::Heading { text: found, .. }]) => found == line,
        (Place::Paragraph, [Block::Equation(found)]) => {
            matches!(line, [Inline { kind: Kind::Math(text), .. }] if text == found)
        }
        (Place::Cell, [Block::Table { head, rows }]) => rows.is_empty() && head.len() == 1 && head[0] == line,
        _ => false,
    }
}

struct Writer {
    place: Place,
    manner: Manner,
    pairs: Pairs,
}

/// Link or mark that encloses pieces.
#[derive(Clone, Copy)]
enum Layer {
    Link,
    Mark(Marks),
}

/// Layers, outermost first, for pieces enclosed by several.
const LAYERS: [Layer; 7] = [
    Layer::Link,
    Layer::Mark(Marks::STRONG),
    Layer::Mark(Marks::EMPHASIS),
    Layer::Mark(Marks::STRIKE),
    Layer::Mark(Marks::UNDERLINE),
    Layer::Mark(Marks::SUBSCRIPT),
    Layer::Mark(Marks::SUPERSCRIPT),
];

/// Context of the pieces being written.
#[derive(Clone, Copy)]
struct Around<'a> {
    open: &'a Style,
    before: Option<char>,
    after: Option<char>,
}

impl Writer {
    fn line(&self, line: &[Inline]) -> String {
        let mut out = String::new();
        self.pieces(line, Around { open: &Style::default(), before: None, after: None }, &mut out);
        out
    }

    fn pieces(&self, pieces: &[Inline], around: Around<'_>, out: &mut String) {
        let mut at = 0;
        while at < pieces.len() {
            let (layer, end) = widest(&pieces[at..], around.open);
            let end = at + end;
            let after = pieces.get(end).map_or(around.after, |next| first_char(next, around.open));
            let before = out.chars().next_back().or(around.before);
            match layer {
                None => self.piece(&pieces[at], Around { before, after, ..around }, out),
                Some(layer) => {
                    let open = opened(around.open, layer, &pieces[at]);
                    let mut inner = String::new();
                    let edge = Some('*');
                    self.pieces(
                        &pieces[at..end],
                        Around { open: &open, before: edge, after: edge },
                        &mut inner,
                    );
                    self.enclose(layer, &pieces[at..end], &inner, (before, after), out);
                }
            }
            at = end;
        }
    }

    fn enclose(
        &self,
        layer: Layer,
        pieces: &[Inline],
        inner: &str,
        (before, after): (Option<char>, Option<char>),
        out: &mut String,
    ) {
        let mark = match layer {
            Layer::Link => {
                let url = pieces[0].style.link.as_deref().unwrap_or_default();
                if let [Inline { kind: Kind::Text(text), style }] = pieces
                    && self.manner != Manner::Escaped
                    && !style.is_code()
                    && text == url
                    && address::is_plain(url)
                {
                    out.extend(["<", url, ">"]);
                    return;
                }
                out.extend(["[", inner, "]("]);
                address::write(url, self.place == Place::Cell, out);
                out.push(')');
                return;
            }
            Layer::Mark(mark) => mark,
        };
        match marker(mark).filter(|_| self.manner == Manner::Markers && may_mark(before, inner, after)) {
            Some(marker) => out.extend([marker, inner, marker]),
            None => {
                let tag = tag(mark);
                out.extend(["<", tag, ">", inner, "</", tag, ">"]);
            }
        }
    }

    fn piece(&self, piece: &Inline, around: Around<'_>, out: &mut String) {
        match &piece.kind {
            Kind::Text(text) if piece.style.is_code() => self.code(text, out),
            Kind::Text(text) => self.text(text, around, out),
            Kind::Break if self.place == Place::Paragraph && self.manner != Manner::Escaped => {
                out.push_str("\\\n");
            }
            Kind::Break => out.push_str("<br>"),
            Kind::Image { alt, url } => {
                out.push_str("![");
                let open = around.open.to("image");
                self.text(alt, Around { open: &open, before: Some('['), after: Some(']') }, out);
                out.push_str("](");
                address::write(url, self.place == Place::Cell, out);
                out.push(')');
            }
            Kind::Math(text) => match self.manner {
                Manner::Escaped if text.contains(['$', '`', '|']) => self.code(text, out),
                Manner::Markers => out.extend(["$", text, "$"]),
                _ => out.extend(["$$", text, "$$"]),
            },
        }
    }

    fn text(&self, text: &str, around: Around<'_>, out: &mut String) {
        if self.manner == Manner::Escaped {
            return escape::fully(text, out);
        }
        let begins_line = match out.chars().next_back() {
            None => around.before.is_none(),
            Some(last) => last == '\n',
        };
        let spot = Spot {
            before: around.before,
            after: around.after,
            begins_line,
            in_link: around.open.link.is_some(),
            in_cell: self.place == Place::Cell,
            pairs: self.pairs,
        };
        escape::lightly(text, spot, out);
        // Trailing hashes of a heading would be removed.
        if self.place == Place::Heading && around.after.is_none() && text.ends_with('#') {
            out.pop();
            out.push_str("\\#");
        }
    }

    fn code(&self, text: &str, out: &mut String) {
        if self.manner == Manner::Escaped {
            out.push_str("<code>");
            escape::fully(text, out);
            out.push_str("</code>");
            return;
        }
        let fence = "`".repeat(longest_run(text, '`') + 1);
        let edges = text.starts_with('`') || text.ends_with('`');
        let blanks = text.starts_with(' ') && text.ends_with(' ') && !text.trim_matches(' ').is_empty();
        let pad = if edges || blanks { " " } else { "" };
        out.extend([&fence, pad]);
        if self.place == Place::Cell {
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
fn widest(pieces: &[Inline], open: &Style) -> (Option<Layer>, usize) {
    let mut best = (None, 1);
    for layer in LAYERS {
        let is_in = |piece: &&Inline| match layer {
            Layer::Link => piece.style.link.is_some() && piece.style.link == pieces[0].style.link,
            Layer::Mark(mark) => piece.style.marks.has(mark),
        };
        let is_open = match layer {
            Layer::Link => open.link.is_some(),
            Layer::Mark(mark) => open.marks.has(mark),
        };
        let length = if is_open { 0 } else { pieces.iter().take_while(is_in).count() };
        if length > best.1 || length > 0 && best.0.is_none() {
            best = (Some(layer), length);
        }
    }
    best
}

fn opened(open: &Style, layer: Layer, piece: &Inline) -> Style {
    match layer {
        Layer::Link => Style { marks: open.marks, link: piece.style.link.clone() },
        Layer::Mark(mark) => open.marked(mark),
    }
}

/// Returns the first character of a piece as written, as far as its neighbour depends on it.
fn first_char(piece: &Inline, open: &Style) -> Option<char> {
    match &piece.kind {
        Kind::Break => Some('\n'),
        Kind::Text(text)
            if widest(std::slice::from_ref(piece), open).0.is_none() && !piece.style.is_code() =>
        {
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
