//! Writes blocks as ADF nodes. The schema restricts nesting: a list holds no table, a quote no heading. A block in a
//! forbidden place becomes an allowed one with the same text.

mod line;

use serde_json::{Map, Value, json};

use super::super::markdown::{Block, Callout, Cell, Inline, Item, Kind, Marks, flatten, plain, row_line};

/// Parent of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Document,
    Expand,
    /// An expand inside an expand.
    NestedExpand,
    Panel,
    Quote,
    Item,
}

pub(super) fn document(blocks: &[Block]) -> Value {
    let content = Writer::default().blocks(blocks, Within::Document);
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
struct Writer {
    /// Number of ids assigned so far; tasks must have one.
    ids: usize,
}

impl Writer {
    fn blocks(&mut self, blocks: &[Block], within: Within) -> Vec<Value> {
        blocks.iter().flat_map(|block| self.block(block, within)).collect()
    }

    fn block(&mut self, block: &Block, within: Within) -> Vec<Value> {
        use Within::{Document, Expand, Item, NestedExpand, Panel, Quote};
        match block {
            Block::Paragraph(text) => paragraphs(text),
            Block::Heading { text, .. } if matches!(within, Quote | Item) => paragraphs(&strong(text)),
            Block::Heading { level, text } => {
                let content = line::nodes(text);
                vec![node("heading", json!({ "level": level.clamp(&1, &6) }), content)]
            }
            Block::Code { language, text } => vec![code(language, text)],
            Block::Equation(text) => vec![code("math", text)],
            Block::Quote(blocks) if matches!(within, Document | Expand | NestedExpand) => {
                let content = self.filled(blocks, Quote);
                vec![node("blockquote", Value::Null, content)]
            }
            Block::Callout { kind, blocks } if matches!(within, Document | Expand | NestedExpand) => {
                let content = self.filled(blocks, Panel);
                vec![node("panel", json!({ "panelType": panel(*kind) }), content)]
            }
            Block::Quote(blocks) | Block::Callout { blocks, .. } => self.blocks(blocks, within),
            Block::Details { summary, blocks } => self.details(summary, blocks, within),
            Block::List { start, items } => self.list(*start, items, within),
            Block::Table { head, rows } if matches!(within, Document | Expand) => vec![table(head, rows)],
            Block::Table { head, rows } => {
                let rows = std::iter::once(head).chain(rows).map(|row| row_line(row));
                rows.filter(|row| !row.is_empty()).flat_map(|row| paragraphs(&row)).collect()
            }
            Block::Rule if matches!(within, Quote | Item) => Vec::new(),
            Block::Rule => vec![json!({ "type": "rule" })],
        }
    }

    /// Writes blocks where the schema requires at least one.
    fn filled(&mut self, blocks: &[Block], within: Within) -> Vec<Value> {
        let content = self.blocks(blocks, within);
        if content.is_empty() { vec![paragraph(&[])] } else { content }
    }

    fn details(&mut self, summary: &[Inline], blocks: &[Block], within: Within) -> Vec<Value> {
        let (name, inner) = match within {
            Within::Document => ("expand", Within::Expand),
            Within::Expand => ("nestedExpand", Within::NestedExpand),
            _ => {
                let mut nodes = paragraphs(&strong(summary));
                nodes.extend(self.blocks(blocks, within));
                return nodes;
            }
        };
        let content = self.filled(blocks, inner);
        vec![node(name, json!({ "title": plain(summary) }), content)]
    }

    /// Writes a list. Consecutive items with or without a checkbox form one list each.
    fn list(&mut self, start: Option<u64>, items: &[Item], within: Within) -> Vec<Value> {
        let mut nodes = Vec::new();
        let mut number = start;
        for group in items.chunk_by(|a, b| a.checked.is_some() == b.checked.is_some()) {
            nodes.push(match (group[0].checked, within) {
                (Some(_), Within::Quote) | (None, _) => self.items(number, group),
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
            None => self.blocks(&item.blocks, Within::Item),
            // A place without task lists gets the task as plain text.
            Some(_) => {
                let list = Block::List { start: None, items: vec![item.clone()] };
                paragraphs(&flatten(&[list]))
            }
        };
        // Editors require text before a nested list.
        if content
            .first()
            .is_none_or(|first| first["type"].as_str().is_some_and(|kind| kind.ends_with("List")))
        {
            content.insert(0, paragraph(&[]));
        }
        node("listItem", Value::Null, content)
    }

    /// Writes a task list. A task holds one line; its subtasks follow as a nested list.
    fn tasks(&mut self, items: &[Item]) -> Value {
        let list_id = self.id();
        let mut content = Vec::new();
        for item in items {
            let (inner, rest): (Vec<&Block>, Vec<&Block>) =
                item.blocks.iter().partition(|block| is_tasks(block));
            let rest: Vec<Block> = rest.into_iter().cloned().collect();
            let state = if item.checked == Some(true) { "DONE" } else { "TODO" };
            let id = self.id();
            let line = line::nodes(&flatten(&rest));
            content.push(node("taskItem", json!({ "localId": id, "state": state }), line));
            for block in inner {
                if let Block::List { items, .. } = block {
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

fn is_tasks(block: &Block) -> bool {
    matches!(block, Block::List { items, .. } if !items.is_empty() && items.iter().all(|item| item.checked.is_some()))
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
        Kind::Text(_) => Inline::new(piece.kind.clone(), &piece.style.marked(Marks::STRONG)),
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
                let line = super::super::markdown::tidy(group.to_vec());
                if !line.is_empty() {
                    nodes.push(paragraph(&line));
                }
            }
        }
    }
    nodes
}

fn code(language: &str, text: &str) -> Value {
    let content: Vec<Value> =
        if text.is_empty() { Vec::new() } else { vec![json!({ "type": "text", "text": text })] };
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
