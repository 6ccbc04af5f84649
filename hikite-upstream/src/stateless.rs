//! One call to a stateless server, including rounds, tasks and header mismatches, until its final result.

use std::sync::Arc;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::SKILLS;
use hikite_core::source::{CallContext, Invocation, SourceMethod};
use hikite_wire::stateless::ResultType;

use crate::connection::request_meta::StatelessMeta;
use crate::connection::{Connection, subscription};
use crate::error::{FailureReason, UpstreamError};
use crate::revision::upstream_code;
use crate::rounds::{self, ROUNDS, failed};
use crate::upstream::UpstreamInner;
use crate::{refresh, tasks};

pub(crate) async fn send(
    upstream: &Arc<UpstreamInner>,
    connection: &Arc<Connection>,
    invocation: Invocation,
    context: CallContext,
) -> Result<Raw, UpstreamError> {
    let Invocation { method, params } = invocation;
    let name = method.name();
    let accepts_input_required = context.accepts_input_required;
    let answer = match method {
        SourceMethod::Subscribe => return subscription::subscribe(connection, params, context).await,
        SourceMethod::Unsubscribe => return subscription::unsubscribe(connection, params, context).await,
        SourceMethod::CallTool | SourceMethod::ReadResource | SourceMethod::GetPrompt => {
            return send_in_rounds(upstream, connection, method, params, context)
                .await
                .map_err(|error| not_found(method, error));
        }
        SourceMethod::GetTask | SourceMethod::UpdateTask | SourceMethod::CancelTask => {
            let id = tasks::require(connection, &params)?;
            let request_meta = StatelessMeta::for_call(&context, true);
            let answer = connection.request_stateless(name, params, Some(context), request_meta).await;
            if answer.as_ref().is_ok_and(|task| method == SourceMethod::CancelTask || tasks::has_ended(task)) {
                connection.running.end(&id);
            }
            answer
        }
        SourceMethod::GetSkill | SourceMethod::ReadDirectory => {
            let request_meta = StatelessMeta::for_call(&context, false).with_extension(SKILLS);
            connection.request_stateless(name, params, Some(context), request_meta).await
        }
        SourceMethod::Complete | SourceMethod::SetLevel => connection.request(name, Some(params), Some(context)).await,
    };
    let answer = answer.map_err(|error| not_found(method, error))?;
    let result = answer.object().unwrap_or_default();
    match ResultType::of(&result) {
        ResultType::Complete => Ok(complete(answer, result, accepts_input_required)),
        _ => Err(unknown_result(connection).into()),
    }
}

/// Sends a request repeatedly until it has a final result.
async fn send_in_rounds(
    upstream: &Arc<UpstreamInner>,
    connection: &Arc<Connection>,
    method: SourceMethod,
    mut params: Object,
    context: CallContext,
) -> Result<Raw, UpstreamError> {
    let takes_tasks = method == SourceMethod::CallTool && tasks::accepts_tasks(&mut params, &context);
    if !context.accepts_input_required {
        rounds::strip(&mut params);
    }
    let mut declares = takes_tasks && connection.runs_tasks();
    let mut next = params.clone();
    let mut begun = false;
    for _ in 0..ROUNDS {
        let sent = send_once(upstream, connection, method, next.clone(), &context, declares).await;
        let answer = match sent {
            // The tool requires a task: wait for it on behalf of the client.
            Err(error) if !declares && connection.runs_tasks() && tasks::is_required(&error.error) => {
                declares = true;
                continue;
            }
            sent => sent.map_err(|error| if begun { error.not_retryable() } else { error })?,
        };
        begun = true;
        let result = answer.object().ok_or_else(|| unknown_result(connection))?;
        match ResultType::of(&result) {
            ResultType::Complete => return Ok(complete(answer, result, context.accepts_input_required)),
            ResultType::InputRequired if context.accepts_input_required => return Ok(answer),
            ResultType::InputRequired => {
                next = rounds::next(&connection.name, &params, &result, &context).await?;
            }
            ResultType::Task if method == SourceMethod::CallTool => {
                if takes_tasks {
                    return Ok(upstream.task_connections.put(result, connection).raw());
                }
                let done = tasks::wait::until_done(connection, result, &context).await;
                return done.map_err(UpstreamError::not_retryable);
            }
            ResultType::Task | ResultType::Unknown => return Err(unknown_result(connection).into()),
        }
    }
    Err(failed(format!("`{}` still needs input after {ROUNDS} rounds.", connection.name)).into())
}

/// Sends a request. A call with mismatched headers is sent once more with headers from fresh lists.
async fn send_once(
    upstream: &Arc<UpstreamInner>,
    connection: &Arc<Connection>,
    method: SourceMethod,
    params: Object,
    context: &CallContext,
    tasks: bool,
) -> Result<Raw, UpstreamError> {
    let send = async |params: Object| {
        let mut request_meta = StatelessMeta::for_call(context, tasks);
        if method == SourceMethod::CallTool {
            request_meta.mirrored_headers = upstream.lists.annotations.load().headers(&params);
        }
        connection.request_stateless(method.name(), params, Some(context.clone()), request_meta).await
    };
    match send(params.clone()).await {
        Err(UpstreamError { reason: FailureReason::HeadersRefused, .. }) if method == SourceMethod::CallTool => {
            refresh::renew(upstream).await?;
            send(params).await
        }
        answer => answer,
    }
}

/// Removes `resultType` for clients of revisions with sessions.
fn complete(answer: Raw, mut result: Object, accepts_input_required: bool) -> Raw {
    if !accepts_input_required && result.remove("resultType").is_some() { result.raw() } else { answer }
}

/// Maps a "resource not found" error to the error kind used inside hikite.
fn not_found(method: SourceMethod, mut error: UpstreamError) -> UpstreamError {
    const NOT_FOUND: i32 = -32002;
    let reads = matches!(method, SourceMethod::ReadResource | SourceMethod::GetSkill);
    let Some(mut relayed) = error.error.relayed.as_ref().filter(|_| reads).and_then(Raw::object) else {
        return error;
    };
    let names_it = relayed.get("data").and_then(Raw::object).is_some_and(|data| data.get("uri").is_some());
    if upstream_code(&error.error) != Some(-32602) || !names_it {
        return error;
    }
    relayed.set("code", Raw::of(&NOT_FOUND));
    let told = &mut error.error;
    (told.kind, told.relayed) = (ErrorKind::NotFound, Some(relayed.raw()));
    error
}

fn unknown_result(connection: &Connection) -> Error {
    failed(format!("`{}` returned a result of an unknown type.", connection.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_type_is_taken_out_of_a_result_and_only_for_sessions() {
        let answer = Raw::parse(r#"{"resultType":"complete", "content": [ ],"ttlMs":1}"#).expect("valid");
        let completed = |answer: &Raw, accepts_input_required| {
            complete(answer.clone(), answer.object().expect("an object"), accepts_input_required)
        };
        assert_eq!(completed(&answer, true), answer);
        assert_eq!(completed(&answer, false).as_str(), r#"{"content":[ ],"ttlMs":1}"#);
        let plain = Raw::parse(r#"{ "content": [ ] }"#).expect("valid");
        assert_eq!(completed(&plain, false), plain);
    }

    #[test]
    fn a_resource_that_is_not_there_is_not_found() {
        let told = |method: SourceMethod, data: &str| {
            let text = format!(r#"{{"code":-32602,"message":"no","data":{data}}}"#);
            Error::from(not_found(method, Error::from_upstream(Raw::parse(text).expect("valid")).into()))
        };
        let missing = told(SourceMethod::ReadResource, r#"{"uri":"a:b"}"#);
        assert_eq!((missing.kind, upstream_code(&missing)), (ErrorKind::NotFound, Some(-32002)));
        assert_eq!(told(SourceMethod::ReadResource, "{}").kind, ErrorKind::Validation);
        assert_eq!(told(SourceMethod::CallTool, r#"{"uri":"a:b"}"#).kind, ErrorKind::Validation);
    }
}
