//! MCP tool annotations: read from a definition, or derived from the HTTP method of the tool's request (RFC 9110,
//! section 9.2).

use crate::json::{Object, Raw};

/// Returns the `annotations` object of a tool definition, empty if there is none.
pub fn from_definition(definition: &Raw) -> Object {
    definition.object().and_then(|tool| tool.get("annotations")?.object()).unwrap_or_default()
}

/// Returns the default annotations of a tool that sends requests with this HTTP method.
pub fn from_method(method: &str) -> Object {
    let hints: &[&str] = match method.to_ascii_uppercase().as_str() {
        "GET" | "HEAD" => &["readOnlyHint"],
        "PUT" => &["idempotentHint"],
        "DELETE" => &["idempotentHint", "destructiveHint"],
        _ => &[],
    };
    hints.iter().fold(Object::default(), |all, hint| all.with(hint, Raw::of(&true)))
}

#[cfg(test)]
mod tests {
    use super::from_method;
    use crate::call_policy::ToolHints;

    #[track_caller]
    fn check(method: &str, read_only: bool, idempotent: bool) {
        assert_eq!(ToolHints::of(&from_method(method)), ToolHints { read_only, idempotent }, "{method}");
    }

    #[test]
    fn only_methods_that_promise_something_do() {
        check("GET", true, false);
        check("head", true, false);
        check("PUT", false, true);
        check("DELETE", false, true);
        check("POST", false, false);
        check("PATCH", false, false);
    }
}
