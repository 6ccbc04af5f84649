//! Macros. Those with a Markdown equivalent are converted; all others are shown by name with their parameters and
//! content.

use super::super::html::MarkupWalker;
use super::super::markdown::{Callout, DocumentBlock, Inline, InlineStyle, Marks};
use super::super::markup::Element;
use super::link;

pub(super) fn element(walk: &mut MarkupWalker, element: &Element, style: &InlineStyle) {
    let name = element.attribute("ac:name").to_ascii_lowercase();
    let body = element.child("ac:rich-text-body");
    let text = element.child("ac:plain-text-body").map(Element::text);
    match name.as_str() {
        "code" | "noformat" => {
            title(walk, element);
            let language = parameter(element, "language");
            let text = text.or_else(|| body.map(Element::text)).unwrap_or_default();
            walk.push(DocumentBlock::Code { language, text: text.trim_matches('\n').to_owned() });
        }
        "info" | "tip" | "note" | "warning" | "panel" | "expand" if walk.is_too_deep() => {
            title(walk, element);
            rest(walk, element, style);
        }
        "info" => callout(walk, element, Callout::Note, style),
        "tip" => callout(walk, element, Callout::Tip, style),
        "note" => callout(walk, element, Callout::Warning, style),
        "warning" => callout(walk, element, Callout::Caution, style),
        "panel" => {
            let blocks = titled_body(walk, element, style);
            walk.push(DocumentBlock::Quote(blocks));
        }
        "expand" => {
            let summary = vec![Inline::text(parameter(element, "title"), &InlineStyle::default())];
            let blocks = body_blocks(walk, element, style);
            walk.push(DocumentBlock::Details { summary, blocks });
        }
        "status" => {
            let shown = [parameter(element, "title"), parameter(element, "colour")];
            let shown = shown.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
            walk.text(&shown, &style.marked(Marks::CODE));
        }
        "toc" => walk.push(DocumentBlock::words("[TOC]")),
        "anchor" => {}
        "excerpt" | "section" | "column" | "div" | "span" | "details" => {
            title(walk, element);
            rest(walk, element, style);
        }
        "jira" if !parameter(element, "key").is_empty() => walk.text(&parameter(element, "key"), style),
        _ => unknown(walk, element, &name, style),
    }
}

fn unknown(walk: &mut MarkupWalker, element: &Element, name: &str, style: &InlineStyle) {
    let parameters: Vec<String> = element
        .elements()
        .filter(|child| child.name == "ac:parameter")
        .map(|child| (child.attribute("ac:name"), value(child)))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| if name.is_empty() { value } else { format!("{name}={value}") })
        .collect();
    let colon = if parameters.is_empty() { "" } else { ": " };
    let shown = format!("[{name}{colon}{}]", parameters.join(", "));
    let holds = ["ac:rich-text-body", "ac:plain-text-body"].iter().any(|body| element.child(body).is_some());
    if !holds {
        return walk.text(&shown, style);
    }
    walk.push(DocumentBlock::words(shown));
    if let Some(text) = element.child("ac:plain-text-body") {
        let text = text.text().trim_matches('\n').to_owned();
        walk.push(DocumentBlock::Code { language: String::new(), text });
    }
    if let Some(body) = element.child("ac:rich-text-body") {
        walk.section(body, style);
    }
}

fn callout(walk: &mut MarkupWalker, element: &Element, kind: Callout, style: &InlineStyle) {
    let blocks = titled_body(walk, element, style);
    walk.push(DocumentBlock::Callout { kind, blocks });
}

/// Returns the title of a macro in bold, followed by its content.
fn titled_body(walk: &MarkupWalker, element: &Element, style: &InlineStyle) -> Vec<DocumentBlock> {
    let title = parameter(element, "title");
    let strong = InlineStyle::default().marked(Marks::STRONG);
    let title = (!title.is_empty()).then(|| DocumentBlock::Paragraph(vec![Inline::text(title, &strong)]));
    title.into_iter().chain(body_blocks(walk, element, style)).collect()
}

fn body_blocks(walk: &MarkupWalker, element: &Element, style: &InlineStyle) -> Vec<DocumentBlock> {
    let bodies = element.elements().filter(|child| child.name.ends_with("-body"));
    bodies.flat_map(|body| walk.inside(&body.children, style)).collect()
}

fn title(walk: &mut MarkupWalker, element: &Element) {
    let title = parameter(element, "title");
    if !title.is_empty() {
        walk.flush();
        walk.text(&title, &InlineStyle::default().marked(Marks::STRONG));
        walk.flush();
    }
}

/// Writes the content of a macro without its parameters.
fn rest(walk: &mut MarkupWalker, element: &Element, style: &InlineStyle) {
    for body in element.elements().filter(|child| child.name.ends_with("-body")) {
        walk.section(body, style);
    }
}

/// Returns a parameter, or an empty string.
fn parameter(element: &Element, name: &str) -> String {
    let is_it = |child: &&Element| child.name == "ac:parameter" && child.attribute("ac:name") == name;
    element.elements().find(is_it).map(value).unwrap_or_default()
}

/// Returns the text of a parameter, or the resource that it names.
fn value(parameter: &Element) -> String {
    let text = parameter.text().trim().to_owned();
    if !text.is_empty() {
        return text;
    }
    resource(parameter).unwrap_or_default()
}

fn resource(element: &Element) -> Option<String> {
    element.elements().find_map(|child| link::address(child).or_else(|| resource(child)))
}
