//! One JSON-RPC message, decoded only as far as routing needs: id, method, and raw bodies that share the buffer they
//! arrived in.

use std::borrow::Cow;

use bytes::Bytes;
use hikite_core::json::Raw;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A JSON-RPC id as its sender wrote it: a string or a number. Compared byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageId(Raw);

impl MessageId {
    pub fn number(number: u64) -> Self {
        Self(Raw::of(&number))
    }

    pub fn raw(&self) -> &Raw {
        &self.0
    }

    /// Returns the number of an id that we created; some servers return numbers as strings.
    pub fn as_number(&self) -> Option<u64> {
        self.0.decode().ok().or_else(|| self.0.text()?.parse().ok())
    }

    pub fn read(raw: Raw) -> Option<Self> {
        matches!(raw.bytes().first(), Some(b'"' | b'-' | b'0'..=b'9')).then_some(Self(raw))
    }
}

impl std::hash::Hash for MessageId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.bytes().hash(state);
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    Request {
        id: MessageId,
        method: Box<str>,
        params: Option<Raw>,
    },
    Notification {
        method: Box<str>,
        params: Option<Raw>,
    },
    /// A response: the result, or the JSON-RPC error object.
    Response {
        id: MessageId,
        body: Result<Raw, Raw>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum InvalidMessage {
    #[error("not valid JSON: {0}")]
    Json(serde_json::Error),
    #[error("not a JSON-RPC 2.0 message: {reason}")]
    Shape { reason: &'static str, id: Option<MessageId> },
}

impl InvalidMessage {
    /// Returns the JSON-RPC error code.
    pub fn code(&self) -> i32 {
        match self {
            Self::Json(_) => -32700,
            Self::Shape { .. } => -32600,
        }
    }

    /// Returns the id of the message, if it could be read.
    pub fn id(&self) -> Option<&MessageId> {
        match self {
            Self::Json(_) => None,
            Self::Shape { id, .. } => id.as_ref(),
        }
    }
}

#[derive(Deserialize)]
struct MessageEnvelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<EnvelopeText<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<EnvelopeText<'a>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A string that is copied only if it contains escapes; an `Option<Cow<str>>` would always be copied.
#[derive(Deserialize)]
struct EnvelopeText<'a>(#[serde(borrow)] Cow<'a, str>);

/// Distinguishes `null` from an absent member.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

impl Message {
    pub fn decode(bytes: &Bytes) -> Result<Self, InvalidMessage> {
        let envelope: MessageEnvelope<'_> = serde_json::from_slice(bytes).map_err(|error| match error.classify() {
            // Valid JSON of the wrong form (an array, a number, `"method": 1`) is an invalid request, not a parse
            // error.
            serde_json::error::Category::Data if Raw::parse(bytes.clone()).is_ok() => {
                InvalidMessage::Shape { reason: "members of the wrong type", id: None }
            }
            _ => InvalidMessage::Json(error),
        })?;
        let id = envelope.id.and_then(|id| MessageId::read(Raw::part(bytes, id)));
        let bad = |reason| Err(InvalidMessage::Shape { reason, id: id.clone() });
        if envelope.jsonrpc.is_none_or(|version| version.0 != "2.0") {
            return bad("`jsonrpc` must be \"2.0\"");
        }
        if envelope.id.is_some() && id.is_none() && envelope.error.is_none() {
            return bad("`id` must be a string or a number");
        }
        let params = envelope.params.map(|params| Raw::part(bytes, params)).filter(|params| !params.is_null());
        if params.as_ref().is_some_and(|params| !params.is_object()) {
            return bad("`params` must be an object");
        }
        let body = match (envelope.result, envelope.error) {
            (Some(result), None) => Some(Ok(Raw::part(bytes, result))),
            (_, Some(error)) => Some(Err(Raw::part(bytes, error))),
            (None, None) => None,
        };
        let method = envelope.method.map(|method| method.0.into());
        match (method, id.clone(), body) {
            (Some(method), Some(id), None) => Ok(Self::Request { id, method, params }),
            (Some(method), None, None) => Ok(Self::Notification { method, params }),
            (None, Some(id), Some(body)) => Ok(Self::Response { id, body }),
            (None, None, Some(_)) => bad("an answer needs the `id` of its request"),
            (Some(_), _, Some(_)) => bad("both `method` and an answer"),
            (None, _, None) => bad("neither `method` nor `result` nor `error`"),
        }
    }
}

/// Kind of a message, judged by its first bytes when the rest was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageHead {
    /// A response to the request with this id.
    Answer(u64),
    /// A request or a notification.
    NotResponse,
    /// The id comes later, or it is no message.
    Unknown,
}

impl MessageHead {
    pub fn read(bytes: &[u8]) -> Self {
        Self::find(bytes).unwrap_or(Self::Unknown)
    }

    /// Scans members up to the first nested one, which may be truncated.
    fn find(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.trim_ascii_start().strip_prefix(b"{")?;
        let mut id = None;
        loop {
            let (name, after) = word(rest.trim_ascii_start())?;
            rest = after.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
            match name {
                br#""method""# => return Some(Self::NotResponse),
                br#""result""# | br#""error""# => return id.map(Self::Answer),
                _ => {}
            }
            let (value, after) = word(rest)?;
            if name == br#""id""# {
                let text = std::str::from_utf8(value).ok()?;
                id = Some(text.trim_matches('"').parse().ok()?);
            }
            rest = after.trim_ascii_start().strip_prefix(b",")?;
        }
    }
}

/// Splits off a string without escapes, or another scalar, and returns the rest.
fn word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = match bytes.first()? {
        b'"' => bytes[1..].iter().position(|byte| *byte == b'"')? + 2,
        b'{' | b'[' => return None,
        _ => bytes.iter().position(|byte| b",}] \t".contains(byte))?,
    };
    Some(bytes.split_at(end))
}

/// Splits an array into its messages; `None` if the body is not an array.
pub fn split(bytes: &Bytes) -> Option<Vec<Bytes>> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if *first != b'[' {
        return None;
    }
    let array = Raw::parse(bytes.clone()).ok()?.items()?;
    Some(array.into_iter().map(|item| item.bytes().clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str) -> Result<Message, InvalidMessage> {
        Message::decode(&Bytes::from(text.to_owned()))
    }

    #[test]
    fn bodies_stay_raw_and_share_the_buffer() {
        let bytes = Bytes::from(r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"x": 1.0 }}"#);
        let Ok(Message::Request { id, method, params: Some(params) }) = Message::decode(&bytes) else {
            panic!("a request");
        };
        assert_eq!((id.raw().as_str().as_ref(), &*method), (r#""a""#, "tools/call"));
        assert_eq!(params.as_str(), r#"{"x": 1.0 }"#);
        assert!(bytes.as_ptr_range().contains(&params.bytes().as_ptr()));
    }

    #[test]
    fn the_beginning_of_a_message_may_say_what_it_is() {
        let head = |text: &str| MessageHead::read(text.as_bytes());
        assert_eq!(head(r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"ty"#), MessageHead::Answer(7));
        assert_eq!(head(r#" { "id" : "7" , "jsonrpc" : "2.0", "result": "#), MessageHead::Answer(7));
        assert_eq!(head(r#"{"jsonrpc":"2.0","id":7,"error":{"#), MessageHead::Answer(7));
        assert_eq!(head(r#"{"jsonrpc":"2.0","id":7,"method":"x","#), MessageHead::NotResponse);
        assert_eq!(head(r#"{"jsonrpc":"2.0","method":"notifications/message","#), MessageHead::NotResponse);
        for unknown in [r#"{"result":{"id":7}"#, r#"{"jsonrpc":"2.0","id":7"#, "[{", "", "log", r#"{"id":{}"#] {
            assert_eq!(head(unknown), MessageHead::Unknown, "{unknown}");
        }
    }

    #[test]
    fn a_null_result_is_an_answer() {
        let message = decode(r#"{"jsonrpc":"2.0","id":1,"result":null}"#).expect("valid");
        assert_eq!(message, Message::Response { id: MessageId::number(1), body: Ok(Raw::null()) });
    }

    #[track_caller]
    fn refused(text: &str, code: i32) {
        let error = decode(text).expect_err(text);
        assert_eq!(error.code(), code, "{text}: {error}");
    }

    #[test]
    fn what_is_not_a_message_is_refused_with_the_right_number() {
        refused("", -32700);
        refused("{", -32700);
        refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\u{1}\"}", -32700);
        refused("[]", -32600);
        refused("1", -32600);
        refused(r#"{"id":1,"method":"x"}"#, -32600);
        refused(r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, -32600);
        refused(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, -32600);
        refused(r#"{"jsonrpc":"2.0","id":1}"#, -32600);
        refused(r#"{"jsonrpc":"2.0","method":1}"#, -32600);
        refused(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}"#, -32600);
        refused(r#"{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}"#, -32600);
    }

    #[test]
    fn only_an_array_splits() {
        assert_eq!(split(&Bytes::from(" [1, {} ]")).map(|parts| parts.len()), Some(2));
        assert_eq!(split(&Bytes::from("{}")), None);
    }
}
