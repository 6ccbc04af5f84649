//! JSON-RPC messages. Decoding and encoding yields the same message, and invalid JSON is never accepted.

use bytes::Bytes;
use hikite_core::json::Raw;
use hikite_wire::encode;
use hikite_wire::message::{Message, split};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

pub fn assert_properties(input: &[u8]) {
    let bytes = Bytes::copy_from_slice(input);
    // Members that are never read, and so never written again, may hold invalid UTF-8.
    let is_json = serde_json::from_slice::<IgnoredAny>(input).is_ok();
    match Message::decode(&bytes) {
        Ok(message) => {
            assert!(is_json, "a message that is not JSON");
            assert!(body(&message).is_none_or(|raw| std::str::from_utf8(raw.bytes()).is_ok()));
            let again = Message::decode(&write(&message));
            assert_eq!(again.expect("what we write is a message"), message);
        }
        Err(bad) => {
            let expected: &[i32] = if is_json { &[-32700, -32600] } else { &[-32700] };
            assert!(expected.contains(&bad.code()), "{} for {bad}", bad.code());
        }
    }
    let parts = split(&bytes);
    let elements: Option<Vec<&RawValue>> = serde_json::from_slice(input).ok();
    assert_eq!(parts.as_ref().map(Vec::len), elements.as_ref().map(Vec::len));
    for (part, element) in parts.iter().flatten().zip(elements.iter().flatten()) {
        assert_eq!(&part[..], element.get().as_bytes());
    }
}

fn write(message: &Message) -> Bytes {
    match message {
        Message::Request { id, method, params } => encode::request(id, method, params.as_ref()),
        Message::Notification { method, params } => encode::notification(method, params.as_ref()),
        Message::Response { id, body: Ok(result) } => encode::result(id, result),
        Message::Response { id, body: Err(error) } => encode::error(Some(id), error),
    }
}

fn body(message: &Message) -> Option<&Raw> {
    match message {
        Message::Request { params, .. } | Message::Notification { params, .. } => params.as_ref(),
        Message::Response { body: Ok(body) | Err(body), .. } => Some(body),
    }
}
