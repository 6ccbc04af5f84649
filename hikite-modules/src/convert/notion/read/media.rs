//! Blocks that refer to something elsewhere: files, links, other pages. They become links or images.

use serde_json::Value;

use super::super::super::markdown::{Inline, InlineKind, InlineStyle};
use super::super::rich_text;

/// Returns the line for a block of such a kind, else `None`.
pub(super) fn line(kind: &str, body: &Value, block: &Value) -> Option<Vec<Inline>> {
    let id = block["id"].as_str().unwrap_or_default();
    let plain = InlineStyle::default();
    Some(match kind {
        "image" => {
            let alt = rich_text::words(&body["caption"]);
            vec![Inline::new(InlineKind::Image { alt, url: file(body) }, &plain)]
        }
        "video" | "audio" | "file" | "pdf" => {
            let name = body["name"].as_str().unwrap_or_default();
            let url = file(body);
            let mut line = vec![Inline::link(format!("{kind} {name}").trim_end(), &url)];
            push_caption(body, &mut line);
            line
        }
        "bookmark" | "embed" | "link_preview" => {
            let url = body["url"].as_str().unwrap_or_default();
            let mut line = vec![Inline::link(if url.is_empty() { kind } else { url }, url)];
            push_caption(body, &mut line);
            line
        }
        "link_to_page" => {
            let target = ["page_id", "database_id", "comment_id"];
            let target = target.iter().find_map(|name| body[name].as_str()).unwrap_or_default();
            vec![Inline::link(format!("{kind} {target}"), &rich_text::address(target))]
        }
        "child_page" | "child_database" => {
            let sign = if kind == "child_page" { "📄" } else { "🗃️" };
            let title = body["title"].as_str().unwrap_or_default();
            vec![Inline::link(format!("{sign} {title}"), &rich_text::address(id))]
        }
        _ => return None,
    })
}

fn push_caption(body: &Value, line: &mut Vec<Inline>) {
    let caption = rich_text::line(&body["caption"]);
    if !caption.is_empty() {
        line.push(Inline::text(" ", &InlineStyle::default()));
        line.extend(caption);
    }
}

/// Returns the URL of a file, or its id if it has none yet.
fn file(body: &Value) -> String {
    let url = ["external", "file"].iter().find_map(|name| body[name]["url"].as_str());
    url.or_else(|| body["file_upload"]["id"].as_str()).unwrap_or_default().to_owned()
}
