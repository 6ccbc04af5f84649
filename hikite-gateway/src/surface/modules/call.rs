//! Arguments of `call`: a tool in one of several spellings, a resource, or a prompt; exactly one of them.

use hikite_core::error::Error;
use hikite_core::json::Object;
use hikite_core::key::ToolKey;
use serde_json::{Value, json};

use crate::command::{CallOptions, Command, Dialect, Target};
use crate::exchange::choice::with_account;
use crate::surface::form::Form;

/// Arguments that name the target; exactly one must be present.
const MEANT: [&str; 5] = ["tool", "tool_name", "toolKey", "uri", "prompt"];
/// Synonyms for the tool's arguments.
const PARAMS: [&str; 3] = ["params", "arguments", "args"];
const OTHERS: [&str; 7] = ["module", "account", "format", "select", "page", "jq", "search"];

pub(super) fn schema() -> Value {
    let told = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object",
        "properties": {
            "module": told("Where the tool is"),
            "tool": told("Its name"),
            "toolKey": told("`module:tool`, in place of the two"),
            "params": { "type": "object", "description": "Arguments of the tool", "additionalProperties": true },
            "select": told("Only this of the result: fields such as `id,user.name`, or jq"),
            "format": { "type": "string", "enum": ["compact", "raw"], "description": "Of the result" },
            "account": told("Where a service has several"),
            "uri": told("A resource, or the `result://` of a long answer"),
            "page": { "type": "integer", "minimum": 1, "description": "Of a `result://`; `jq` and `search` likewise" },
            "jq": told("Only what it gives"),
            "search": told("Only lines with it"),
            "prompt": told("A prompt, in place of a tool"),
        },
    })
}

/// Target of a call.
enum Meant {
    Tool(Target),
    Resource(String),
    Prompt { module: Option<String>, name: String },
}

pub(super) fn translate(params: &Object) -> Result<Command, Error> {
    let mut form = Form::read(params, &[&MEANT[..], &PARAMS, &OTHERS].concat())?;
    let meant = meant(&mut form);
    let word = form.only_one(&PARAMS).unwrap_or("params");
    let inner = form.object(word);
    let account = form.filled("account");
    let (wanted, part) = (form.wanted(), form.part());
    match &meant {
        Some(Meant::Tool(_)) => form.none_of(&["page", "jq", "search"], "goes with a `uri` alone"),
        Some(Meant::Resource(_)) => {
            form.none_of(&["params", "arguments", "args", "format", "select"], "does not go with a `uri`");
        }
        Some(Meant::Prompt { .. }) => {
            form.none_of(&["format", "select", "page", "jq", "search"], "does not go with a `prompt`");
        }
        None => {}
    }
    let meant = form.end_with(meant)?;
    // Other members of the request, such as `_meta`, are passed along.
    let params = with_account(params.clone().with("arguments", inner), account.as_deref());
    Ok(match meant {
        Meant::Resource(uri) => Command::Fetch { uri, part, params, dialect: Dialect::Result },
        Meant::Prompt { module, name } => Command::Recite { module, name, params },
        Meant::Tool(target) => {
            let options = CallOptions::default();
            Command::Execute { target, params, options, wanted, dialect: Dialect::Result }
        }
    })
}

fn meant(form: &mut Form) -> Option<Meant> {
    let module = form.filled("module");
    let Some(word) = form.only_one(&MEANT) else {
        let none = MEANT.iter().all(|word| form.given(word).is_none());
        let what = "must name the tool to run; or `uri` a resource to read, or `prompt` a prompt to get";
        return none.then(|| form.refuse("tool", what)).flatten();
    };
    let name = form.filled(word)?;
    Some(match word {
        "uri" => Meant::Resource(name),
        "prompt" => Meant::Prompt { module, name },
        "toolKey" => {
            form.none_of(&["module"], "is in the `toolKey` already");
            Meant::Tool(keyed(&name).unwrap_or(Target::Named(name)))
        }
        // A tool name without a module may still be unique.
        _ => Meant::Tool(match module {
            Some(module) => Target::Keyed(ToolKey::new(module, name)),
            None => Target::Named(name),
        }),
    })
}

fn keyed(key: &str) -> Option<Target> {
    key.split_once(':').map(|(module, tool)| Target::Keyed(ToolKey::new(module, tool)))
}
