//! A text as a small tree, which every converter here reads or makes. It knows what Markdown can say and nothing
//! more; how Markdown is written and read is below. A tree is never deeper than [`DEPTH_MAX`].

mod escape;
mod flatten;
mod inline;
mod line;
mod read;
mod write;

pub(super) use flatten::{flatten, plain, row_line};
pub(super) use inline::{Inline, Kind, Marks, Style};
pub(super) use line::tidy;
pub(super) use read::read;
pub(super) use write::{is_empty, tag, write};

/// How many blocks stand inside each other at most; what is deeper is told at this depth.
pub(super) const DEPTH_MAX: usize = 24;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    Paragraph(Vec<Inline>),
    Heading {
        level: u8,
        text: Vec<Inline>,
    },
    Code {
        /// What stands behind the fence, as it stands there.
        language: String,
        text: String,
    },
    Equation(String),
    Quote(Vec<Block>),
    Callout {
        kind: Callout,
        blocks: Vec<Block>,
    },
    Details {
        summary: Vec<Inline>,
        blocks: Vec<Block>,
    },
    List {
        /// The number of the first item, where items are numbered.
        start: Option<u64>,
        items: Vec<Item>,
    },
    Table {
        /// All of its cells are empty where a table has no head.
        head: Vec<Cell>,
        rows: Vec<Vec<Cell>>,
    },
    Rule,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Item {
    /// For something to do: whether it is done.
    pub(super) checked: Option<bool>,
    pub(super) blocks: Vec<Block>,
}

pub(super) type Cell = Vec<Inline>;

/// The kinds of `> [!NOTE]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Callout {
    Note,
    Tip,
    Important,
    Warning,
    Caution,
}

impl Block {
    /// A paragraph in plain words.
    pub(super) fn words(text: impl Into<String>) -> Self {
        Self::Paragraph(vec![Inline::text(text, &Style::default())])
    }
}
