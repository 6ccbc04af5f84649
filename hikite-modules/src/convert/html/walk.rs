//! Walks a markup tree and builds blocks. Inline content between two blocks forms a paragraph. Unknown elements are
//! transparent, so that their text is preserved.

use super::super::markdown::{
    DEPTH_MAX, DocumentBlock, Inline, InlineKind, InlineStyle, Item, Marks, flatten, normalize,
};
use super::super::markup::{Element, Node, is_block, mark};
use super::super::storage;
use super::table;

pub(in crate::convert) struct MarkupWalker {
    blocks: Vec<DocumentBlock>,
    line: Vec<Inline>,
    /// Set if the next blank must be dropped.
    is_spaced: bool,
    /// Nesting depth of blocks.
    depth: usize,
    /// Set if line breaks of the source are preserved.
    pub(super) preserves_lines: bool,
    /// State of a checkbox found in the current item.
    checked: Option<bool>,
}

impl MarkupWalker {
    pub(in crate::convert) fn new(depth: usize) -> Self {
        Self { blocks: Vec::new(), line: Vec::new(), is_spaced: true, depth, preserves_lines: false, checked: None }
    }

    pub(in crate::convert) fn finish(mut self) -> Vec<DocumentBlock> {
        self.flush();
        self.blocks
    }

    pub(in crate::convert) fn nodes(&mut self, nodes: &[Node], style: &InlineStyle) {
        for node in nodes {
            match node {
                Node::Text(text) => self.text(text, style),
                Node::Element(element) => self.element(element, style),
            }
        }
    }

    /// Ends the current line as a paragraph, or as several if it contains empty lines.
    pub(in crate::convert) fn flush(&mut self) {
        self.is_spaced = true;
        let line = normalize(std::mem::take(&mut self.line));
        let is_break = |inline: &Inline| inline.kind == InlineKind::Break;
        let mut start = 0;
        for at in 1..=line.len() {
            let ends = at == line.len() || is_break(&line[at - 1]) && is_break(&line[at]);
            let paragraph = if ends { normalize(line[start..at].to_vec()) } else { Vec::new() };
            start = if ends { at } else { start };
            if !paragraph.is_empty() {
                self.blocks.push(DocumentBlock::Paragraph(paragraph));
            }
        }
    }

    pub(in crate::convert) fn push(&mut self, block: DocumentBlock) {
        self.flush();
        self.blocks.push(block);
    }

    pub(in crate::convert) fn inline(&mut self, inline: Inline) {
        self.is_spaced = inline.kind == InlineKind::Break;
        self.line.push(inline);
    }

    /// Appends text with whitespace collapsed, as browsers do.
    pub(in crate::convert) fn text(&mut self, text: &str, style: &InlineStyle) {
        let mut words = String::with_capacity(text.len());
        for c in text.chars() {
            let is_end = self.preserves_lines && c == '\n';
            let is_blank = matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{a0}');
            match (is_end, is_blank) {
                (true, _) => words.push('\n'),
                (_, false) => words.push(c),
                (_, true) if !self.is_spaced => words.push(' '),
                _ => {}
            }
            self.is_spaced = is_end || is_blank;
        }
        if !words.is_empty() {
            self.line.push(Inline::text(words, style));
        }
    }

    /// Converts nodes to separate blocks.
    pub(in crate::convert) fn inside(&self, nodes: &[Node], style: &InlineStyle) -> Vec<DocumentBlock> {
        self.item(nodes, style).blocks
    }

    fn item(&self, nodes: &[Node], style: &InlineStyle) -> Item {
        let mut walk = Self::new(self.depth + 1);
        walk.nodes(nodes, style);
        walk.flush();
        Item { checked: walk.checked, blocks: walk.blocks }
    }

    /// Converts nodes to one line.
    pub(in crate::convert) fn line_of(&self, nodes: &[Node], style: &InlineStyle) -> Vec<Inline> {
        flatten(&self.inside(nodes, style))
    }

    /// Converts the content of an element, separated from its surroundings.
    pub(in crate::convert) fn section(&mut self, element: &Element, style: &InlineStyle) {
        self.flush();
        self.nodes(&element.children, style);
        self.flush();
    }

    /// Returns `true` if the depth limit is reached.
    pub(in crate::convert) fn is_too_deep(&self) -> bool {
        self.depth >= DEPTH_MAX
    }

    fn element(&mut self, element: &Element, style: &InlineStyle) {
        let name = element.name.as_str();
        match name {
            "head" | "script" | "style" | "template" | "colgroup" | "rp" => {}
            "br" => self.inline(Inline::line_break()),
            "hr" => self.push(DocumentBlock::Rule),
            "img" => {
                let (alt, url) = (element.attribute("alt").to_owned(), element.attribute("src").to_owned());
                self.inline(Inline::new(InlineKind::Image { alt, url }, style));
            }
            "input" if element.attribute("type") == "checkbox" => {
                self.checked = Some(element.has("checked"));
            }
            "a" => self.nodes(&element.children, &style.to(element.attribute("href").trim())),
            "q" => {
                self.text("“", style);
                self.nodes(&element.children, style);
                self.text("”", style);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let text = self.line_of(&element.children, style);
                let level = name.as_bytes()[1] - b'0';
                self.push(DocumentBlock::Heading { level, text });
            }
            "pre" => self.push(preformatted(element)),
            "time" if element.children.is_empty() => self.text(element.attribute("datetime"), style),
            "ul" | "ol" | "menu" | "dir" | "blockquote" | "details" | "table" if self.is_too_deep() => {
                self.section(element, style);
            }
            "ul" | "ol" | "menu" | "dir" => self.list(element, style),
            "blockquote" => {
                let blocks = self.inside(&element.children, style);
                self.push(DocumentBlock::Quote(blocks));
            }
            "details" => self.details(element, style),
            "table" => self.table(element, style),
            "dt" => self.section(element, &style.marked(Marks::STRONG)),
            _ if name.starts_with("ac:") || name.starts_with("ri:") => storage::element(self, element, style),
            _ if is_block(name) => self.section(element, style),
            _ => match mark(name) {
                Some(mark) => self.nodes(&element.children, &style.marked(mark)),
                None => self.nodes(&element.children, style),
            },
        }
    }

    fn list(&mut self, element: &Element, style: &InlineStyle) {
        let start = match element.name.as_str() {
            "ol" => Some(element.attribute("start").trim().parse().unwrap_or(1)),
            _ => None,
        };
        let mut items: Vec<Item> = Vec::new();
        for node in &element.children {
            match node {
                Node::Element(child) if child.name == "li" => items.push(self.item(&child.children, style)),
                Node::Text(text) if text.trim().is_empty() => {}
                // A list directly inside a list belongs to the previous item.
                other => {
                    let blocks = self.inside(std::slice::from_ref(other), style);
                    match items.last_mut() {
                        Some(last) => last.blocks.extend(blocks),
                        None if blocks.is_empty() => {}
                        None => items.push(Item { checked: None, blocks }),
                    }
                }
            }
        }
        if !items.is_empty() {
            self.push(DocumentBlock::List { start, items });
        }
    }

    fn details(&mut self, element: &Element, style: &InlineStyle) {
        let summary =
            element.child("summary").map(|summary| self.line_of(&summary.children, style)).unwrap_or_default();
        let mut walk = Self::new(self.depth + 1);
        let mut has_summary = false;
        for node in &element.children {
            match node {
                Node::Element(child) if child.name == "summary" && !has_summary => has_summary = true,
                other => walk.nodes(std::slice::from_ref(other), style),
            }
        }
        self.push(DocumentBlock::Details { summary, blocks: walk.finish() });
    }

    fn table(&mut self, element: &Element, style: &InlineStyle) {
        if let Some(caption) = element.child("caption") {
            self.section(caption, style);
        }
        let rows = table::rows(element, |nodes| self.line_of(nodes, style));
        if let Some(block) = table::block(rows) {
            self.push(block);
        }
    }
}

/// Converts preformatted text, with the language from its class.
fn preformatted(element: &Element) -> DocumentBlock {
    let code = element.child("code").unwrap_or(element);
    let classes = [code.attribute("class"), element.attribute("class")];
    let mut classes = classes.iter().flat_map(|class| class.split_whitespace());
    let language = classes.find_map(|class| class.strip_prefix("language-")).unwrap_or_default();
    let text = element.text();
    let text = text.strip_prefix('\n').unwrap_or(&text);
    DocumentBlock::Code { language: language.to_owned(), text: text.trim_end_matches('\n').to_owned() }
}
