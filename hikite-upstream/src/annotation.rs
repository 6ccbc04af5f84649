//! Call annotations that tools declare in their definitions: arguments mirrored into HTTP headers, and task support.
//! Computed once per listing, not per call.

use std::collections::HashMap;

use hikite_core::json::{Object, Raw};
use hikite_core::listing::{ListItem, Listing};
use hikite_wire::header::{self, ParamHeader};
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Call annotations by tool name. Tools without any are absent.
#[derive(Debug, Default)]
pub(crate) struct Annotations {
    param_headers: HashMap<Box<str>, Vec<(HeaderName, ParamHeader)>>,
    tasks: HashMap<Box<str>, TaskSupport>,
}

/// Task support of a tool, as declared in revision 2025-11-25.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskSupport {
    Optional,
    Required,
}

impl Annotations {
    pub(crate) fn of(listing: Option<&Listing>) -> Self {
        let mut annotations = Self::default();
        for item in listing.into_iter().flat_map(|listing| &listing.tools) {
            let text = item.raw.as_str();
            if text.contains("x-mcp-header") {
                let param_headers = param_headers(item).unwrap_or_default();
                if !param_headers.is_empty() {
                    annotations.param_headers.insert((*item.name).into(), param_headers);
                }
            }
            if text.contains("taskSupport")
                && let Some(support) = task_support(item)
            {
                annotations.tasks.insert((*item.name).into(), support);
            }
        }
        annotations
    }

    /// Returns the headers that mirror arguments of a call. Null or absent arguments get no header.
    pub(crate) fn headers(&self, params: &Object) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if self.param_headers.is_empty() {
            return headers;
        }
        let Some(param_headers) = params.text("name").and_then(|name| self.param_headers.get(&*name)) else {
            return headers;
        };
        for (name, param_header) in param_headers {
            let value = param_header.argument(params.get("arguments")).and_then(|value| ParamHeader::value(&value));
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
                headers.insert(name.clone(), value);
            }
        }
        headers
    }

    pub(crate) fn task_support(&self, params: &Object) -> Option<TaskSupport> {
        if self.tasks.is_empty() {
            return None;
        }
        self.tasks.get(&*params.text("name")?).copied()
    }
}

/// Removes tools with invalid header annotations: over HTTP they cannot be called as they require.
pub(crate) fn retain_callable(module: &str, tools: &mut Vec<ListItem>) {
    tools.retain(|tool| match param_headers(tool) {
        Ok(_) => true,
        Err(reason) => {
            tracing::warn!(module, tool = &*tool.name, reason, "a tool that cannot be called is skipped");
            false
        }
    });
}

fn param_headers(tool: &ListItem) -> Result<Vec<(HeaderName, ParamHeader)>, String> {
    let schema = tool.raw.object().and_then(|tool| tool.get("inputSchema").cloned());
    let param_headers = schema.map_or_else(|| Ok(Vec::new()), |schema| header::param_headers(&schema))?;
    let named = param_headers.into_iter().map(|param_header| {
        let name = format!("mcp-param-{}", param_header.header.to_ascii_lowercase());
        HeaderName::try_from(name).map(|name| (name, param_header)).map_err(|error| error.to_string())
    });
    named.collect()
}

fn task_support(tool: &ListItem) -> Option<TaskSupport> {
    let execution = tool.raw.object().and_then(|tool| tool.get("execution").and_then(Raw::object))?;
    match execution.text("taskSupport").as_deref() {
        Some("required") => Some(TaskSupport::Required),
        Some("optional") => Some(TaskSupport::Optional),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hikite_core::listing::ListKind;

    use super::*;

    fn tool(name: &str, rest: &str) -> ListItem {
        let text = format!(r#"{{"name":"{name}",{rest}}}"#);
        ListItem::read(ListKind::Tools, Raw::parse(text).expect("valid")).expect("named")
    }

    #[test]
    fn arguments_are_repeated_unless_null_or_absent() {
        let schema = r#""inputSchema":{"properties":{
            "region":{"type":"string","x-mcp-header":"Region"},"count":{"type":"integer","x-mcp-header":"Count"}}}"#;
        let listing = Listing { tools: vec![tool("t", schema)], ..Listing::default() };
        let annotations = Annotations::of(Some(&listing));
        let headers = |arguments: &str| {
            let arguments = Raw::parse(arguments.to_owned()).expect("valid");
            annotations.headers(&Object::default().with("name", "t").with("arguments", arguments))
        };
        assert_eq!(headers(r#"{"region":"","count":3}"#)["mcp-param-region"], "");
        assert_eq!(headers(r#"{"region":null,"count":3}"#).len(), 1);
        assert!(headers("{}").is_empty());
    }

    #[test]
    fn a_tool_with_wrong_annotations_is_left_out_and_the_others_stay() {
        let wrong = r#""inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#;
        let mut tools = vec![tool("wrong", wrong), tool("right", r#""inputSchema":{}"#)];
        retain_callable("m", &mut tools);
        assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["right"]);
    }

    #[test]
    fn tools_say_whether_they_run_as_tasks() {
        let tools = vec![
            tool("a", r#""execution":{"taskSupport":"required"}"#),
            tool("b", r#""execution":{"taskSupport":"forbidden"}"#),
        ];
        let annotations = Annotations::of(Some(&Listing { tools, ..Listing::default() }));
        let support = |name: &str| annotations.task_support(&Object::default().with("name", name));
        assert_eq!((support("a"), support("b")), (Some(TaskSupport::Required), None));
    }
}
