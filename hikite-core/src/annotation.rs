//! What tools promise of themselves in the words of the protocol, and what an HTTP method promises of a tool that makes
//! such a request (RFC 9110, 9.2).

use crate::json::{Object, Raw};

/// What the source says of a tool in its definition.
pub fn of_definition(definition: &Raw) -> Object {
    definition.object().and_then(|tool| tool.get("annotations")?.object()).unwrap_or_default()
}

/// The annotations of a tool whose request has this method, where its form says nothing else.
pub fn of_method(method: &str) -> Object {
    let promise: &[&str] = match method.to_ascii_uppercase().as_str() {
        "GET" | "HEAD" => &["readOnlyHint"],
        "PUT" => &["idempotentHint"],
        "DELETE" => &["idempotentHint", "destructiveHint"],
        _ => &[],
    };
    promise.iter().fold(Object::default(), |all, hint| all.with(hint, Raw::of(&true)))
}

#[cfg(test)]
mod tests {
    use super::of_method;
    use crate::about::Promise;

    #[track_caller]
    fn check(method: &str, read_only: bool, idempotent: bool) {
        assert_eq!(Promise::of(&of_method(method)), Promise { read_only, idempotent }, "{method}");
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
