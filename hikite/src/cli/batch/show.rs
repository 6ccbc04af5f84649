//! Formats the results or the preview of a batch as text.

use std::fmt::Write;

use serde_json::Value;

/// Formats every task with its status and result, and a last line with counts.
pub(super) fn report(document: &Value) -> String {
    let tasks = items(&document["tasks"]);
    let wide = tasks.iter().map(|task| chars(&task["id"])).max().unwrap_or_default();
    let mut out = String::new();
    for task in tasks {
        let (id, status) = (text(&task["id"]), text(&task["status"]));
        let _ = write!(out, "{id:wide$}  {status}");
        match task["cause"].as_str() {
            Some("if") => out.push_str("  its `if` is false"),
            Some(cause) => {
                let _ = write!(out, "  because of `{cause}`");
            }
            None => {
                let _ = write!(out, "  {} ms", task["ms"]);
            }
        }
        if let Some(error) = task.get("error") {
            let _ = write!(out, "\n  {}: {}", text(&error["code"]), indented(text(&error["message"])));
            if let Some(hint) = error["hint"].as_str() {
                let _ = write!(out, "\n  hint: {hint}");
            }
        }
        match task.get("result") {
            Some(Value::String(result)) => {
                let _ = write!(out, "\n  {}", indented(result));
            }
            Some(result) => {
                let _ = write!(out, "\n  {}", indented(&format!("{result:#}")));
            }
            None => {}
        }
        out.push('\n');
    }
    let counts = document["summary"].as_object().into_iter().flatten();
    let counts = counts.filter(|(_, count)| count.as_u64() != Some(0));
    let counts: Vec<String> = counts.map(|(status, count)| format!("{count} {status}")).collect();
    let _ = write!(out, "{} tasks: {}", tasks.len(), counts.join(", "));
    out
}

/// Formats the tasks that would run, wave by wave.
pub(super) fn preview(document: &Value) -> String {
    let tasks = items(&document["tasks"]);
    let wide = |name: &str| tasks.iter().map(|task| chars(&task[name])).max().unwrap_or_default();
    let (ids, tools, risks) = (wide("id"), wide("tool"), wide("risk"));
    let mut out = String::new();
    for number in 0..items(&document["waves"]).len() {
        let _ = writeln!(out, "wave {}", number + 1);
        for task in tasks.iter().filter(|task| task["wave"].as_u64() == u64::try_from(number).ok()) {
            let (id, tool, risk) = (text(&task["id"]), text(&task["tool"]), text(&task["risk"]));
            let _ = write!(out, "  {id:ids$}  {tool:tools$}  {risk:risks$}  {}", task["params"]);
            let after: Vec<&str> = items(&task["after"]).iter().map(text).collect();
            if !after.is_empty() {
                let _ = write!(out, "  after {}", after.join(", "));
            }
            out.push('\n');
        }
    }
    let _ = write!(out, "{} tasks; nothing was run", tasks.len());
    out
}

/// Indents all lines but the first.
fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { String::new() } else { format!("  {line}") };
    let mut lines = text.trim_end().lines();
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |all, next| all + "\n" + &line(next))
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn chars(value: &Value) -> usize {
    text(value).chars().count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_task_is_told_with_what_it_gave() {
        let error = json!({ "code": "TOOL_EXECUTION_ERROR", "message": "no such page", "hint": "look again" });
        let document = json!({
            "tasks": [
                { "id": "検索", "status": "ok", "result": "a: 1\nb: 2", "ms": 12.3 },
                { "id": "page", "status": "error", "error": error, "ms": 40 },
                { "id": "later", "status": "skipped", "cause": "page", "ms": 0 },
                { "id": "never", "status": "skipped", "cause": "if", "ms": 0 },
                { "id": "raw", "status": "ok", "result": { "n": [1] }, "ms": 1 },
            ],
            "summary": { "ok": 2, "error": 1, "skipped": 2, "timeout": 0, "cancelled": 0 },
        });
        insta::assert_snapshot!(report(&document));
    }

    #[test]
    fn what_would_run_is_told_wave_by_wave() {
        let document = json!({
            "waves": [["search"], ["page"]],
            "tasks": [
                { "id": "search", "tool": "notion:search", "wave": 0, "risk": "read", "params": { "query": "設計" }, "after": [] },
                { "id": "page", "tool": "notion:delete_page", "wave": 1, "risk": "destructive", "params": {}, "after": ["search"] },
            ],
        });
        insta::assert_snapshot!(preview(&document));
    }
}
