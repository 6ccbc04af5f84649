//! Inline content: a sequence of pieces, each with its complete style. Styles are not nested, as in Notion and ADF; the
//! Markdown writer decides how markers nest.

use std::rc::Rc;

#[derive(Debug, Clone, PartialEq)]
pub(in crate::convert) struct Inline {
    pub(in crate::convert) kind: InlineKind,
    pub(in crate::convert) style: InlineStyle,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::convert) enum InlineKind {
    Text(String),
    /// Line break inside a paragraph.
    Break,
    Image {
        alt: String,
        url: String,
    },
    /// LaTeX equation.
    Math(String),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::convert) struct InlineStyle {
    pub(in crate::convert) marks: Marks,
    pub(in crate::convert) link: Option<Rc<str>>,
}

/// Set of marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::convert) struct Marks(u8);

impl Marks {
    pub(in crate::convert) const STRONG: Self = Self(1);
    pub(in crate::convert) const EMPHASIS: Self = Self(2);
    pub(in crate::convert) const STRIKE: Self = Self(4);
    pub(in crate::convert) const UNDERLINE: Self = Self(8);
    pub(in crate::convert) const SUBSCRIPT: Self = Self(16);
    pub(in crate::convert) const SUPERSCRIPT: Self = Self(32);
    pub(in crate::convert) const CODE: Self = Self(64);

    /// All marks, outermost first.
    pub(in crate::convert) const ALL: [Self; 7] =
        [Self::STRONG, Self::EMPHASIS, Self::STRIKE, Self::UNDERLINE, Self::SUBSCRIPT, Self::SUPERSCRIPT, Self::CODE];

    pub(in crate::convert) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(in crate::convert) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(in crate::convert) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(in crate::convert) fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Inline {
    pub(in crate::convert) fn new(kind: InlineKind, style: &InlineStyle) -> Self {
        Self { kind, style: style.clone() }
    }

    pub(in crate::convert) fn text(text: impl Into<String>, style: &InlineStyle) -> Self {
        Self::new(InlineKind::Text(text.into()), style)
    }

    pub(in crate::convert) fn line_break() -> Self {
        Self::new(InlineKind::Break, &InlineStyle::default())
    }

    /// Returns text with a link.
    pub(in crate::convert) fn link(text: impl Into<String>, url: &str) -> Self {
        Self::text(text, &InlineStyle::default().to(url))
    }
}

impl InlineStyle {
    pub(in crate::convert) fn marked(&self, marks: Marks) -> Self {
        Self { marks: self.marks.with(marks), link: self.link.clone() }
    }

    /// Returns this style with a link. An empty URL leaves the link unchanged.
    pub(in crate::convert) fn to(&self, url: &str) -> Self {
        let link = if url.is_empty() { self.link.clone() } else { Some(Rc::from(url)) };
        Self { marks: self.marks, link }
    }

    pub(in crate::convert) fn is_code(&self) -> bool {
        self.marks.has(Marks::CODE)
    }

    /// Returns the style that two pieces have in common.
    pub(super) fn both(&self, other: &Self) -> Self {
        let link = if self.link == other.link { self.link.clone() } else { None };
        Self { marks: self.marks.both(other.marks).without(Marks::CODE), link }
    }
}
