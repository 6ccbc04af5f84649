//! Writes blocks in the storage format.

use super::super::markdown::{Callout, Cell, DocumentBlock, Inline, InlineKind, Item, plain};
use super::super::markup;
use super::link::unescape;

pub(super) fn blocks(blocks: &[DocumentBlock]) -> String {
    let mut writer = StorageWriter::default();
    writer.blocks(blocks);
    writer.out
}

#[derive(Default)]
struct StorageWriter {
    out: String,
    /// Number of tasks written so far, used as task ids.
    tasks: usize,
}

impl StorageWriter {
    fn blocks(&mut self, blocks: &[DocumentBlock]) {
        for block in blocks {
            self.block(block);
        }
    }

    fn block(&mut self, block: &DocumentBlock) {
        match block {
            DocumentBlock::Paragraph(text) if plain(text) == "[TOC]" => {
                self.out.push_str("<ac:structured-macro ac:name=\"toc\"/>");
            }
            DocumentBlock::Paragraph(text) => self.line("p", text),
            DocumentBlock::Heading { level, text } => self.line(&format!("h{}", level.clamp(&1, &6)), text),
            DocumentBlock::Code { language, text } => self.code(language, text),
            DocumentBlock::Equation(text) => self.code("math", text),
            DocumentBlock::Quote(blocks) => self.enclosed("blockquote", blocks),
            DocumentBlock::Callout { kind, blocks } => {
                let name = match kind {
                    Callout::Note => "info",
                    Callout::Tip => "tip",
                    Callout::Important | Callout::Warning => "note",
                    Callout::Caution => "warning",
                };
                self.macro_with_body(name, "", blocks);
            }
            DocumentBlock::Details { summary, blocks } => {
                self.macro_with_body("expand", &plain(summary), blocks);
            }
            DocumentBlock::List { start, items } => self.list(*start, items),
            DocumentBlock::Table { head, rows } => self.table(head, rows),
            DocumentBlock::Rule => self.out.push_str("<hr/>"),
        }
    }

    fn enclosed(&mut self, tag: &str, blocks: &[DocumentBlock]) {
        self.out.extend(["<", tag, ">"]);
        self.blocks(blocks);
        self.out.extend(["</", tag, ">"]);
    }

    fn line(&mut self, tag: &str, line: &[Inline]) {
        self.out.extend(["<", tag, ">"]);
        self.inlines(line);
        self.out.extend(["</", tag, ">"]);
    }

    fn macro_with_body(&mut self, name: &str, title: &str, blocks: &[DocumentBlock]) {
        self.out.push_str("<ac:structured-macro");
        markup::attribute("ac:name", name, &mut self.out);
        self.out.push('>');
        self.parameter("title", title);
        self.enclosed("ac:rich-text-body", blocks);
        self.out.push_str("</ac:structured-macro>");
    }

    fn parameter(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        self.out.push_str("<ac:parameter");
        markup::attribute("ac:name", name, &mut self.out);
        self.out.push('>');
        markup::text(value, &mut self.out);
        self.out.push_str("</ac:parameter>");
    }

    fn code(&mut self, language: &str, text: &str) {
        self.out.push_str("<ac:structured-macro ac:name=\"code\">");
        let language = language.split([' ', ',', '{']).next().unwrap_or_default();
        self.parameter("language", language);
        self.out.push_str("<ac:plain-text-body><![CDATA[");
        // A CDATA end inside the text is split across two sections.
        let text: String = text.replace("]]>", "]]]]><![CDATA[>").chars().map(markup::printable).collect();
        self.out.push_str(&text);
        self.out.push_str("]]></ac:plain-text-body></ac:structured-macro>");
    }

    /// Writes a list. Consecutive items with or without a checkbox form one list each.
    fn list(&mut self, start: Option<u64>, items: &[Item]) {
        let mut number = start;
        for group in items.chunk_by(|a, b| a.checked.is_some() == b.checked.is_some()) {
            if group[0].checked.is_some() {
                self.tasks(group);
            } else {
                self.items(number, group);
            }
            number = number.map(|number| number.saturating_add(group.len() as u64));
        }
    }

    fn items(&mut self, start: Option<u64>, items: &[Item]) {
        let tag = if start.is_some() { "ol" } else { "ul" };
        self.out.extend(["<", tag]);
        if let Some(start) = start.filter(|start| *start != 1) {
            markup::attribute("start", &start.to_string(), &mut self.out);
        }
        self.out.push('>');
        for item in items {
            self.enclosed("li", &item.blocks);
        }
        self.out.extend(["</", tag, ">"]);
    }

    fn tasks(&mut self, items: &[Item]) {
        self.out.push_str("<ac:task-list>");
        for item in items {
            self.tasks += 1;
            let status = if item.checked == Some(true) { "complete" } else { "incomplete" };
            let id = self.tasks.to_string();
            self.out.extend(["<ac:task><ac:task-id>", &id, "</ac:task-id><ac:task-status>", status]);
            self.out.push_str("</ac:task-status><ac:task-body>");
            match item.blocks.split_first() {
                Some((DocumentBlock::Paragraph(text), rest)) => {
                    self.inlines(text);
                    self.blocks(rest);
                }
                _ => self.blocks(&item.blocks),
            }
            self.out.push_str("</ac:task-body></ac:task>");
        }
        self.out.push_str("</ac:task-list>");
    }

    fn table(&mut self, head: &[Cell], rows: &[Vec<Cell>]) {
        self.out.push_str("<table><tbody>");
        if head.iter().any(|cell| !cell.is_empty()) {
            self.row("th", head);
        }
        for row in rows {
            self.row("td", row);
        }
        self.out.push_str("</tbody></table>");
    }

    fn row(&mut self, tag: &str, cells: &[Cell]) {
        self.out.push_str("<tr>");
        for cell in cells {
            self.line(tag, cell);
        }
        self.out.push_str("</tr>");
    }

    fn inlines(&mut self, line: &[Inline]) {
        for group in line.chunk_by(|a, b| a.style.link == b.style.link) {
            match group[0].style.link.as_deref() {
                None => self.pieces(group),
                Some(url) => self.link(url, group),
            }
        }
    }

    fn pieces(&mut self, pieces: &[Inline]) {
        for piece in pieces {
            markup::marked(piece.style.marks, &mut self.out, |out| match &piece.kind {
                InlineKind::Text(words) => markup::text(words, out),
                InlineKind::Break => out.push_str("<br/>"),
                InlineKind::Math(words) => {
                    out.push('$');
                    markup::text(words, out);
                    out.push('$');
                }
                InlineKind::Image { alt, url } => image(alt, url, out),
            });
        }
    }

    fn link(&mut self, url: &str, pieces: &[Inline]) {
        let (target, anchor) = url.split_once('#').unwrap_or((url, ""));
        let Some(resource) = resource(target) else {
            self.out.push_str("<a");
            markup::attribute("href", url, &mut self.out);
            self.out.push('>');
            self.pieces(pieces);
            return self.out.push_str("</a>");
        };
        self.out.push_str("<ac:link");
        if !anchor.is_empty() {
            markup::attribute("ac:anchor", anchor, &mut self.out);
        }
        self.out.extend([">", &resource, "<ac:link-body>"]);
        self.pieces(pieces);
        self.out.push_str("</ac:link-body></ac:link>");
    }
}

fn image(alt: &str, url: &str, out: &mut String) {
    out.push_str("<ac:image");
    if !alt.is_empty() {
        markup::attribute("ac:alt", alt, out);
    }
    out.push('>');
    match resource(url) {
        Some(resource) => out.push_str(&resource),
        None => {
            out.push_str("<ri:url");
            markup::attribute("ri:value", url, out);
            out.push_str("/>");
        }
    }
    out.push_str("</ac:image>");
}

/// Returns the resource element of a URL with a Confluence scheme.
fn resource(url: &str) -> Option<String> {
    let (scheme, name) = url.split_once(':').filter(|(_, name)| !name.is_empty())?;
    let (tag, attributes) = match scheme {
        "attachment" => ("ri:attachment", vec![("ri:filename", name.to_owned())]),
        "user" => ("ri:user", vec![("ri:account-id", name.to_owned())]),
        "space" => ("ri:space", vec![("ri:space-key", name.to_owned())]),
        "content" => ("ri:content-entity", vec![("ri:content-id", name.to_owned())]),
        "page" => match name.split_once('/') {
            Some((space, title)) => {
                ("ri:page", vec![("ri:space-key", space.to_owned()), ("ri:content-title", unescape(title))])
            }
            None => ("ri:page", vec![("ri:content-title", unescape(name))]),
        },
        "blog" => {
            let (space, rest) = name.split_once('/')?;
            let (day, title) = rest.split_once('/')?;
            let day = day.replace('-', "/");
            let space = ("ri:space-key", space.to_owned());
            ("ri:blog-post", vec![space, ("ri:posting-day", day), ("ri:content-title", unescape(title))])
        }
        _ => return None,
    };
    let mut out = format!("<{tag}");
    for (name, value) in attributes.iter().filter(|(_, value)| !value.is_empty()) {
        markup::attribute(name, value, &mut out);
    }
    out.push_str("/>");
    Some(out)
}
