//! Converts the variables of other clients: `${env:X}`, `${input:x}`, `${userHome}`, `${workspaceFolder}` and
//! Windsurf's `${file:path}`.

use serde_json::{Value, json};

/// Rewrites every string in `value`, and notes what needs action. `root` holds VS Code's `inputs`.
pub(crate) fn rewrite(value: &mut Value, note: &mut dyn FnMut(String), root: &Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite(item, note, root)),
        Value::Object(members) => members.values_mut().for_each(|member| rewrite(member, note, root)),
        Value::String(text) => {
            if let Some(file) = text.strip_prefix("${file:").and_then(|rest| rest.strip_suffix('}')) {
                *value = json!({ "file": file });
            } else {
                *text = rewritten(text, note, root);
            }
        }
        _ => {}
    }
}

fn rewritten(text: &str, note: &mut dyn FnMut(String), root: &Value) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, (variable, after))) =
        rest.split_once("${").and_then(|(before, after)| Some((before, after.split_once('}')?)))
    {
        out.push_str(before);
        let name = match variable.split_once(':') {
            Some(("env", name)) => name.to_owned(),
            Some(("input", id)) => renamed(variable, id, &description(root, id), note),
            _ if variable == "userHome" => "HOME".into(),
            _ if variable.starts_with("workspaceFolder") => renamed(variable, "WORKSPACE_FOLDER", "", note),
            _ => variable.to_owned(),
        };
        out.push_str("${");
        out.push_str(&name);
        out.push('}');
        rest = after;
    }
    out + rest
}

fn renamed(variable: &str, id: &str, description: &str, note: &mut dyn FnMut(String)) -> String {
    let name: String =
        id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    let name = if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name };
    note(format!("`${{{variable}}}`{description} is now `${{{name}}}`; set it in the environment"));
    name
}

/// Returns the prompt of a VS Code input, in parentheses.
fn description(root: &Value, id: &str) -> String {
    let inputs = ["/inputs", "/mcp/inputs"].into_iter().filter_map(|place| root.pointer(place)?.as_array());
    let input = inputs.flatten().find(|input| input.get("id").and_then(Value::as_str) == Some(id));
    let text = input.and_then(|input| input.get("description")?.as_str());
    text.map(|text| format!(" ({text})")).unwrap_or_default()
}
