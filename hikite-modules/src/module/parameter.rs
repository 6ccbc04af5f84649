//! Parameters of a tool as JSON Schema: those of its groups, its own, and those for pagination.

use hikite_core::suggestion::did_you_mean;
use serde_json::{Map, Value, json};

use super::page::Paginator;
use crate::file::{GroupNames, ModuleFile, NamedMap, ServiceToolFile};

/// Default of `max_items` with `fetch_all`.
pub(crate) const ITEMS: u64 = 1000;
/// Maximum of `max_items`.
pub(crate) const ITEMS_MAX: u64 = 10_000;
/// Parameter that selects one of several sites.
pub(crate) const SITE: &str = "site";

/// Builds the schema of a tool's arguments. Returns all violations by parameter name.
pub(crate) fn schema(
    file: &ModuleFile,
    tool: &ServiceToolFile,
    pager: Option<(&Paginator, u64)>,
) -> Result<Value, Vec<(String, String)>> {
    let (mut properties, mut required, mut faults) = (Map::new(), Vec::new(), Vec::new());
    let mut add = |params: &NamedMap<Value>| {
        for (name, written) in params.iter() {
            match property(written) {
                Ok((schema, needed)) => {
                    properties.insert(name.to_owned(), schema);
                    required.extend(needed.then(|| name.to_owned()));
                }
                Err(wrong) => faults.push((name.to_owned(), wrong)),
            }
        }
    };
    let groups = match &tool.group {
        None => &[][..],
        Some(GroupNames::One(name)) => std::slice::from_ref(name),
        Some(GroupNames::Several(names)) => names,
    };
    let mut unknown = Vec::new();
    for name in groups {
        match file.groups.get(name) {
            Some(group) => add(group),
            None => {
                let near = did_you_mean(name, file.groups.names()).unwrap_or_default();
                unknown.push((name.clone(), format!("`{name}` is not a group. {near}")));
            }
        }
    }
    add(&tool.params);
    faults.extend(unknown);
    if let Some((pager, default)) = pager {
        paging(&mut properties, pager.max, default);
    }
    if file.resolve.names().next().is_some() {
        let words = "Which site, if the account has several (name or host)";
        properties.insert(SITE.into(), json!({ "type": "string", "description": words }));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    Ok(schema)
}

fn paging(properties: &mut Map<String, Value>, max: u64, default: u64) {
    let added = [
        (
            "page_size",
            json!({ "type": "integer", "minimum": 1, "maximum": max, "description": format!("Default {}", default.min(max)) }),
        ),
        ("fetch_all", json!({ "type": "boolean", "default": false, "description": "All pages" })),
        (
            "max_items",
            json!({ "type": "integer", "minimum": 1, "maximum": ITEMS_MAX, "description": format!("With fetch_all; default {ITEMS}") }),
        ),
        ("cursor", json!({ "type": "string", "description": "`next_cursor` of the last response" })),
    ];
    for (name, schema) in added {
        properties.entry(name.to_owned()).or_insert(schema);
    }
}

/// Parses one parameter: `"string! | What it is"` or a JSON Schema.
fn property(written: &Value) -> Result<(Value, bool), String> {
    match written {
        Value::String(short) => parse_short(short),
        Value::Object(members) => {
            let mut members = members.clone();
            let required = match members.remove("required") {
                None => false,
                Some(Value::Bool(required)) => required,
                // The required members of an object schema.
                Some(names) => {
                    members.insert("required".into(), names);
                    false
                }
            };
            let texts = members.get("enum").and_then(Value::as_array);
            if texts.is_some_and(|options| options.iter().all(Value::is_string)) && !members.contains_key("type") {
                members.insert("type".into(), json!("string"));
            }
            Ok((Value::Object(members), required))
        }
        _ => Err("a parameter must be `\"string! | Description\"` or a JSON Schema".into()),
    }
}

fn parse_short(short: &str) -> Result<(Value, bool), String> {
    const TYPES: [&str; 5] = ["string", "integer", "number", "boolean", "object"];
    let (kind, words) = short.split_once('|').map_or((short, ""), |(kind, words)| (kind, words));
    let (kind, required) = kind.trim().strip_suffix('!').map_or((kind.trim(), false), |kind| (kind, true));
    let (kind, list) = kind.strip_suffix("[]").map_or((kind, false), |kind| (kind, true));
    if !TYPES.contains(&kind) {
        return Err(format!("`{kind}` is not a type; use one of {}", TYPES.join(", ")));
    }
    let mut schema = if list { json!({ "type": "array", "items": { "type": kind } }) } else { json!({ "type": kind }) };
    if !words.trim().is_empty() {
        schema["description"] = json!(words.trim());
    }
    Ok((schema, required))
}
