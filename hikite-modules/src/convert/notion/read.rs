//! Reads Notion blocks. Layout that Markdown lacks (columns, synced blocks, tabs) is written sequentially.

mod media;

use serde_json::Value;

use super::super::markdown::{
    Callout, Cell, DEPTH_MAX, DocumentBlock, Inline, InlineStyle, Item, Marks, is_empty, normalize,
};
use super::{language, rich_text};

pub(super) fn blocks(value: &Value) -> Vec<DocumentBlock> {
    let mut reader = NotionReader { found: Vec::new(), depth: 0 };
    reader.blocks(list(value));
    reader.found
}

/// Returns the blocks of a list, a response, or a single block.
fn list(value: &Value) -> &[Value] {
    match value {
        Value::Array(blocks) => blocks,
        Value::Object(object) if object.get("results").is_some_and(Value::is_array) => list(&value["results"]),
        Value::Object(_) => std::slice::from_ref(value),
        _ => &[],
    }
}

fn kind(block: &Value) -> &str {
    block["type"].as_str().unwrap_or_default()
}

/// Returns the children of a block. Blocks from the API have them beside their content, blocks to be written inside it.
fn children(block: &Value) -> &[Value] {
    let beside = list_of(&block["children"]);
    if beside.is_empty() { list_of(&block[kind(block)]["children"]) } else { beside }
}

fn list_of(value: &Value) -> &[Value] {
    let is_list = value.is_array() || value["results"].is_array();
    if is_list { list(value) } else { &[] }
}

struct NotionReader {
    found: Vec<DocumentBlock>,
    depth: usize,
}

impl NotionReader {
    fn blocks(&mut self, blocks: &[Value]) {
        for block in blocks {
            self.block(block);
        }
    }

    /// Appends a block. Adjacent lists are merged, because Notion has items but no lists.
    fn push(&mut self, block: DocumentBlock) {
        if is_empty(&block) {
            return;
        }
        match (self.found.last_mut(), block) {
            (Some(DocumentBlock::List { start: before, items }), DocumentBlock::List { start, items: more })
                if before.is_some() == start.is_some() =>
            {
                items.extend(more);
            }
            (_, block) => self.found.push(block),
        }
    }

    fn text(&mut self, line: Vec<Inline>) {
        self.push(DocumentBlock::Paragraph(line));
    }

    fn block(&mut self, block: &Value) {
        let kind = kind(block);
        let body = &block[kind];
        if self.depth >= DEPTH_MAX {
            return all_texts(block).into_iter().for_each(|text| self.push(DocumentBlock::words(text)));
        }
        let line = || rich_text::line(&body["rich_text"]);
        match kind {
            "paragraph" => {
                self.text(with_icon(&body["icon"], line()));
                self.children(block);
            }
            "heading_1" | "heading_2" | "heading_3" | "heading_4" => {
                self.push(DocumentBlock::Heading { level: kind.as_bytes()[8] - b'0', text: line() });
                self.children(block);
            }
            "bulleted_list_item" | "numbered_list_item" | "to_do" => self.item(kind, body, block),
            "toggle" | "template" => {
                let blocks = self.inside(block);
                self.push(DocumentBlock::Details { summary: line(), blocks });
            }
            "quote" => {
                let blocks = self.with_text(line(), block);
                self.push(DocumentBlock::Quote(blocks));
            }
            "callout" => {
                let blocks = self.with_text(with_icon(&body["icon"], line()), block);
                self.push(DocumentBlock::Callout { kind: callout(body), blocks });
            }
            "code" => {
                let language = body["language"].as_str().filter(|name| *name != language::PLAIN);
                let language = language.unwrap_or_default().to_owned();
                self.push(DocumentBlock::Code { language, text: rich_text::raw(&body["rich_text"]) });
                self.text(rich_text::line(&body["caption"]));
                self.children(block);
            }
            "equation" => {
                self.push(DocumentBlock::Equation(body["expression"].as_str().unwrap_or_default().to_owned()));
            }
            "divider" => self.push(DocumentBlock::Rule),
            "table" => self.table(body, block),
            "table_row" => self.push(DocumentBlock::Table { head: row(block), rows: Vec::new() }),
            "table_of_contents" => self.push(DocumentBlock::words("[TOC]")),
            "breadcrumb" => self.push(DocumentBlock::words("[breadcrumb]")),
            "column_list" | "column" | "tab" => self.children(block),
            "synced_block" => {
                if let (Some(source), []) = (body["synced_from"]["block_id"].as_str(), children(block)) {
                    self.push(DocumentBlock::words(format!("[synced_block {source}]")));
                }
                self.children(block);
            }
            "meeting_notes" | "transcription" => {
                let strong = InlineStyle::default().marked(Marks::STRONG);
                self.text(vec![Inline::text(rich_text::words(&body["title"]), &strong)]);
                self.push(DocumentBlock::words(format!("[{kind} {}]", body["status"].as_str().unwrap_or_default())));
                self.children(block);
            }
            _ => {
                match media::line(kind, body, block) {
                    Some(line) => self.text(line),
                    None => self.unknown(kind, body, block),
                }
                self.children(block);
            }
        }
    }

    fn item(&mut self, kind: &str, body: &Value, block: &Value) {
        let checked = (kind == "to_do").then(|| body["checked"] == true);
        let start = (kind == "numbered_list_item").then(|| body["list_start_index"].as_u64().unwrap_or(1));
        let blocks = self.with_text(rich_text::line(&body["rich_text"]), block);
        self.push(DocumentBlock::List { start, items: vec![Item { checked, blocks }] });
    }

    /// Reads an unknown block: its type, its id and all its text.
    fn unknown(&mut self, kind: &str, body: &Value, block: &Value) {
        let said = ["block_type", "title", "name", "url"].map(|name| rich_text::words(&body[name]));
        let said: Vec<&str> = said.iter().map(String::as_str).filter(|said| !said.is_empty()).collect();
        let kind = if kind.is_empty() { "block" } else { kind };
        let id = block["id"].as_str().unwrap_or_default();
        let shown: Vec<&str> = [kind].into_iter().chain(said).chain([id]).filter(|said| !said.is_empty()).collect();
        self.push(DocumentBlock::words(format!("[{}]", shown.join(" "))));
        self.text(rich_text::line(&body["rich_text"]));
        self.text(rich_text::line(&body["caption"]));
    }

    /// Appends the children as following blocks.
    fn children(&mut self, block: &Value) {
        self.depth += 1;
        self.blocks(children(block));
        self.depth -= 1;
    }

    fn inside(&self, block: &Value) -> Vec<DocumentBlock> {
        let mut reader = Self { found: Vec::new(), depth: self.depth + 1 };
        reader.blocks(children(block));
        reader.found
    }

    fn with_text(&self, line: Vec<Inline>, block: &Value) -> Vec<DocumentBlock> {
        let mut blocks = vec![DocumentBlock::Paragraph(line)];
        blocks.extend(self.inside(block));
        blocks
    }

    fn table(&mut self, body: &Value, block: &Value) {
        let (rows, others): (Vec<&Value>, Vec<&Value>) =
            children(block).iter().partition(|child| kind(child) == "table_row");
        let mut rows: Vec<Vec<Cell>> = rows.into_iter().map(row).collect();
        if rows.is_empty() {
            self.unknown("table", body, block);
            return self.children(block);
        }
        let width = rows.iter().map(Vec::len).max().unwrap_or_default();
        let head = if body["has_column_header"] == true { rows.remove(0) } else { vec![Cell::new(); width] };
        self.push(DocumentBlock::Table { head, rows });
        self.depth += 1;
        for other in others {
            self.block(other);
        }
        self.depth -= 1;
    }
}

fn row(block: &Value) -> Vec<Cell> {
    let cells = block["table_row"]["cells"].as_array();
    cells.into_iter().flatten().map(|cell| normalize(rich_text::line(cell))).collect()
}

fn with_icon(icon: &Value, mut line: Vec<Inline>) -> Vec<Inline> {
    if let Some(emoji) = icon["emoji"].as_str() {
        line.insert(0, Inline::text(format!("{emoji} "), &InlineStyle::default()));
    }
    line
}

/// Returns the kind of a callout, which Notion encodes as its colour.
fn callout(body: &Value) -> Callout {
    let colour = body["color"].as_str().unwrap_or_default();
    match colour.strip_suffix("_background").unwrap_or(colour) {
        "green" => Callout::Tip,
        "purple" => Callout::Important,
        "yellow" | "orange" => Callout::Warning,
        "red" => Callout::Caution,
        _ => Callout::Note,
    }
}

/// Returns the texts of a block and all its descendants at any depth.
fn all_texts(block: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    let mut open = vec![block];
    while let Some(block) = open.pop() {
        let body = &block[kind(block)];
        for name in ["rich_text", "caption", "title", "expression", "url"] {
            texts.extend(Some(rich_text::words(&body[name])).filter(|text| !text.is_empty()));
        }
        for cell in body["cells"].as_array().into_iter().flatten() {
            texts.push(rich_text::words(cell));
        }
        open.extend(children(block).iter().rev());
    }
    texts
}
