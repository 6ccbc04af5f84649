//! Writes blocks as ADF nodes. The schema restricts nesting: a list holds no table, a quote no heading. A block in a
//! forbidden place becomes an allowed one with the same text.

mod line;

use serde_json::{Map, Value, json};

use super::super::markdown::{Callout, Cell, DocumentBlock, Inline, InlineKind, Item, Marks, flatten, plain, row_line};

/// Parent of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParentBlock {
    Document,
    Expand,
    /// An expand inside an expand.
    NestedExpand,
    Panel,
    Quote,
    Item,
}

pub(super) fn document(blocks: &[DocumentBlock]) -> Value {
    let content = AdfWriter::default().blocks(blocks, ParentBlock::Document);
    let mut document = node("doc", Value::Null, content);
    document["version"] = json!(1);
    document
}

/// Builds a node with content. `attributes` may be null.
fn node(kind: &str, attributes: Value, content: Vec<Value>) -> Value {
    let mut members = Map::new();
    members.insert("type".to_owned(), kind.into());
    if !attributes.is_null() {
        members.insert("attrs".to_owned(), attributes);
    }
    members.insert("content".to_owned(), Value::Array(content));
    Value::Object(members)
}

#[derive(Default)]
struct AdfWriter {
    /// Number of ids assigned so far; tasks must have one.
    ids: usize,
}

impl AdfWriter {
    fn blocks(&mut self, blocks: &[DocumentBlock], parent: ParentBlock) -> Vec<Value> {
        blocks.iter().flat_map(|block| self.block(block, parent)).collect()
    }

    fn block(&mut self, block: &DocumentBlock, parent: ParentBlock) -> Vec<Value> {
        use ParentBlock::{Document, Expand, Item, NestedExpand, Panel, Quote};
        match block {
            DocumentBlock::Paragraph(text) => paragraphs(text),
            DocumentBlock::Heading { text, .. } if matches!(parent, Quote | Item) => paragraphs(&strong(text)),
            DocumentBlock::Heading { level, text } => {
                let content = line::nodes(text);
                vec![node("heading", json!({ "level": level.clamp(&1, &6) }), content)]
            }
            DocumentBlock::Code { language, text } => vec![code(language, text)],
            DocumentBlock::Equation(text) => vec![code("math", text)],
            DocumentBlock::Quote(blocks) if matches!(parent, Document | Expand | NestedExpand) => {
                let content = self.blocks_or_empty(blocks, Quote);
                vec![node("blockquote", Value::Null, content)]
            }
            DocumentBlock::Callout { kind, blocks } if matches!(parent, Document | Expand | NestedExpand) => {
                let content = self.blocks_or_empty(blocks, Panel);
                vec![node("panel", json!({ "panelType": panel(*kind) }), content)]
            }
            DocumentBlock::Quote(blocks) | DocumentBlock::Callout { blocks, .. } => self.blocks(blocks, parent),
            DocumentBlock::Details { summary, blocks } => self.details(summary, blocks, parent),
            DocumentBlock::List { start, items } => self.list(*start, items, parent),
            DocumentBlock::Table { head, rows } if matches!(parent, Document | Expand) => {
                vec![table(head, rows)]
            }
            DocumentBlock::Table { head, rows } => {
                let rows = std::iter::once(head).chain(rows).map(|row| row_line(row));
                rows.filter(|row| !row.is_empty()).flat_map(|row| paragraphs(&row)).collect()
            }
            DocumentBlock::Rule if matches!(parent, Quote | Item) => Vec::new(),
            DocumentBlock::Rule => vec![json!({ "type": "rule" })],
        }
    }

    /// Writes blocks where the schema requires at least one.
    fn blocks_or_empty(&mut self, blocks: &[DocumentBlock], parent: ParentBlock) -> Vec<Value> {
        let content = self.blocks(blocks, parent);
        if content.is_empty() { vec![paragraph(&[])] } else { content }
    }

    fn details(&mut self, summary: &[Inline], blocks: &[DocumentBlock], parent: ParentBlock) -> Vec<Value> {
        let (name, inner) = match parent {
            ParentBlock::Document => ("expand", ParentBlock::Expand),
            ParentBlock::Expand => ("nestedExpand", ParentBlock::NestedExpand),
            _ => {
                let mut nodes = paragraphs(&strong(summary));
                nodes.extend(self.blocks(blocks, parent));
                return nodes;
            }
        };
        let content = self.blocks_or_empty(blocks, inner);
        vec![node(name, json!({ "title": plain(summary) }), content)]
    }

    /// Writes a list. Consecutive items with or without a checkbox form one list each.
    fn list(&mut self, start: Option<u64>, items: &[Item], parent: ParentBlock) -> Vec<Value> {
        let mut nodes = Vec::new();
        let mut number = start;
        for group in items.chunk_by(|a, b| a.checked.is_some() == b.checked.is_some()) {
            nodes.push(match (group[0].checked, parent) {
                (Some(_), ParentBlock::Quote) | (None, _) => self.items(number, group),
                (Some(_), _) => self.tasks(group),
            });
            number = number.map(|number| number.saturating_add(group.len() as u64));
        }
        nodes
    }

    fn items(&mut self, start: Option<u64>, items: &[Item]) -> Value {
        let content: Vec<Value> = items.iter().map(|item| self.item(item)).collect();
        match start {
            Some(1) => node("orderedList", Value::Null, content),
            Some(start) => node("orderedList", json!({ "order": start }), content),
            None => node("bulletList", Value::Null, content),
        }
    }

    fn item(&mut self, item: &Item) -> Value {
        let mut content = match item.checked {
            None => self.blocks(&item.blocks, ParentBlock::Item),
            // A place without task lists gets the task as plain text.
            Some(_) => {
                let list = DocumentBlock::List { start: None, items: vec![item.clone()] };
                paragraphs(&flatten(&[list]))
            }
        };
        // Editors require text before a nested list.
        if content.first().is_none_or(|first| first["type"].as_str().is_some_and(|kind| kind.ends_with("List"))) {
            content.insert(0, paragraph(&[]));
        }
        node("listItem", Value::Null, content)
    }

    /// Writes a task list. A task holds one line; its subtasks follow as a nested list.
    fn tasks(&mut self, items: &[Item]) -> Value {
        let list_id = self.id();
        let mut content = Vec::new();
        for item in items {
            let (inner, rest): (Vec<&DocumentBlock>, Vec<&DocumentBlock>) =
                item.blocks.iter().partition(|block| is_tasks(block));
            let rest: Vec<DocumentBlock> = rest.into_iter().cloned().collect();
            let state = if item.checked == Some(true) { "DONE" } else { "TODO" };
            let id = self.id();
            let line = line::nodes(&flatten(&rest));
            content.push(node("taskItem", json!({ "localId": id, "state": state }), line));
            for block in inner {
                if let DocumentBlock::List { items, .. } = block {
                    content.push(self.tasks(items));
                }
            }
        }
        node("taskList", json!({ "localId": list_id }), content)
    }

    fn id(&mut self) -> String {
        self.ids += 1;
        self.ids.to_string()
    }
}

fn is_tasks(block: &DocumentBlock) -> bool {
    matches!(block, DocumentBlock::List { items, .. } if !items.is_empty() && items.iter().all(|item| item.checked.is_some()))
}

fn panel(kind: Callout) -> &'static str {
    match kind {
        Callout::Note => "info",
        Callout::Tip => "tip",
        Callout::Important => "note",
        Callout::Warning => "warning",
        Callout::Caution => "error",
    }
}

fn strong(text: &[Inline]) -> Vec<Inline> {
    let marked = |piece: &Inline| match piece.kind {
        InlineKind::Text(_) => Inline::new(piece.kind.clone(), &piece.style.marked(Marks::STRONG)),
        _ => piece.clone(),
    };
    text.iter().map(marked).collect()
}

fn paragraph(text: &[Inline]) -> Value {
    node("paragraph", Value::Null, line::nodes(text))
}

/// Writes paragraphs, split at images, which are blocks in ADF.
fn paragraphs(text: &[Inline]) -> Vec<Value> {
    let mut nodes = Vec::new();
    for group in text.chunk_by(|a, b| line::media(a).is_none() && line::media(b).is_none()) {
        match line::media(&group[0]) {
            Some(media) => {
                nodes.push(node("mediaSingle", json!({ "layout": "center" }), vec![media]));
            }
            None => {
                let line = super::super::markdown::normalize(group.to_vec());
                if !line.is_empty() {
                    nodes.push(paragraph(&line));
                }
            }
        }
    }
    nodes
}

fn code(language: &str, text: &str) -> Value {
    let content: Vec<Value> = if text.is_empty() { Vec::new() } else { vec![json!({ "type": "text", "text": text })] };
    match language.split([' ', ',', '{']).next().unwrap_or_default() {
        "" => node("codeBlock", Value::Null, content),
        language => node("codeBlock", json!({ "language": language }), content),
    }
}

fn table(head: &[Cell], rows: &[Vec<Cell>]) -> Value {
    let has_head = rows.is_empty() || head.iter().any(|cell| !cell.is_empty());
    let head = has_head.then(|| row("tableHeader", head));
    let rows = rows.iter().map(|cells| row("tableCell", cells));
    node("table", Value::Null, head.into_iter().chain(rows).collect())
}

fn row(kind: &str, cells: &[Cell]) -> Value {
    let cells: Vec<Value> = cells.iter().map(|cell| node(kind, Value::Null, vec![paragraph(cell)])).collect();
    node("tableRow", Value::Null, cells)
}
