//! The sender fields of a message, `_meta.token` and `_meta.projectId`. Both are for hikite only: they are read and
//! removed here, before anything is relayed, traced or logged.

use axum::body::Body;
use axum::extract::Request;
use bytes::Bytes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;
use hikite_gateway::off_worker::off_worker;
use hikite_wire::message::{Message, split};
use http_body_util::{BodyExt, Limited};
use memchr::memmem;

use crate::app::App;
use crate::request_context::{CallerProof, RequestContext};
use crate::{auth, project};

const META: &str = "_meta";
const TOKEN: &str = "token";
const PROJECT: &str = "projectId";
/// Maximum bytes of a body that are read before authentication.
const BODY_BYTES: usize = 1024 * 1024;

/// The params of a message, with `_meta` parsed and without the sender fields.
#[derive(Debug, Default)]
pub(crate) struct MessageParams {
    pub(crate) members: Object,
    pub(crate) meta: Option<Object>,
}

/// The sender fields of a message.
#[derive(Debug, Default)]
struct SenderFields {
    token: Option<Raw>,
    project: Option<Raw>,
}

impl MessageParams {
    /// Parses the params and returns them with the context of their sender. Fails if that contradicts the authenticated
    /// caller.
    pub(crate) fn read(
        app: &App,
        params: Option<&Raw>,
        request_context: RequestContext,
    ) -> Result<(Self, RequestContext), Error> {
        let mut members = params.and_then(Raw::object).unwrap_or_default();
        let mut meta = members.get(META).and_then(Raw::object);
        let sender = meta.as_mut().and_then(SenderFields::take);
        let Some(sender) = sender else { return Ok((Self { members, meta }, request_context)) };
        put_back(&mut members, meta.as_ref());
        meta.take_if(|meta| meta.is_empty());
        Ok((Self { members, meta }, sender.settle(app, request_context)?))
    }
}

/// Handles the sender fields of params whose `_meta` is not parsed; most need not be.
pub(crate) fn settle(app: &App, params: &mut Object, request_context: RequestContext) -> Result<RequestContext, Error> {
    let meta = params.get(META).filter(|meta| may_name_sender(meta.bytes()));
    let Some(mut meta) = meta.and_then(Raw::object) else { return Ok(request_context) };
    let Some(sender) = SenderFields::take(&mut meta) else { return Ok(request_context) };
    put_back(params, Some(&meta));
    sender.settle(app, request_context)
}

/// Removes the sender fields from a client's answer to a question.
pub(crate) fn without_sender(result: Raw) -> Raw {
    let Some(mut members) = result.object().filter(|_| may_name_sender(result.bytes())) else {
        return result;
    };
    let Some(mut meta) = members.get(META).and_then(Raw::object) else { return result };
    if SenderFields::take(&mut meta).is_none() {
        return result;
    }
    put_back(&mut members, Some(&meta));
    members.raw()
}

/// Writes `_meta` back; an empty one is removed.
fn put_back(members: &mut Object, meta: Option<&Object>) {
    match meta.filter(|meta| !meta.is_empty()) {
        Some(meta) => members.set(META, meta.raw()),
        None => drop(members.remove(META)),
    }
}

/// Returns the token in the messages of a body, if it is the same in all. The body can be read again.
pub(crate) async fn token_in_body(app: &App, request: &mut Request) -> Option<Secret> {
    let limit = BODY_BYTES.min(app.limits.body_bytes);
    let body = std::mem::replace(request.body_mut(), Body::empty());
    let reading = Limited::new(body, limit).collect();
    let body = tokio::time::timeout(app.limits.body_timeout, reading).await.ok()?.ok()?.to_bytes();
    // The sender is not authenticated yet, so a cheap search comes before parsing.
    if !may_name_sender(&body) {
        return None;
    }
    let token = off_worker(body.len(), || only_token_in(&body, app.limits.batch_tasks)).await?;
    *request.body_mut() = Body::from(body);
    Some(Secret::hidden(token))
}

/// Returns the token in all messages that have one; `None` if they differ or there are more than `most` messages.
fn only_token_in(body: &Bytes, most: usize) -> Option<String> {
    let messages = split(body).unwrap_or_else(|| vec![body.clone()]);
    if messages.len() > most {
        return None;
    }
    let mut tokens = messages.iter().filter_map(token_in);
    let first = tokens.next()?;
    tokens.all(|other| other == first).then_some(first)
}

fn token_in(message: &Bytes) -> Option<String> {
    let said = match Message::decode(message).ok()? {
        Message::Request { params, .. } | Message::Notification { params, .. } => params?,
        Message::Response { body, .. } => body.ok()?,
    };
    said.object()?.get(META)?.object()?.text(TOKEN)
}

/// Searches for the sender fields; an escape sequence may spell either name in another way.
fn may_name_sender(text: &[u8]) -> bool {
    [&b"\"token\""[..], b"\"projectId\"", b"\\u00"].iter().any(|name| memmem::find(text, name).is_some())
}

impl SenderFields {
    /// Removes the sender fields from `_meta`; `None` if there are none.
    fn take(meta: &mut Object) -> Option<Self> {
        let sender = Self { token: meta.remove(TOKEN), project: meta.remove(PROJECT) };
        (sender.token.is_some() || sender.project.is_some()).then_some(sender)
    }

    fn settle(self, app: &App, request_context: RequestContext) -> Result<RequestContext, Error> {
        let request_context = self.prove(app, request_context)?;
        match self.project.filter(|project| !project.is_null()) {
            Some(name) => {
                let caller = project::named_in(app, request_context.caller, name.text().as_deref())?;
                Ok(RequestContext { caller, ..request_context })
            }
            None => Ok(request_context),
        }
    }

    fn prove(&self, app: &App, request_context: RequestContext) -> Result<RequestContext, Error> {
        let Some(token) = self.token.as_ref().filter(|token| !token.is_null()) else {
            return Ok(request_context);
        };
        let token = token.text().ok_or_else(not_the_sender)?;
        let known = auth::known(app, &token)?.ok_or_else(not_the_sender)?;
        match request_context.proof {
            CallerProof::Token | CallerProof::Local | CallerProof::Login
                if known.has_same_credentials(&request_context.caller) =>
            {
                Ok(request_context)
            }
            CallerProof::Token | CallerProof::Local | CallerProof::Login => Err(not_the_sender()),
            // A project that the URL names applies to this caller as well.
            CallerProof::Unauthenticated => {
                let caller = match request_context.caller.project.as_deref() {
                    Some(name) => project::named_in(app, known, Some(name))?,
                    None => known,
                };
                Ok(RequestContext { caller, ..request_context })
            }
        }
    }
}

fn not_the_sender() -> Error {
    let error = Error::new(ErrorKind::Authentication, "`_meta.token` is not valid for this request.");
    error.hint("Send the same token as in `Authorization`, or only one of the two.")
}

#[cfg(test)]
mod tests {
    use hikite_core::caller::Caller;

    use super::*;
    use crate::request_context::PIPE;
    use crate::test_app::{app, app_with};

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).expect("JSON")
    }

    fn request_context(proof: CallerProof) -> RequestContext {
        RequestContext::bare(Caller::owner(), proof, PIPE)
    }

    /// Checks the remaining params of both ways of reading.
    #[track_caller]
    fn left(text: &str, expected: &str) {
        let app = app_with(crate::settings::Auth::Token(Secret::hidden("own")));
        let (read, _) =
            MessageParams::read(&app, Some(&raw(text)), request_context(CallerProof::Token)).expect("the owner");
        assert_eq!(read.members.raw().as_str(), expected);
        assert_eq!(read.members.get(META).is_some(), read.meta.is_some(), "{text}");
        let mut params = raw(text).object().expect("an object");
        settle(&app, &mut params, request_context(CallerProof::Token)).expect("the owner");
        assert_eq!(params.raw().as_str(), expected);
        assert_eq!(without_sender(raw(text)).as_str(), expected);
    }

    #[tokio::test]
    async fn what_a_message_says_of_its_sender_is_taken_out_and_nothing_else() {
        left(r#"{"name":"t","_meta":{"token":"own"}}"#, r#"{"name":"t"}"#);
        left(r#"{"_meta":{"a":1.50,"token":"own","projectId":""},"b":2}"#, r#"{"_meta":{"a":1.50},"b":2}"#);
        left(r#"{"_meta":{"projectId":"__unassigned__"}}"#, "{}");
        left(r#"{"_meta":{"\u0074oken":"own","project\u0049d":null}}"#, "{}");
        left(r#"{"_meta":{"token":"x","token":"own"}}"#, "{}");
        // At any other position the names belong to the tool.
        let others = r#"{"token":"x","arguments":{"_meta":{"token":"y"},"projectId":1}}"#;
        left(others, others);
    }

    #[tokio::test]
    async fn bytes_that_name_nobody_stay_as_they_are() {
        let app = app();
        let text = r#"{ "_meta" : { "progressToken":  1 } }"#;
        let mut params = raw(text).object().expect("an object");
        settle(&app, &mut params, request_context(CallerProof::Unauthenticated)).expect("the owner");
        assert_eq!(
            params.get(META).map(|meta| meta.as_str().into_owned()).as_deref(),
            Some(r#"{ "progressToken":  1 }"#)
        );
        assert_eq!(without_sender(raw(text)).as_str(), text);
    }

    #[tokio::test]
    async fn another_token_and_an_unknown_project_are_refused() {
        let app = app_with(crate::settings::Auth::Token(Secret::hidden("own")));
        let kind = |text: &str, proof| {
            MessageParams::read(&app, Some(&raw(text)), request_context(proof)).map(drop).map_err(|error| error.kind)
        };
        for proof in [CallerProof::Token, CallerProof::Unauthenticated] {
            for wrong in [r#"{"_meta":{"token":"x"}}"#, r#"{"_meta":{"token":""}}"#, r#"{"_meta":{"token":7}}"#] {
                assert_eq!(kind(wrong, proof), Err(ErrorKind::Authentication), "{wrong}");
            }
            for wrong in [r#"{"_meta":{"projectId":"nowhere"}}"#, r#"{"_meta":{"projectId":7}}"#] {
                assert_eq!(kind(wrong, proof), Err(ErrorKind::NotFound), "{wrong}");
            }
            assert_eq!(kind(r#"{"_meta":{"token":"own","projectId":null}}"#, proof), Ok(()));
        }
    }

    #[tokio::test]
    async fn the_messages_of_a_body_name_one_token() {
        let app = app();
        let token = async |text: &str| {
            let mut request = Request::new(Body::from(text.to_owned()));
            let token = token_in_body(&app, &mut request).await.map(|token| token.expose().to_owned());
            let left = request.into_body().collect().await.expect("a body").to_bytes();
            (token, left == text.as_bytes())
        };
        let call = |meta: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{meta}}}}}"#);
        let (a, b, none) = (call(r#"{"token":"a"}"#), call(r#"{"token":"b"}"#), call("{}"));
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"token":"a"}}}"#;
        for text in [&a, &format!("[{a},{none},{answer}]"), answer] {
            assert_eq!(token(text).await, (Some("a".into()), true), "{text}");
        }
        for text in [&none, &format!("[{a},{b}]"), "", "[]", "{}", "no JSON"] {
            assert_eq!(token(text).await.0, None, "{text}");
        }
        let most = app.limits.batch_tasks;
        let many = |count| format!("[{}]", vec![a.as_str(); count].join(","));
        assert_eq!(token(&many(most)).await, (Some("a".into()), true));
        assert_eq!(token(&many(most + 1)).await.0, None, "none of them is taken apart");
        assert_eq!(token(&call(&format!(r#"{{"token":"a","x":"{}"}}"#, "x".repeat(BODY_BYTES)))).await.0, None);
    }
}
