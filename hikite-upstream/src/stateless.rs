//! One call to a stateless server, including rounds, tasks and header mismatches, until its final result.

use std::sync::Arc;

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::SKILLS;
use hikite_core::source::{CallContext, Invocation, Method};
use hikite_wire::stateless::ResultType;

use crate::call::after_it_ran;
use crate::claim::Claiming;
use crate::connection::Connection;
use crate::era::upstream_code;
use crate::http::MISFIT;
use crate::rounds::{self, ROUNDS, failed};
use crate::tasks;
use crate::upstream::Inner;

impl Inner {
    pub(crate) async fn send_stateless(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        invocation: Invocation,
        context: CallContext,
    ) -> Result<Raw, Error> {
        let Invocation { method, params } = invocation;
        let name = method.name();
        let takes_rounds = context.takes_rounds;
        let answer = match method {
            Method::Subscribe => return connection.subscribe(params, context).await,
            Method::Unsubscribe => return connection.unsubscribe(params, context).await,
            Method::CallTool | Method::ReadResource | Method::GetPrompt => {
                return self
                    .in_rounds(connection, method, params, context)
                    .await
                    .map_err(|e| not_found(method, e));
            }
            Method::GetTask | Method::UpdateTask | Method::CancelTask => {
                let id = tasks::require(connection, &params)?;
                let claiming = Claiming::for_call(&context, true);
                let answer = connection.request_stateless(name, params, Some(context), claiming).await;
                if answer.as_ref().is_ok_and(|task| method == Method::CancelTask || tasks::is_over(task)) {
                    connection.running.end(&id);
                }
                answer
            }
            Method::GetSkill | Method::ReadDirectory => {
                let claiming = Claiming::for_call(&context, false).knowing(SKILLS);
                connection.request_stateless(name, params, Some(context), claiming).await
            }
            Method::Complete | Method::SetLevel => {
                connection.request(name, Some(params), Some(context)).await
            }
        };
        let answer = answer.map_err(|error| not_found(method, error))?;
        let result = answer.object().unwrap_or_default();
        match ResultType::of(&result) {
            ResultType::Complete => Ok(complete(answer, result, takes_rounds)),
            _ => Err(odd(connection)),
        }
    }

    /// Sends a request repeatedly until it has a final result.
    async fn in_rounds(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        method: Method,
        mut params: Object,
        context: CallContext,
    ) -> Result<Raw, Error> {
        let takes_tasks = method == Method::CallTool && tasks::takes(&mut params, &context);
        if !context.takes_rounds {
            rounds::strip(&mut params);
        }
        let mut declares = takes_tasks && connection.runs_tasks();
        let mut next = params.clone();
        let mut begun = false;
        for _ in 0..ROUNDS {
            let sent = self.send_once(connection, method, next.clone(), &context, declares).await;
            let answer = match sent {
                // The tool requires a task: wait for it on behalf of the client.
                Err(error) if !declares && connection.runs_tasks() && tasks::is_required(&error) => {
                    declares = true;
                    continue;
                }
                sent => sent.map_err(|error| if begun { after_it_ran(error) } else { error })?,
            };
            begun = true;
            let result = answer.object().ok_or_else(|| odd(connection))?;
            match ResultType::of(&result) {
                ResultType::Complete => return Ok(complete(answer, result, context.takes_rounds)),
                ResultType::InputRequired if context.takes_rounds => return Ok(answer),
                ResultType::InputRequired => {
                    next = rounds::next(&connection.name, &params, &result, &context).await?;
                }
                ResultType::Task if method == Method::CallTool => {
                    if takes_tasks {
                        return Ok(self.places.put(result, connection).raw());
                    }
                    let done = tasks::wait::until_done(connection, result, &context).await;
                    return done.map_err(after_it_ran);
                }
                ResultType::Task | ResultType::Unknown => return Err(odd(connection)),
            }
        }
        Err(failed(format!("`{}` still needs something after {ROUNDS} rounds", connection.name)))
    }

    /// Sends a request. A call with mismatched headers is sent once more with headers from fresh lists.
    async fn send_once(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        method: Method,
        params: Object,
        context: &CallContext,
        tasks: bool,
    ) -> Result<Raw, Error> {
        let send = async |params: Object| {
            let mut claiming = Claiming::for_call(context, tasks);
            if method == Method::CallTool {
                claiming.mirrored = self.annotations.load().headers(&params);
            }
            connection.request_stateless(method.name(), params, Some(context.clone()), claiming).await
        };
        match send(params.clone()).await {
            Err(error) if method == Method::CallTool && error.name == Some(MISFIT) => {
                self.renew_lists().await?;
                send(params).await
            }
            answer => answer,
        }
    }
}

/// Removes `resultType` for clients of revisions with sessions.
fn complete(answer: Raw, mut result: Object, takes_rounds: bool) -> Raw {
    if !takes_rounds && result.remove("resultType").is_some() { result.raw() } else { answer }
}

/// Maps a "resource not found" error to the error kind used inside hikite.
fn not_found(method: Method, error: Error) -> Error {
    const NOT_FOUND: i32 = -32002;
    let reads = matches!(method, Method::ReadResource | Method::GetSkill);
    let Some(mut relayed) = error.relayed.as_ref().filter(|_| reads).and_then(Raw::object) else {
        return error;
    };
    let names_it = relayed.get("data").and_then(Raw::object).is_some_and(|data| data.get("uri").is_some());
    if upstream_code(&error) != Some(-32602) || !names_it {
        return error;
    }
    relayed.set("code", Raw::of(&NOT_FOUND));
    Error { kind: Kind::NotFound, relayed: Some(relayed.raw()), ..error }
}

fn odd(connection: &Connection) -> Error {
    failed(format!("`{}` answered with a result of an unknown type", connection.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_type_is_taken_out_of_a_result_and_only_for_sessions() {
        let answer = Raw::parse(r#"{"resultType":"complete", "content": [ ],"ttlMs":1}"#).expect("valid");
        let completed = |answer: &Raw, takes_rounds| {
            complete(answer.clone(), answer.object().expect("an object"), takes_rounds)
        };
        assert_eq!(completed(&answer, true), answer);
        assert_eq!(completed(&answer, false).as_str(), r#"{"content":[ ],"ttlMs":1}"#);
        let plain = Raw::parse(r#"{ "content": [ ] }"#).expect("valid");
        assert_eq!(completed(&plain, false), plain);
    }

    #[test]
    fn a_resource_that_is_not_there_is_not_found() {
        let error = |data: &str| {
            let text = format!(r#"{{"code":-32602,"message":"no","data":{data}}}"#);
            Error::from_upstream(Raw::parse(text).expect("valid"))
        };
        let missing = not_found(Method::ReadResource, error(r#"{"uri":"a:b"}"#));
        assert_eq!((missing.kind, upstream_code(&missing)), (Kind::NotFound, Some(-32002)));
        assert_eq!(not_found(Method::ReadResource, error("{}")).kind, Kind::Validation);
        assert_eq!(not_found(Method::CallTool, error(r#"{"uri":"a:b"}"#)).kind, Kind::Validation);
    }
}
