//! Arguments of `call`: a tool in one of several spellings, a resource, or a prompt; exactly one of them.

use hikite_core::error::Error;
use hikite_core::json::Object;
use hikite_core::key::ToolKey;
use serde_json::{Value, json};

use crate::accounts::selection::with_account;
use crate::command::{CallOptions, Command, Dialect, ToolTarget};
use crate::surface::argument::ArgumentReader;

/// Arguments that name the target; exactly one must be present.
const TARGETS: [&str; 5] = ["tool", "tool_name", "toolKey", "uri", "prompt"];
/// Synonyms for the tool's arguments.
const PARAMS: [&str; 3] = ["params", "arguments", "args"];
const OTHERS: [&str; 7] = ["module", "account", "format", "select", "page", "jq", "search"];

pub(super) fn schema() -> Value {
    let told = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object",
        "properties": {
            "module": told("Tool's module"),
            "tool": told("Its name"),
            "toolKey": told("`module:tool`, instead of both"),
            "params": { "type": "object", "description": "Arguments of the tool", "additionalProperties": true },
            "select": told("Part of the result: fields such as `id,user.name`, or jq"),
            "format": { "type": "string", "enum": ["compact", "raw"], "description": "Result format" },
            "account": told("If a service has several"),
            "uri": told("A resource, or the `result://` of a long result"),
            "page": { "type": "integer", "minimum": 1, "description": "Of a `result://`; same for `jq` and `search`" },
            "jq": told("Only its output"),
            "search": told("Matching lines"),
            "prompt": told("A prompt, instead of a tool"),
        },
    })
}

/// Target of a call.
enum CallTarget {
    Tool(ToolTarget),
    Resource(String),
    Prompt { module: Option<String>, name: String },
}

pub(super) fn translate(params: &Object) -> Result<Command, Error> {
    let mut form = ArgumentReader::read(params, &[&TARGETS[..], &PARAMS, &OTHERS].concat())?;
    let target = target(&mut form);
    let word = form.only_one(&PARAMS).unwrap_or("params");
    let inner = form.object(word);
    let account = form.non_empty_text("account");
    let (wanted, part) = (form.wanted(), form.part());
    match &target {
        Some(CallTarget::Tool(_)) => form.reject_with(&["page", "jq", "search"], "can only be used with `uri`"),
        Some(CallTarget::Resource(_)) => {
            form.reject_with(&["params", "arguments", "args", "format", "select"], "cannot be used with `uri`");
        }
        Some(CallTarget::Prompt { .. }) => {
            form.reject_with(&["format", "select", "page", "jq", "search"], "cannot be used with `prompt`");
        }
        None => {}
    }
    let target = form.end_with(target)?;
    // Other members of the request, such as `_meta`, are passed along.
    let params = with_account(params.clone().with("arguments", inner), account.as_deref());
    Ok(match target {
        CallTarget::Resource(uri) => Command::Fetch { uri, part, params, dialect: Dialect::Result },
        CallTarget::Prompt { module, name } => Command::FetchPrompt { module, name, params },
        CallTarget::Tool(target) => {
            let options = CallOptions::default();
            Command::Execute { target, params, options, wanted, dialect: Dialect::Result }
        }
    })
}

fn target(form: &mut ArgumentReader) -> Option<CallTarget> {
    let module = form.non_empty_text("module");
    let Some(word) = form.only_one(&TARGETS) else {
        let none = TARGETS.iter().all(|word| form.argument(word).is_none());
        let what = "must be the tool to run; or set `uri` to read a resource, or `prompt` to get a prompt";
        return none.then(|| form.refuse("tool", what)).flatten();
    };
    let name = form.non_empty_text(word)?;
    Some(match word {
        "uri" => CallTarget::Resource(name),
        "prompt" => CallTarget::Prompt { module, name },
        "toolKey" => {
            form.reject_with(&["module"], "is already part of `toolKey`");
            CallTarget::Tool(keyed(&name).unwrap_or(ToolTarget::Named(name)))
        }
        // A tool name without a module may still be unique.
        _ => CallTarget::Tool(match module {
            Some(module) => ToolTarget::Keyed(ToolKey::new(module, name)),
            None => ToolTarget::Named(name),
        }),
    })
}

fn keyed(key: &str) -> Option<ToolTarget> {
    key.split_once(':').map(|(module, tool)| ToolTarget::Keyed(ToolKey::new(module, tool)))
}
