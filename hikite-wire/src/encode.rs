//! Encodes JSON-RPC messages. Bodies are copied unchanged; only the envelope is written here.

use bytes::Bytes;
use hikite_core::json::{Object, Raw, write_string};

use crate::message::MessageId;

pub fn request(id: &MessageId, method: &str, params: Option<&Raw>) -> Bytes {
    let mut out = start(64 + method.len() + params.map_or(0, |params| params.bytes().len()));
    member_id(id, &mut out);
    member_method(method, params, &mut out);
    out.into()
}

pub fn notification(method: &str, params: Option<&Raw>) -> Bytes {
    let mut out = start(48 + method.len() + params.map_or(0, |params| params.bytes().len()));
    member_method(method, params, &mut out);
    out.into()
}

pub fn result(id: &MessageId, result: &Raw) -> Bytes {
    let mut out = start(48 + result.bytes().len());
    member_id(id, &mut out);
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(result.bytes());
    out.push(b'}');
    out.into()
}

/// Encodes an error response; without an id if the request's id could not be read, as the MCP schema allows.
pub fn error(id: Option<&MessageId>, error: &Raw) -> Bytes {
    let mut out = start(64 + error.bytes().len());
    if let Some(id) = id {
        member_id(id, &mut out);
    }
    out.extend_from_slice(b",\"error\":");
    out.extend_from_slice(error.bytes());
    out.push(b'}');
    out.into()
}

/// Builds a JSON-RPC error object.
pub fn error_object(code: i32, message: &str) -> Raw {
    Object::default().with("code", Raw::of(&code)).with("message", message).raw()
}

/// Encodes several messages as one array, for the only revision with batches.
pub fn batch(messages: &[Bytes]) -> Bytes {
    let mut out = vec![b'['];
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(message);
    }
    out.push(b']');
    out.into()
}

fn start(capacity: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(capacity);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    out
}

fn member_id(id: &MessageId, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"id\":");
    out.extend_from_slice(id.raw().bytes());
}

fn member_method(method: &str, params: Option<&Raw>, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"method\":");
    write_string(method, out);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.bytes());
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    #[test]
    fn what_is_written_reads_back() {
        let params = Raw::parse(r#"{"a" :1}"#).expect("valid");
        let bytes = request(&MessageId::number(7), "tools/call", Some(&params));
        let expected = Message::Request { id: MessageId::number(7), method: "tools/call".into(), params: Some(params) };
        assert_eq!(Message::decode(&bytes).expect("valid"), expected);
        let refusal = error(None, &error_object(-32700, "no"));
        assert_eq!(&refusal[..], br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#);
    }
}
