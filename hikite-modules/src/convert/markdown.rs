//! Document tree that all converters read or build, limited to what Markdown can express. The modules below parse and
//! write Markdown. A tree is never deeper than [`DEPTH_MAX`].

mod escape;
mod flatten;
mod inline;
mod line;
mod read;
mod write;

pub(super) use flatten::{flatten, plain, row_line};
pub(super) use inline::{Inline, InlineKind, InlineStyle, Marks};
pub(super) use line::normalize;
pub(super) use read::read;
pub(super) use write::{is_empty, tag, write};

/// Maximum nesting depth of blocks. Deeper content is flattened to this depth.
pub(super) const DEPTH_MAX: usize = 24;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum DocumentBlock {
    Paragraph(Vec<Inline>),
    Heading {
        level: u8,
        text: Vec<Inline>,
    },
    Code {
        /// Info string of the fence.
        language: String,
        text: String,
    },
    Equation(String),
    Quote(Vec<DocumentBlock>),
    Callout {
        kind: Callout,
        blocks: Vec<DocumentBlock>,
    },
    Details {
        summary: Vec<Inline>,
        blocks: Vec<DocumentBlock>,
    },
    List {
        /// Number of the first item of an ordered list.
        start: Option<u64>,
        items: Vec<Item>,
    },
    Table {
        /// All cells are empty if the table has no head.
        head: Vec<Cell>,
        rows: Vec<Vec<Cell>>,
    },
    Rule,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Item {
    /// State of a task item.
    pub(super) checked: Option<bool>,
    pub(super) blocks: Vec<DocumentBlock>,
}

pub(super) type Cell = Vec<Inline>;

/// Kinds of alerts such as `> [!NOTE]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Callout {
    Note,
    Tip,
    Important,
    Warning,
    Caution,
}

impl DocumentBlock {
    /// Returns a paragraph of plain text.
    pub(super) fn words(text: impl Into<String>) -> Self {
        Self::Paragraph(vec![Inline::text(text, &InlineStyle::default())])
    }
}
