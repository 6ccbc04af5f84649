//! Writes inline content as ADF nodes.

use serde_json::{Value, json};

use super::super::super::markdown::{Inline, InlineKind, Marks, plain};

pub(super) fn nodes(line: &[Inline]) -> Vec<Value> {
    let mut nodes = Vec::new();
    for group in line.chunk_by(|a, b| a.style.link.is_some() && a.style.link == b.style.link) {
        match mention(group) {
            Some(mention) => nodes.push(mention),
            None => nodes.extend(group.iter().filter_map(node)),
        }
    }
    nodes
}

/// Converts a `user:` link to a mention.
fn mention(pieces: &[Inline]) -> Option<Value> {
    let id = pieces[0].style.link.as_deref()?.strip_prefix("user:").filter(|id| !id.is_empty())?;
    let text = plain(pieces);
    text.starts_with('@').then(|| json!({ "type": "mention", "attrs": { "id": id, "text": text } }))
}

fn node(piece: &Inline) -> Option<Value> {
    match &piece.kind {
        InlineKind::Text(text) if text.is_empty() => None,
        InlineKind::Text(text) => Some(text_node(text, piece)),
        InlineKind::Break => Some(json!({ "type": "hardBreak" })),
        InlineKind::Math(text) => Some(text_node(&format!("${text}$"), piece)),
        InlineKind::Image { alt, url } => Some(inline_image(alt, url, piece)),
    }
}

fn text_node(text: &str, piece: &Inline) -> Value {
    let marks = marks(piece);
    if marks.is_empty() {
        return json!({ "type": "text", "text": text });
    }
    json!({ "type": "text", "text": text, "marks": marks })
}

/// Returns the marks of a piece. Code allows no other mark but a link.
fn marks(piece: &Inline) -> Vec<Value> {
    let mut marks = Vec::new();
    let has = |mark| piece.style.marks.has(mark);
    if has(Marks::CODE) {
        marks.push(json!({ "type": "code" }));
    } else {
        let names = [
            (Marks::STRONG, "strong"),
            (Marks::EMPHASIS, "em"),
            (Marks::STRIKE, "strike"),
            (Marks::UNDERLINE, "underline"),
        ];
        marks.extend(names.iter().filter(|(mark, _)| has(*mark)).map(|(_, name)| json!({ "type": name })));
        let script = match (has(Marks::SUBSCRIPT), has(Marks::SUPERSCRIPT)) {
            (true, _) => Some("sub"),
            (false, true) => Some("sup"),
            _ => None,
        };
        marks.extend(script.map(|script| json!({ "type": "subsup", "attrs": { "type": script } })));
    }
    marks.extend(link(piece));
    marks
}

fn link(piece: &Inline) -> Option<Value> {
    let url = piece.style.link.as_deref()?;
    Some(json!({ "type": "link", "attrs": { "href": url } }))
}

/// Parses the id and the collection of a file that Atlassian stores.
fn file(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("media:")?.split_once('/').filter(|(id, _)| !id.is_empty())
}

/// Converts an image to a media block, if possible.
pub(super) fn media(piece: &Inline) -> Option<Value> {
    let InlineKind::Image { alt, url } = &piece.kind else { return None };
    let mut attributes = match file(url) {
        Some((id, collection)) => json!({ "type": "file", "id": id, "collection": collection }),
        None if url.starts_with("https://") || url.starts_with("http://") => {
            json!({ "type": "external", "url": url })
        }
        None => return None,
    };
    if !alt.is_empty() {
        attributes["alt"] = json!(alt);
    }
    let mut media = json!({ "type": "media", "attrs": attributes });
    if let Some(link) = link(piece) {
        media["marks"] = json!([link]);
    }
    Some(media)
}

/// Converts an image inside a line: a stored file becomes inline media, anything else a link.
fn inline_image(alt: &str, url: &str, piece: &Inline) -> Value {
    if let Some((id, collection)) = file(url) {
        return json!({ "type": "mediaInline", "attrs": { "type": "image", "id": id, "collection": collection, "alt": alt } });
    }
    let shown = [alt, url].into_iter().find(|text| !text.is_empty()).unwrap_or("image");
    let leads = if piece.style.link.is_none() { Inline::text(shown, &piece.style.to(url)) } else { piece.clone() };
    text_node(shown, &leads)
}
