//! The `categories` surface: one tool that lists the tools of a category, and one that runs them.

use std::fmt::Write;

use hikite_core::category::Category;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::tool_selection::ToolRef;
use hikite_core::view::View;
use serde_json::json;

use super::argument::with_schema;
use super::{arguments, document};
use crate::accounts::selection::with_account;
use crate::command::{CallOptions, Command, ToolTarget};

const GET: &str = "get-category-tools";
const CALL: &str = "call-category-tool";
/// Maximum length of a description in the menu, which every conversation pays for.
const DESCRIPTION_CHARS: usize = 200;

pub(super) const INSTRUCTIONS: &str = "Tools are grouped into categories. Call `get-category-tools` with a \
    category to see its tools and their input schemas, then run one with `call-category-tool`.";

pub(super) fn tools(view: &View) -> Vec<Raw> {
    let names: Vec<&str> = view.categories().iter().map(|category| &*category.rule.name).collect();
    let category = json!({ "type": "string", "description": "Name of the category", "enum": names });
    let get = json!({
        "name": GET,
        "title": "Show the tools of a category",
        "description": menu(view),
        "inputSchema": {
            "type": "object",
            "properties": {
                "category": category,
                "toolNames": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Only these tools of the category; default: all",
                },
            },
            "required": ["category"],
        },
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false },
    });
    let call = json!({
        "name": CALL,
        "title": "Run a tool of a category",
        "description": "Runs one tool of a category and returns its result unchanged.\n\
            1. Load the category with `get-category-tools` to learn its tools and their input schemas.\n\
            2. Call this tool with the category, the tool's name and `args` that follow its input schema.",
        "inputSchema": call_schema(&category),
    });
    vec![Raw::of(&get), Raw::of(&call)]
}

fn call_schema(category: &serde_json::Value) -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {
            "category": category,
            "name": { "type": "string", "description": "Name of the tool in this category" },
            "args": {
                "type": "object",
                "description": "Arguments matching the tool's input schema; {} for none",
                "additionalProperties": true,
            },
            "account": { "type": "string", "description": "Account to use if a service has several" },
        },
        "required": ["category", "name", "args"],
    })
}

fn menu(view: &View) -> String {
    let mut text = "Shows the tools of one category with their input schemas. \
        Load a category before you use it, then run its tools with `call-category-tool`.\n\nCategories:"
        .to_owned();
    for category in view.categories() {
        let description = one_line(&category.rule.description);
        let _ = write!(text, "\n- {}: {description}", category.rule.name);
    }
    text
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(DESCRIPTION_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Translates a call; returns `None` if the name is not one of this surface's two tools.
pub(super) fn translate(name: &str, params: &Object) -> Option<Result<Command, Error>> {
    match name {
        GET => Some(translate_get(params).map_err(with_schema(|| {
            json!({
                "type": "object",
                "properties": {
                    "category": { "type": "string" },
                    "toolNames": { "type": "array", "items": { "type": "string" } },
                },
                "required": ["category"],
            })
        }))),
        CALL => {
            let schema = || call_schema(&json!({ "type": "string" }));
            Some(translate_call(params).map_err(with_schema(schema)))
        }
        _ => None,
    }
}

fn translate_get(params: &Object) -> Result<Command, Error> {
    let arguments = arguments(params.get("arguments"))?;
    let names = match arguments.get("toolNames").filter(|names| !names.is_null()) {
        None => None,
        Some(names) => Some(names.decode::<Vec<String>>().map_err(|_| wrong("toolNames", "an array of strings"))?),
    };
    Ok(Command::Describe { category: string(&arguments, "category")?, names })
}

fn translate_call(params: &Object) -> Result<Command, Error> {
    let own = arguments(params.get("arguments"))?;
    let target = ToolTarget::InCategory { category: string(&own, "category")?, name: string(&own, "name")? };
    let args = arguments(own.get("args")).map_err(|_| wrong("args", "a JSON object"))?;
    let account = match own.get("account").filter(|account| !account.is_null()) {
        None => None,
        Some(_) => Some(string(&own, "account")?),
    };
    // Other members of the request, such as `_meta`, are passed along.
    Ok(Command::Call {
        target,
        params: with_account(params.clone().with("arguments", args), account.as_deref()),
        options: CallOptions::default(),
    })
}

fn string(arguments: &Object, name: &str) -> Result<String, Error> {
    arguments.text(name).filter(|text| !text.is_empty()).ok_or_else(|| wrong(name, "a string"))
}

fn wrong(name: &str, form: &str) -> Error {
    Error::new(ErrorKind::Validation, format!("`{name}` must be {form}."))
}

/// Builds the result of `get-category-tools`.
pub(crate) fn describe(category: &Category, names: Option<&[String]>) -> Result<Raw, Error> {
    let rule = &category.rule;
    if category.missing.len() == rule.servers.len() {
        return Err(Error::new(
            ErrorKind::UpstreamUnavailable,
            format!(
                "No server of the category `{}` has returned its tool list: {}.",
                rule.name,
                rule.servers.join(", ")
            ),
        )
        .named("UpstreamUnavailable")
        .hint("Try again in a moment, or use another category. `hikite doctor` shows the reason."));
    }
    let mut tools = Object::default();
    let wanted: Option<Vec<ToolRef>> =
        names.map(|names| names.iter().map(|name| ToolRef::parse(name, &rule.servers)).collect());
    for entry in category.enabled() {
        let asked = wanted.as_ref().zip(names).is_none_or(|(wanted, names)| {
            names.iter().any(|name| **name == *entry.name)
                || wanted.iter().any(|name| name.matches(&entry.key.module, &entry.key.tool))
        });
        if asked {
            tools.set(&entry.name, entry.definition.clone());
        }
    }
    let body = Object::default().with("tools", tools).with("meta", meta(category, names));
    Ok(document(&body))
}

fn meta(category: &Category, names: Option<&[String]>) -> Object {
    let rule = &category.rule;
    let server = match rule.servers.as_slice() {
        [only] => Raw::of(&**only),
        several => Raw::of(&several.iter().map(|server| &**server).collect::<Vec<_>>()),
    };
    let mut meta = Object::default().with("category", &*rule.name).with("sourceServer", server);
    let unavailable = unavailable(category, names);
    if !unavailable.is_empty() {
        meta.set("unavailableTools", Raw::of(&unavailable));
    }
    if let Some(skill) = &rule.skill {
        meta.set("skill", skill.as_str());
    }
    meta
}

/// Returns the requested names, or those of the category's rule, that no server offers now. Disabled tools are not
/// included.
fn unavailable(category: &Category, names: Option<&[String]>) -> Vec<String> {
    use hikite_core::category::CategoryLookup;
    match names {
        Some(names) => names
            .iter()
            .filter(|name| {
                matches!(
                    category.find(name),
                    CategoryLookup::Unknown | CategoryLookup::Unlisted { .. } | CategoryLookup::ServerUnlisted(_)
                )
            })
            .cloned()
            .collect(),
        None => category.waiting.iter().chain(&category.unresolved).map(ToString::to_string).collect(),
    }
}
