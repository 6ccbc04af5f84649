//! The `search` surface: one tool that finds tools by what they do, and one that runs them.

use hikite_core::catalog::{Tool, schema_of};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::search::provider::RankedTool;
use hikite_core::signature::{SignatureStyle, brief, signature};
use hikite_core::tool_output::ToolOutput;
use hikite_core::view::View;
use serde_json::{Value, json};

use super::argument::{ArgumentReader, with_schema};
use super::{document, executing_annotations, menu, read_only_annotations};
use crate::accounts::selection::with_account;
use crate::call_result::with_other_members;
use crate::command::ToolQuery;
use crate::command::{CallOptions, Command, Detail, Dialect, ToolTarget};
use crate::handle;
use crate::search::QueryOutcome;

pub(super) const DISCOVER: &str = "tool_discovery";
const EXECUTE: &str = "tool_execute";

/// Default and maximum number of results.
const RESULTS: usize = 10;
const RESULTS_MAX: u32 = 50;
/// Maximum sizes of a request.
const QUERIES_MAX: usize = 20;
const QUERY_CHARS: usize = 1000;
const CONTEXT_CHARS: usize = 8000;

/// Maximum length of a description in a result.
const DESCRIPTION_CHARS: usize = 240;

pub(super) const INSTRUCTIONS: &str = "These two give access to many tools. Tell `tool_discovery` in a few words what you want to do, then run \
 one of the tools it returns with `tool_execute`.";

/// Instructions beside the `modules` surface, whose tools list the modules and run what was found.
pub(super) const INSTRUCTIONS_WITH_MODULES: &str =
    "If you do not know which module to open, `tool_discovery` finds tools by what they do.";

pub(super) fn tools(view: &View, limits: &Limits) -> Vec<Raw> {
    let text = "Finds tools by what they do. Use it whenever a task needs data, a service or an action outside this \
     conversation, then run a match with `tool_execute`.";
    let text = match menu::modules(view, limits.menu_tokens, Some(DISCOVER)).as_str() {
        "" => text.to_owned(),
        list => format!("{text}\n\nAvailable modules:{list}"),
    };
    let execute = json!({
        "name": EXECUTE,
        "title": "Run a tool that was found",
        "description": "Runs one tool and returns its result. Find the tool and its parameters with `tool_discovery` first.",
        "inputSchema": execute_schema(),
        "outputSchema": {
            "type": "object",
            "properties": { "result": { "description": "Result of the tool" } },
            "required": ["result"],
        },
        "annotations": executing_annotations(),
    });
    vec![discover(&text), Raw::of(&execute)]
}

pub(super) fn tools_with_modules() -> Vec<Raw> {
    vec![discover(
        "Finds tools of all modules by what they do. Use it if you do not know which module to open, then run a \
         match with `call {toolKey, params}`.",
    )]
}

fn discover(text: &str) -> Raw {
    Raw::of(&json!({
        "name": DISCOVER,
        "title": "Find tools",
        "description": text,
        "inputSchema": discover_schema(),
        "outputSchema": results_schema(),
        "annotations": read_only_annotations(),
    }))
}

fn discover_schema() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "array",
                "items": { "type": "string" },
                "minItems": 1,
                "description": "What you want to do, in a few words of any language; one entry per phrasing",
            },
            "context": text("Surrounding task; weighs less than the queries"),
            "maxResults": {
                "type": "integer", "minimum": 1, "maximum": RESULTS_MAX, "default": RESULTS,
                "description": "Maximum results",
            },
            "detail": {
                "type": "string", "enum": ["names", "signatures", "schemas"], "default": "signatures",
                "description": "Detail per tool: key only, plus a one-line summary with parameters, or the full input schema",
            },
        },
        "required": ["query"],
        "additionalProperties": false,
    })
}

fn execute_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "toolKey": { "type": "string", "description": "The `toolKey` of a `tool_discovery` result; or the `result://` of a long \
             result, to read on with `page`, `jq` or `search` in the arguments" },
            "arguments": {
                "type": "object",
                "description": "Arguments matching the tool's signature; {} for none",
                "additionalProperties": true,
            },
            "format": { "type": "string", "enum": ["compact", "raw"], "description": "Result format" },
            "select": { "type": "string", "description": "Part of the result: fields such as `id,user.name`, or jq" },
            "account": { "type": "string", "description": "Account to use if a service has several" },
        },
        "required": ["toolKey"],
        "additionalProperties": false,
    })
}

fn results_schema() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "properties": { "results": { "type": "array", "description": "Best first", "items": {
            "type": "object",
            "properties": {
                "toolKey": text,
                "toolName": text,
                "serverName": text,
                "relevance": { "type": "number", "minimum": 0, "maximum": 1 },
                "explanation": text,
                "description": text,
                "signature": text,
                "inputSchema": { "type": "object" },
            },
            "required": ["toolKey", "toolName", "serverName", "relevance"],
        } } },
        "required": ["results"],
    })
}

/// Translates a call; returns `None` if the name is not one of this surface's two tools.
pub(super) fn translate(name: &str, params: &Object) -> Option<Result<Command, Error>> {
    match name {
        DISCOVER => Some(translate_discover(params).map_err(with_schema(discover_schema))),
        EXECUTE => Some(translate_execute(params).map_err(with_schema(execute_schema))),
        _ => None,
    }
}

/// Adds a hint to an error about an unknown tool.
pub(super) fn with_hint(error: Error) -> Error {
    if error.kind != ErrorKind::ToolNotFound || error.hint.is_some() {
        return error;
    }
    error.hint("`tool_discovery` finds tools by what they do.")
}

fn translate_discover(params: &Object) -> Result<Command, Error> {
    let mut form = ArgumentReader::read(params, &["query", "context", "maxResults", "detail"])?;
    let queries = queries(&mut form);
    let context = form.text("context").map(|text| text.chars().take(CONTEXT_CHARS).collect::<String>());
    let limit = form.count("maxResults", RESULTS_MAX).map_or(RESULTS, |count| count as usize);
    let detail = form.word("detail", &Detail::ALL).unwrap_or_default();
    form.end()?;
    let requested = ToolQuery { queries, context, limit };
    Ok(Command::Search { requested, detail, params: params.clone() })
}

/// Reads a list of queries, or a single one.
fn queries(form: &mut ArgumentReader) -> Vec<String> {
    let is_given = form.argument("query").is_some();
    let queries = form.texts("query", QUERIES_MAX);
    let fault = match queries {
        None if is_given => return Vec::new(),
        Some(queries) if queries.iter().any(|query| query.chars().count() > QUERY_CHARS) => {
            "has a query of more than 1000 characters"
        }
        Some(queries) if !queries.is_empty() => return queries,
        _ => "must say what to search for",
    };
    form.refuse("query", fault).unwrap_or_default()
}

fn translate_execute(params: &Object) -> Result<Command, Error> {
    let mut form = ArgumentReader::read(params, &["toolKey", "arguments", "account", "format", "select"])?;
    let name = form.argument("toolKey").and_then(Raw::text).filter(|name| !name.is_empty());
    let name = name.or_else(|| form.refuse("toolKey", "must be the key of a tool")).unwrap_or_default();
    let account = form.non_empty_text("account");
    let wanted = form.wanted();
    let inner = form.object("arguments");
    form.end()?;
    if handle::is_stored_result(&Object::default().with("uri", name.as_str())) {
        let mut form = ArgumentReader::of(inner, &["page", "jq", "search"]);
        let part = form.part();
        form.end()?;
        return Ok(Command::Fetch { uri: name, part, params: params.clone(), dialect: Dialect::Value });
    }
    // Other members of the request, such as `_meta`, are passed along.
    Ok(Command::Execute {
        target: ToolTarget::Named(name),
        params: with_account(params.clone().with("arguments", inner), account.as_deref()),
        options: CallOptions::default(),
        wanted,
        dialect: Dialect::Value,
    })
}

/// Builds the result of `tool_discovery`.
pub(crate) fn found(view: &View, told: &QueryOutcome, needs: &[Raw], detail: Detail) -> Raw {
    let tools = told.found.iter().enumerate().filter_map(|(at, chosen)| {
        let tool = view.usable(&chosen.key)?;
        Some(result(tool, chosen, at >= told.fitting, detail).raw())
    });
    let mut body = Object::default().with("results", Raw::array(&tools.collect::<Vec<Raw>>()));
    if !needs.is_empty() {
        body.set("needs", Raw::array(needs));
    }
    if let Some(note) = told.note() {
        body.set("note", note);
    }
    document(&body).object().unwrap_or_default().with("_meta", told.meta()).raw()
}

fn result(tool: &Tool, chosen: &RankedTool, is_weak: bool, detail: Detail) -> Object {
    let relevance = (chosen.relevance * 1000.0).round() / 1000.0;
    let mut result = Object::default()
        .with("toolKey", tool.key.to_string())
        .with("toolName", &*tool.name)
        .with("serverName", &*tool.key.module)
        .with("relevance", Raw::of(&relevance));
    if is_weak {
        result.set("weak", Raw::of(&true));
    }
    if let Some(explanation) = &chosen.explanation {
        result.set("explanation", explanation.as_str());
    }
    if detail == Detail::Names {
        return result;
    }
    let description = tool.definition.object().and_then(|definition| definition.text("description"));
    if let Some(description) = description {
        result.set("description", brief(&description, DESCRIPTION_CHARS));
    }
    let schema = schema_of(&tool.definition);
    match detail {
        Detail::Schemas => {
            result.set("inputSchema", schema.filter(Raw::is_object).unwrap_or_else(Raw::empty_object));
        }
        _ => result.set("signature", signature(&tool.name, schema.as_ref(), SignatureStyle::default())),
    }
    result
}

/// Builds the result of `tool_execute`: the value, with other content blocks beside it. Intermediate results, such as
/// an input request, stay unchanged.
pub(crate) fn execution_result(result: Raw) -> Raw {
    let Some(members) = result.object() else { return result };
    if members.get("content").is_none() && members.get("structuredContent").is_none() {
        return result;
    }
    let answer = ToolOutput::read(&result);
    let mut body = Object::default().with("result", answer.value);
    if answer.failed {
        let message = brief(&answer.text, QUERY_CHARS);
        let error = Error::new(ErrorKind::ToolExecution, message);
        body.set("error", error.detail());
    }
    let mut wrapped = document(&body).object().unwrap_or_default();
    let mut content = wrapped.get("content").and_then(Raw::items).unwrap_or_default();
    content.extend(answer.others);
    wrapped.set("content", Raw::array(&content));
    with_other_members(&wrapped, &members).raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::raw;

    #[track_caller]
    fn refused(name: &str, arguments: &str) -> Error {
        let params = Object::default().with("name", name).with("arguments", raw(arguments));
        translate(name, &params).expect("ours").expect_err("refused")
    }

    fn discover(arguments: &str) -> ToolQuery {
        let params = Object::default().with("arguments", raw(arguments));
        match translate(DISCOVER, &params).expect("ours").expect("right") {
            Command::Search { requested, .. } => requested,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_query_is_as_good_as_several_and_text_is_unwrapped() {
        assert_eq!(discover(r#"{"query":"a"}"#).queries, ["a"]);
        assert_eq!(discover(r#"{"query":["a"," ","b"],"maxResults":5.0}"#).limit, 5);
        let wrapped = discover(r#""{\"query\":[\"a\"],\"context\":\"c\",\"detail\":null}""#);
        assert_eq!((wrapped.queries, wrapped.context, wrapped.limit), (vec!["a".into()], Some("c".into()), 10));
    }

    #[test]
    fn what_is_wrong_is_told_at_once_with_the_schema() {
        let error = refused(DISCOVER, r#"{"query":[],"max_results":3,"detail":"all","maxResults":0,"context":1}"#);
        for part in ["`query` must say", "Did you mean `maxResults`?", "`detail`", "1 to 50", "`context`"] {
            assert!(error.message.contains(part), "{part}: {}", error.message);
        }
        let schema = error.schema.expect("a schema").value();
        assert!(schema["properties"]["query"].is_object());
        assert!(refused(DISCOVER, "[1]").schema.is_some());
        assert!(refused(DISCOVER, r#"{"query":[1]}"#).message.contains("list of strings"));
        let error = refused(EXECUTE, r#"{"toolKey":"","argument":{},"arguments":3}"#);
        for part in ["`toolKey`", "Did you mean `arguments`?", "JSON object"] {
            assert!(error.message.contains(part), "{part}: {}", error.message);
        }
        assert!(translate("other", &Object::default()).is_none());
    }

    #[test]
    fn a_result_becomes_its_value_with_pictures_beside_it() {
        let value = |text: &str| execution_result(raw(text)).value();
        let plain = value(r#"{"content":[{"type":"text","text":"[1]"}],"_meta":{"a":1}}"#);
        assert_eq!(plain["structuredContent"], json!({ "result": [1] }));
        assert_eq!(
            (plain["content"][0]["text"].clone(), plain["_meta"]["a"].clone()),
            (json!("{\"result\":[1]}"), json!(1))
        );
        let both =
            value(r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}],"structuredContent":{"b":2}}"#);
        assert_eq!(both["structuredContent"], json!({ "result": { "b": 2 } }));
        assert_eq!(both["content"][1]["type"], "image");
        let failed = value(r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#);
        assert_eq!(failed["isError"], true);
        assert_eq!(failed["structuredContent"]["error"], json!({ "code": "TOOL_EXECUTION_ERROR", "message": "no" }));
        let asks = r#"{"resultType":"input_required","inputRequests":{}}"#;
        assert_eq!(execution_result(raw(asks)), raw(asks));
    }
}
