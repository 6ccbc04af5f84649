//! The `modules` surface: one tool that describes modules, one that runs a tool, and one that runs a batch. Two
//! spellings of the arguments are accepted and the shorter one is shown, since every conversation pays for these
//! schemas.

mod call;

#[cfg(test)]
mod tests;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::plan::OnError;
use hikite_core::view::View;
use serde_json::{Value, json};

use super::argument::{ArgumentReader, with_schema};
use super::{executing_annotations, menu, read_only_annotations};
use crate::command::Batch;
use crate::command::{Command, Detail, ModuleQuery};

pub(super) const OPEN: &str = "get_module_schema";
const CALL: &str = "call";
const BATCH: &str = "batch";

/// Maximum number of modules in one request.
const MODULES_MAX: usize = 100;
const TOOLS_MAX: usize = 500;
const CONCURRENCY_MAX: u32 = 1000;

pub(super) const INSTRUCTIONS: &str = "Tools are grouped into modules. Open a module with `get_module_schema`, run its \
    tools with `call`, or several at once with `batch`.";

/// Returns the tools of this surface. `finder` is the search tool, if it is shown beside them.
pub(super) fn tools(view: &View, limits: &Limits, finder: Option<&str>) -> Vec<Raw> {
    let open = json!({
        "name": OPEN,
        "title": "Open modules",
        "description": open_text(view, limits, finder),
        "inputSchema": open_schema(),
        "annotations": read_only_annotations(),
    });
    let call = json!({
        "name": CALL,
        "title": "Run a tool",
        "description": "Runs one tool of a module and returns its result. With `uri` it reads a resource instead, with \
            `prompt` it gets a prompt.",
        "inputSchema": call::schema(),
        "annotations": executing_annotations(),
    });
    let batch = json!({
        "name": BATCH,
        "title": "Run many tools",
        "description": "Runs several tools in one call: one JSON object per line, {\"id\", \"module\", \"tool\", \"params\", \
         \"after\": [ids], \"output\": true}. Lines run in parallel unless they depend on others: `after` lists \
         ids, and \"${id.path}\" in params inserts a value from another result, such as ${a.results[0].id}. Only \
         results with `output` (compact) or `raw_output` (JSON) are returned. Also per line: `select`, `if`, \
         `for_each` (a list; ${item}), `on_error`, `timeout_ms`.",
        "inputSchema": batch_schema(),
        "annotations": executing_annotations(),
    });
    [open, call, batch].iter().map(Raw::of).collect()
}

fn open_text(view: &View, limits: &Limits, finder: Option<&str>) -> String {
    let text = "Shows what modules offer: a line per tool with its parameters. Open a module before you first use it, then \
     run its tools with `call` or `batch`.";
    match menu::modules(view, limits.menu_tokens, finder).as_str() {
        "" => text.to_owned(),
        list => format!("{text}\n\nModules:{list}"),
    }
}

fn open_schema() -> Value {
    let names =
        |description: &str| json!({ "type": "array", "items": { "type": "string" }, "description": description });
    json!({
        "type": "object",
        "properties": {
            "modules": names("Module names"),
            "tools": names("Only these tools"),
            "detail": { "type": "string", "enum": ["names", "signatures", "schemas"], "default": "signatures", "description": "Detail per tool" },
            "refresh": { "type": "boolean", "description": "Resend what was already sent in this session" },
            "known": names("Hashes you have"),
        },
        "required": ["modules"],
    })
}

fn batch_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "commands": {
                "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "object" } }],
                "description": "The lines, or an array of objects",
            },
            "dry_run": { "type": "boolean", "description": "Check only, run nothing" },
            "concurrency": { "type": "integer", "minimum": 1, "description": "Concurrency" },
            "on_error": {
                "type": "string", "enum": ["skip", "continue", "fail_fast"], "default": "skip",
                "description": "For lines after a failed one",
            },
        },
        "required": ["commands"],
    })
}

/// Translates a call; returns `None` if the name is not one of this surface's three tools.
pub(super) fn translate(name: &str, params: &Object) -> Option<Result<Command, Error>> {
    match name {
        OPEN => Some(translate_open(params).map_err(with_schema(open_schema))),
        CALL => Some(call::translate(params).map_err(with_schema(call::schema))),
        BATCH => Some(translate_batch(params).map_err(with_schema(batch_schema))),
        _ => None,
    }
}

/// Adds a hint to an error about an unknown tool or module.
pub(super) fn with_hint(error: Error) -> Error {
    let of_a_name = matches!(error.kind, ErrorKind::ToolNotFound | ErrorKind::NotFound);
    if !of_a_name || error.hint.is_some() || error.relayed.is_some() {
        return error;
    }
    error.hint("`get_module_schema` lists the modules and their tools.")
}

fn translate_open(params: &Object) -> Result<Command, Error> {
    let mut form = ArgumentReader::read(params, &["modules", "module", "tools", "detail", "refresh", "known"])?;
    let mut modules = form.texts("modules", MODULES_MAX).unwrap_or_default();
    modules.extend(form.texts("module", MODULES_MAX).unwrap_or_default());
    if modules.is_empty() && form.is_valid() {
        form.refuse::<()>("modules", "must contain the name of a module");
    }
    let tools = form.texts("tools", TOOLS_MAX).unwrap_or_default();
    let detail = form.word("detail", &Detail::ALL).unwrap_or_default();
    let refresh = form.flag("refresh").unwrap_or_default();
    let known = form.texts("known", MODULES_MAX).unwrap_or_default();
    form.end()?;
    Ok(Command::Open(ModuleQuery { modules, tools, detail, refresh, known, params: params.clone() }))
}

fn translate_batch(params: &Object) -> Result<Command, Error> {
    let mut form = ArgumentReader::read(params, &["commands", "dry_run", "concurrency", "on_error"])?;
    let commands = form.argument("commands").filter(|raw| raw.bytes().starts_with(b"[") || raw.text().is_some());
    let commands = commands.cloned();
    if commands.is_none() {
        form.refuse::<()>("commands", "must be lines of JSON objects, or an array of objects");
    }
    let dry_run = form.flag("dry_run").unwrap_or_default();
    let concurrency = form.count("concurrency", CONCURRENCY_MAX).map(|count| count as usize);
    let on_error = form.word("on_error", &OnError::ALL).unwrap_or_default();
    form.end()?;
    let commands = commands.unwrap_or_else(Raw::null);
    Ok(Command::Batch(Batch { commands, dry_run, concurrency, on_error, params: params.clone() }))
}
