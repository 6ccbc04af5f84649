//! The sender fields of a message, `_meta.token` and `_meta.projectId`. Both are for hikite only: they are read and
//! removed here, before anything is relayed, traced or logged.

use axum::body::Body;
use axum::extract::Request;
use bytes::Bytes;
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;
use hikite_gateway::aside::by_cost;
use hikite_wire::message::{Message, split};
use http_body_util::{BodyExt, Limited};
use memchr::memmem;

use crate::app::App;
use crate::arrival::{Arrival, Proof};
use crate::{auth, project};

const META: &str = "_meta";
const TOKEN: &str = "token";
const PROJECT: &str = "projectId";
/// Maximum bytes of a body that are read before authentication.
const BODY_BYTES: usize = 1024 * 1024;

/// The params of a message, with `_meta` parsed and without the sender fields.
#[derive(Debug, Default)]
pub(crate) struct Params {
    pub(crate) members: Object,
    pub(crate) meta: Option<Object>,
}

/// The sender fields of a message.
#[derive(Debug, Default)]
struct Sender {
    token: Option<Raw>,
    project: Option<Raw>,
}

impl Params {
    /// Parses the params and returns them with the context of their sender. Fails if that contradicts the authenticated
    /// caller.
    pub(crate) fn read(app: &App, params: Option<&Raw>, arrival: Arrival) -> Result<(Self, Arrival), Error> {
        let mut members = params.and_then(Raw::object).unwrap_or_default();
        let mut meta = members.get(META).and_then(Raw::object);
        let sender = meta.as_mut().and_then(Sender::take);
        let Some(sender) = sender else { return Ok((Self { members, meta }, arrival)) };
        put_back(&mut members, meta.as_ref());
        meta.take_if(|meta| meta.is_empty());
        Ok((Self { members, meta }, sender.settle(app, arrival)?))
    }
}

/// Handles the sender fields of params whose `_meta` is not parsed; most need not be.
pub(crate) fn settle(app: &App, params: &mut Object, arrival: Arrival) -> Result<Arrival, Error> {
    let meta = params.get(META).filter(|meta| may_name_sender(meta.bytes()));
    let Some(mut meta) = meta.and_then(Raw::object) else { return Ok(arrival) };
    let Some(sender) = Sender::take(&mut meta) else { return Ok(arrival) };
    put_back(params, Some(&meta));
    sender.settle(app, arrival)
}

/// Removes the sender fields from a client's answer to a question.
pub(crate) fn cleaned(result: Raw) -> Raw {
    let Some(mut members) = result.object().filter(|_| may_name_sender(result.bytes())) else {
        return result;
    };
    let Some(mut meta) = members.get(META).and_then(Raw::object) else { return result };
    if Sender::take(&mut meta).is_none() {
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
    let token = by_cost(body.len(), || only_token_in(&body, app.limits.batch_tasks)).await?;
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

impl Sender {
    /// Removes the sender fields from `_meta`; `None` if there are none.
    fn take(meta: &mut Object) -> Option<Self> {
        let sender = Self { token: meta.remove(TOKEN), project: meta.remove(PROJECT) };
        (sender.token.is_some() || sender.project.is_some()).then_some(sender)
    }

    fn settle(self, app: &App, arrival: Arrival) -> Result<Arrival, Error> {
        let arrival = self.prove(app, arrival)?;
        match self.project.filter(|project| !project.is_null()) {
            Some(name) => {
                let caller = project::named_in(app, arrival.caller, name.text().as_deref())?;
                Ok(Arrival { caller, ..arrival })
            }
            None => Ok(arrival),
        }
    }

    fn prove(&self, app: &App, arrival: Arrival) -> Result<Arrival, Error> {
        let Some(token) = self.token.as_ref().filter(|token| !token.is_null()) else { return Ok(arrival) };
        let token = token.text().ok_or_else(not_the_sender)?;
        let known = auth::known(app, &token)?.ok_or_else(not_the_sender)?;
        match arrival.proof {
            Proof::Token | Proof::Local | Proof::Login if known.is_same_person(&arrival.caller) => {
                Ok(arrival)
            }
            Proof::Token | Proof::Local | Proof::Login => Err(not_the_sender()),
            // A project that the URL names applies to this caller as well.
            Proof::Place => {
                let caller = match arrival.caller.project.as_deref() {
                    Some(name) => project::named_in(app, known, Some(name))?,
                    None => known,
                };
                Ok(Arrival { caller, ..arrival })
            }
        }
    }
}

fn not_the_sender() -> Error {
    let error = Error::new(Kind::Authentication, "`_meta.token` is not valid for this request");
    error.hint("send the same token as in `Authorization`, or one of the two alone")
}

#[cfg(test)]
mod tests {
    use hikite_core::caller::Caller;

    use super::*;
    use crate::arrival::PIPE;
    use crate::probe::{app, app_with};

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).expect("JSON")
    }

    fn arrival(proof: Proof) -> Arrival {
        Arrival::bare(Caller::owner(), proof, PIPE)
    }

    /// Checks the remaining params of both ways of reading.
    #[track_caller]
    fn left(text: &str, expected: &str) {
        let app = app_with(auth::Auth::Token(Secret::hidden("own")));
        let (read, _) = Params::read(&app, Some(&raw(text)), arrival(Proof::Token)).expect("the owner");
        assert_eq!(read.members.raw().as_str(), expected);
        assert_eq!(read.members.get(META).is_some(), read.meta.is_some(), "{text}");
        let mut params = raw(text).object().expect("an object");
        settle(&app, &mut params, arrival(Proof::Token)).expect("the owner");
        assert_eq!(params.raw().as_str(), expected);
        assert_eq!(cleaned(raw(text)).as_str(), expected);
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
        settle(&app, &mut params, arrival(Proof::Place)).expect("the owner");
        assert_eq!(
            params.get(META).map(|meta| meta.as_str().into_owned()).as_deref(),
            Some(r#"{ "progressToken":  1 }"#)
        );
        assert_eq!(cleaned(raw(text)).as_str(), text);
    }

    #[tokio::test]
    async fn another_token_and_an_unknown_project_are_refused() {
        let app = app_with(auth::Auth::Token(Secret::hidden("own")));
        let kind = |text: &str, proof| {
            Params::read(&app, Some(&raw(text)), arrival(proof)).map(drop).map_err(|error| error.kind)
        };
        for proof in [Proof::Token, Proof::Place] {
            for wrong in
                [r#"{"_meta":{"token":"x"}}"#, r#"{"_meta":{"token":""}}"#, r#"{"_meta":{"token":7}}"#]
            {
                assert_eq!(kind(wrong, proof), Err(Kind::Authentication), "{wrong}");
            }
            for wrong in [r#"{"_meta":{"projectId":"nowhere"}}"#, r#"{"_meta":{"projectId":7}}"#] {
                assert_eq!(kind(wrong, proof), Err(Kind::NotFound), "{wrong}");
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
        let call =
            |meta: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{meta}}}}}"#);
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
        assert_eq!(
            token(&call(&format!(r#"{{"token":"a","x":"{}"}}"#, "x".repeat(BODY_BYTES)))).await.0,
            None
        );
    }
}
