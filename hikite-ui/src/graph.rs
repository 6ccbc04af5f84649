//! The task graph of a batch as SVG: waves from left to right, with edges to dependent tasks.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::Value;

use hikite_core::html::escape;

const NODE_WIDTH: usize = 168;
const NODE_HEIGHT: usize = 44;
const COLUMN_GAP: usize = 56;
const ROW_GAP: usize = 16;
/// Maximum number of tasks in a readable graph.
const TASKS_MAX: usize = 200;

/// A task with its dependencies and its status.
#[derive(Clone, Debug, Default)]
pub(crate) struct GraphNode {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) after: Vec<String>,
    pub(crate) status: String,
}

/// Returns the waves of a dry-run response.
pub(crate) fn waves(preview: &Value) -> Vec<Vec<String>> {
    let waves = preview.get("waves").and_then(Value::as_array).into_iter().flatten();
    let ids = |wave: &Value| {
        let ids = wave.as_array().into_iter().flatten();
        ids.filter_map(|id| Some(id.as_str()?.to_owned())).collect()
    };
    waves.map(ids).collect()
}

/// Renders the graph; empty without tasks or with too many.
pub(crate) fn draw(title: &str, waves: &[Vec<String>], nodes: &[GraphNode]) -> String {
    let count: usize = waves.iter().map(Vec::len).sum();
    if count == 0 || count > TASKS_MAX {
        return String::new();
    }
    let rows = waves.iter().map(Vec::len).max().unwrap_or(1);
    let (width, height) =
        (waves.len() * (NODE_WIDTH + COLUMN_GAP) - COLUMN_GAP + 4, rows * (NODE_HEIGHT + ROW_GAP) - ROW_GAP + 4);
    let mut places = HashMap::new();
    for (column, wave) in waves.iter().enumerate() {
        for (row, id) in wave.iter().enumerate() {
            places.insert(id.as_str(), (2 + column * (NODE_WIDTH + COLUMN_GAP), 2 + row * (NODE_HEIGHT + ROW_GAP)));
        }
    }
    let mut out = format!(
        "<svg class=\"graph\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    );
    for node in nodes {
        let Some((x, y)) = places.get(node.id.as_str()).copied() else { continue };
        for (from_x, from_y) in node.after.iter().filter_map(|id| places.get(id.as_str()).copied()) {
            let (from, to, middle) = (from_x + NODE_WIDTH, x, usize::midpoint(from_x + NODE_WIDTH, x));
            let _ = write!(
                out,
                "<path class=\"edge\" d=\"M{from} {} C{middle} {} {middle} {} {to} {}\"/>",
                from_y + NODE_HEIGHT / 2,
                from_y + NODE_HEIGHT / 2,
                y + NODE_HEIGHT / 2,
                y + NODE_HEIGHT / 2
            );
        }
    }
    for node in nodes {
        let Some((x, y)) = places.get(node.id.as_str()).copied() else { continue };
        let _ = write!(
            out,
            "<g class=\"task\" data-task=\"{id}\" data-status=\"{status}\"><title>{id} · {tool} · {status}</title>\
             <rect x=\"{x}\" y=\"{y}\" width=\"{NODE_WIDTH}\" height=\"{NODE_HEIGHT}\" rx=\"6\"/>\
             <text class=\"id\" x=\"{text}\" y=\"{first}\">{shown}</text>\
             <text class=\"tool\" x=\"{text}\" y=\"{second}\">{short}</text></g>",
            id = escape(&node.id),
            tool = escape(&node.tool),
            status = escape(&node.status),
            shown = escape(&cut(&node.id)),
            short = escape(&cut(&node.tool)),
            text = x + 10,
            first = y + 18,
            second = y + 35,
        );
    }
    out.push_str("</svg>");
    out
}

fn cut(text: &str) -> String {
    const CHARS: usize = 22;
    if text.chars().count() <= CHARS {
        return text.to_owned();
    }
    text.chars().take(CHARS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_task_and_every_line_between_tasks_is_drawn() {
        let waves = waves(&json!({ "waves": [["a", "b"], ["c"]] }));
        let node = |id: &str, after: &[&str]| GraphNode {
            id: id.into(),
            tool: "m:t".into(),
            after: after.iter().map(|id| (*id).to_owned()).collect(),
            status: "ok".into(),
        };
        let drawn = draw("x", &waves, &[node("a", &[]), node("b", &[]), node("c", &["a", "b"])]);
        assert_eq!((drawn.matches("class=\"task\"").count(), drawn.matches("class=\"edge\"").count()), (3, 2));
        assert_eq!(draw("x", &[], &[]), "");
    }

    #[test]
    fn no_name_becomes_a_mark() {
        let evil = "\"><script>alert(1)</script>";
        let node = GraphNode { id: evil.into(), tool: evil.into(), after: vec![evil.into()], status: evil.into() };
        assert!(!draw(evil, &[vec![evil.to_owned()]], &[node]).contains("<script"));
    }
}
