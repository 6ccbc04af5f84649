//! Multi-round results of the stateless revision, where the server needs input first. A client that supports rounds
//! gets them unchanged; for any other client the questions are asked here and the next request is sent by hikite.

use std::time::Duration;

use futures_util::future::try_join_all;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, InputRequest, InputRequestKind};

/// Maximum number of rounds per call.
pub(crate) const ROUNDS: usize = 16;
/// Pause before the next round if the server asks nothing.
const LOAD_PAUSE: Duration = Duration::from_millis(200);

const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// Removes round members of another request, or for a server without rounds.
pub(crate) fn strip(params: &mut Object) {
    params.remove(RESPONSES);
    params.remove(STATE);
}

/// Returns the params of the next round: those of the first request, and the requested input.
pub(crate) async fn next(
    module: &str,
    first: &Object,
    result: &Object,
    context: &CallContext,
) -> Result<Object, Error> {
    let mut params = first.clone();
    strip(&mut params);
    let requests = result.get("inputRequests").and_then(Raw::object);
    let state = result.get(STATE);
    match requests.filter(|requests| !requests.is_empty()) {
        Some(requests) => params.set(RESPONSES, ask_all(module, &requests, context).await?),
        None if state.is_some() => tokio::time::sleep(LOAD_PAUSE).await,
        None => return Err(failed(format!("`{module}` needs input but does not say what."))),
    }
    if let Some(state) = state {
        params.set(STATE, state.clone());
    }
    Ok(params)
}

/// Asks the client all questions at once and returns its answers by key.
pub(crate) async fn ask_all(module: &str, requests: &Object, context: &CallContext) -> Result<Object, Error> {
    let questions: Result<Vec<_>, Error> =
        requests.iter().map(|(key, request)| question(module, key, request, context)).collect();
    // All questions are validated before the first is asked, so that no answer is wasted.
    let asked = questions?.into_iter().map(|(key, question)| async move {
        match context.back.ask(question).await {
            Ok(answer) => Ok((key, answer)),
            Err(error) => Err(refused(&error)),
        }
    });
    let answers = try_join_all(asked).await?;
    Ok(answers.into_iter().fold(Object::default(), |all, (key, answer)| all.with(key, answer)))
}

fn question<'a>(
    module: &str,
    key: &'a str,
    request: &Raw,
    context: &CallContext,
) -> Result<(&'a str, InputRequest), Error> {
    let request = request.object().unwrap_or_default();
    let method = request.text("method").unwrap_or_default();
    let kind = InputRequestKind::of_method(&method)
        .ok_or_else(|| failed(format!("`{module}` sent `{method}`, which is not a request to a client.")))?;
    if !kind.is_supported_by(&context.session) {
        context.back.capability_missing(kind);
        return Err(failed(format!("`{module}` needs `{method}`, which the client does not support.")));
    }
    let params = request.get("params").cloned().unwrap_or_else(Raw::empty_object);
    let params = if context.accepts_input_required { params } else { with_elicitation_id(kind, params) };
    Ok((key, InputRequest { kind, params, key: Some(key.into()) }))
}

/// Adds the `elicitationId` that revisions with sessions require for URL elicitation.
fn with_elicitation_id(kind: InputRequestKind, params: Raw) -> Raw {
    let Some(members) = params.object().filter(|_| kind == InputRequestKind::Elicitation) else {
        return params;
    };
    let by_url = members.text("mode").as_deref() == Some("url");
    if !by_url || members.get("elicitationId").is_some() {
        return params;
    }
    let random = getrandom::u64().unwrap_or_default();
    members.with("elicitationId", format!("hikite-{random:016x}").as_str()).raw()
}

fn refused(error: &Raw) -> Error {
    let message = error.object().and_then(|error| error.text("message"));
    failed(message.unwrap_or_else(|| "The client refused to answer.".into()))
}

pub(crate) fn failed(message: impl Into<Box<str>>) -> Error {
    Error::new(ErrorKind::ToolExecution, message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hikite_core::caller::{Caller, ClientCapabilities, Session, SessionId};
    use hikite_core::source::{Backchannel, BoxFuture, CallOrigin};
    use parking_lot::Mutex;

    use super::*;

    /// A client that answers every question with its own params.
    #[derive(Debug, Default)]
    struct EchoClient {
        lacking: Mutex<Vec<InputRequestKind>>,
    }

    impl Backchannel for EchoClient {
        fn progress(&self, _: Object) {}
        fn log(&self, _: Raw) {}
        fn capability_missing(&self, kind: InputRequestKind) {
            self.lacking.lock().push(kind);
        }
        fn ask(&self, question: InputRequest) -> BoxFuture<'static, Result<Raw, Raw>> {
            Box::pin(async move { Ok(question.params) })
        }
    }

    fn context(client_capabilities: ClientCapabilities) -> (CallContext, Arc<EchoClient>) {
        let session = Session { id: SessionId(1), caller: Caller::owner(), client_capabilities };
        let back = Arc::new(EchoClient::default());
        (
            CallContext {
                session: Arc::new(session),
                back: back.clone(),
                origin: CallOrigin::default(),
                accepts_input_required: false,
                account: None,
            },
            back,
        )
    }

    fn object(text: &str) -> Object {
        Raw::parse(text.to_owned()).expect("valid").object().expect("an object")
    }

    #[tokio::test]
    async fn answers_and_state_go_with_the_next_request_and_only_then() {
        let (context, _) = context(ClientCapabilities::all());
        let first = object(r#"{"name":"t","arguments":{"a":1},"requestState":"stale"}"#);
        let asks = object(
            r#"{"inputRequests":{"who":{"method":"elicitation/create","params":{"message":"?"}}},"requestState":"s"}"#,
        );
        let params = next("m", &first, &asks, &context).await.expect("answered");
        let expected =
            r#"{"name":"t","arguments":{"a":1},"inputResponses":{"who":{"message":"?"}},"requestState":"s"}"#;
        assert_eq!(params.raw().as_str(), expected);
        let asks = object(r#"{"inputRequests":{"r":{"method":"roots/list"}}}"#);
        let params = next("m", &first, &asks, &context).await.expect("answered");
        assert!(params.get(STATE).is_none());
        let params = next("m", &first, &object(r#"{"requestState":"x"}"#), &context).await.expect("a state");
        assert!(params.get(RESPONSES).is_none() && params.get(STATE).is_some());
        assert!(next("m", &first, &Object::default(), &context).await.is_err());
    }

    #[tokio::test]
    async fn what_the_client_cannot_answer_fails_the_call_and_is_told() {
        let (context, back) = context(ClientCapabilities { sampling: None, ..ClientCapabilities::all() });
        let asks = object(r#"{"a":{"method":"roots/list"},"b":{"method":"sampling/createMessage"}}"#);
        assert!(ask_all("m", &asks, &context).await.is_err());
        assert_eq!(*back.lacking.lock(), [InputRequestKind::Sampling]);
        assert!(ask_all("m", &object(r#"{"a":{"method":"tools/call"}}"#), &context).await.is_err());
    }

    #[test]
    fn a_url_gets_the_id_that_session_clients_want() {
        let url = Raw::parse(r#"{"mode":"url","url":"https://x"}"#).expect("valid");
        let with = with_elicitation_id(InputRequestKind::Elicitation, url).object().expect("an object");
        assert!(with.text("elicitationId").is_some_and(|id| id.len() > 10));
        let form = Raw::parse(r#"{"message":"?"}"#).expect("valid");
        assert_eq!(with_elicitation_id(InputRequestKind::Elicitation, form.clone()), form);
    }
}
