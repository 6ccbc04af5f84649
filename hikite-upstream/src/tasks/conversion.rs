//! Converts tasks of 2025-11-25 to the stateless revision's extension.

use hikite_core::json::{Object, Raw};

use crate::error::UpstreamError;

/// `_meta` member in which a server may name its question.
pub(crate) const KEY: &str = "hikite/key";
/// `_meta` member that ties a message to a task in 2025-11-25.
pub(super) const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Returns params with a task id.
pub(super) fn named(id: &str) -> Object {
    Object::default().with("taskId", id)
}

/// Converts the result of a call that became a task. Returns `None` if it did not.
pub(super) fn created(answer: &Raw) -> Option<Object> {
    let task = answer.object()?.get("task")?.object()?;
    task.text("taskId").filter(|id| !id.is_empty())?;
    Some(flat(&task).with("resultType", "task"))
}

/// Converts a task, renaming its duration members.
pub(super) fn flat(task: &Object) -> Object {
    // Redundant with the task id.
    let members = task.iter().filter(|(name, _)| *name != "_meta");
    let renamed = members.map(|(name, value)| match name {
        "ttl" => ("ttlMs".into(), value.clone()),
        "pollInterval" => ("pollIntervalMs".into(), value.clone()),
        _ => (name.into(), value.clone()),
    });
    let mut flat: Object = renamed.collect();
    if flat.get("ttlMs").is_none() {
        flat.set("ttlMs", Raw::null());
    }
    flat
}

/// Adds the result or the JSON-RPC error to a finished task. A tool failure (`isError`) counts as completed.
pub(super) fn finish(task: &mut Object, outcome: Result<Raw, UpstreamError>) -> Result<(), UpstreamError> {
    match outcome {
        Ok(result) => {
            task.set("status", "completed");
            task.set("result", without(result, &[RELATED]));
        }
        Err(error) => {
            let Some(relayed) = error.error.relayed.clone() else { return Err(error) };
            task.set("status", "failed");
            task.set("error", relayed);
        }
    }
    Ok(())
}

/// Returns the id of the task that a message belongs to.
pub(super) fn related(params: &Raw) -> Option<String> {
    params.object()?.get("_meta")?.object()?.get(RELATED)?.object()?.text("taskId")
}

/// Returns the params of a question without the members that tie it to its task.
pub(super) fn question(params: &Raw) -> Raw {
    let Some(mut members) = without(params.clone(), &[RELATED, KEY]).object() else { return params.clone() };
    members.remove("task");
    members.raw()
}

/// Removes members of `_meta`, and `_meta` itself if it becomes empty.
fn without(value: Raw, names: &[&str]) -> Raw {
    let Some(mut members) = value.object() else { return value };
    let Some(mut meta) = members.get("_meta").and_then(Raw::object) else { return value };
    if names.iter().filter(|name| meta.remove(name).is_some()).count() == 0 {
        return value;
    }
    if meta.is_empty() {
        members.remove("_meta");
    } else {
        members.set("_meta", meta);
    }
    members.raw()
}

#[cfg(test)]
mod tests {
    use hikite_core::error::Error;

    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).expect("valid")
    }

    #[test]
    fn a_nested_task_becomes_flat() {
        let answer = raw(
            r#"{"task":{"taskId":"a","status":"working","createdAt":"t","lastUpdatedAt":"t","ttl":60000,"pollInterval":500}}"#,
        );
        let expected = r#"{"taskId":"a","status":"working","createdAt":"t","lastUpdatedAt":"t","ttlMs":60000,"pollIntervalMs":500,"resultType":"task"}"#;
        assert_eq!(created(&answer).expect("a task").raw().as_str(), expected);
        assert_eq!(created(&raw(r#"{"content":[]}"#)), None);
    }

    #[test]
    fn the_end_of_a_task_stands_inside_it() {
        let failed = || raw(r#"{"taskId":"a","status":"failed","ttl":null}"#).object().expect("an object");
        let mut task = flat(&failed());
        let result = r#"{"isError":true,"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a"}}}"#;
        finish(&mut task, Ok(raw(result))).expect("told");
        let expected = r#"{"taskId":"a","status":"completed","ttlMs":null,"result":{"isError":true,"content":[]}}"#;
        assert_eq!(task.raw().as_str(), expected);
        let mut task = flat(&failed());
        finish(&mut task, Err(Error::from_upstream(raw(r#"{"code":1,"message":"no"}"#)).into())).expect("told");
        assert_eq!(task.text("status").as_deref(), Some("failed"));
        assert_eq!(task.get("error"), Some(&raw(r#"{"code":1,"message":"no"}"#)));
    }

    #[test]
    fn a_question_names_its_task_and_loses_the_tie() {
        let params =
            raw(r#"{"message":"?","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a"},"x":1},"task":{}}"#);
        assert_eq!(related(&params).as_deref(), Some("a"));
        assert_eq!(question(&params).as_str(), r#"{"message":"?","_meta":{"x":1}}"#);
    }
}
