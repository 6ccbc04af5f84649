//! The response to one JSON-RPC request. It knows by itself whether the caller lacks a scope; nobody reads its bytes
//! for that.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hikite_core::error::Error;
use hikite_gateway::CallResult;
use hikite_wire::encode;
use hikite_wire::message::MessageId;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use crate::challenge::InsufficientScope;

/// The response to a request, with the status to use if it is not part of a stream.
#[derive(Debug)]
pub(crate) struct RpcResponse {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    /// `true` if the caller's scopes do not allow the request.
    pub(crate) insufficient_scope: bool,
}

impl RpcResponse {
    pub(crate) fn of_result(id: &MessageId, result: &CallResult) -> Self {
        let body = encode::result(id, &result.raw);
        Self { status: StatusCode::OK, body, insufficient_scope: result.insufficient_scope }
    }

    pub(crate) fn of_error(id: &MessageId, error: &Error) -> Self {
        let body = encode::error(Some(id), &error.rpc());
        Self { status: StatusCode::OK, body, insufficient_scope: error.insufficient_scope }
    }

    pub(crate) fn response(self) -> Response {
        let mut response = json(self.status, self.body);
        if self.insufficient_scope {
            response.extensions_mut().insert(InsufficientScope(None));
        }
        response
    }
}

pub(crate) fn json(status: StatusCode, body: Bytes) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

/// Builds a transport error in the form that JSON-RPC clients read.
pub(crate) fn problem(status: StatusCode, reason: &str) -> Response {
    json(status, encode::error(None, &encode::error_object(-32600, reason)))
}

#[cfg(test)]
mod tests {
    use hikite_core::caller::{Caller, Scopes};
    use hikite_core::json::Raw;

    use super::*;

    fn is_marked(response: RpcResponse) -> bool {
        response.response().extensions().get::<InsufficientScope>().is_some()
    }

    #[test]
    fn a_missing_scope_marks_the_response_whatever_its_bytes() {
        let caller = Caller { scopes: Scopes::READ, ..Caller::named("kana") };
        let error = caller.require(Scopes::CALL).expect_err("refused");
        let long = MessageId::read(Raw::of(&"x".repeat(1000))).expect("an id");
        assert!(is_marked(RpcResponse::of_error(&long, &error)));
        let result = CallResult { raw: Raw::empty_object(), insufficient_scope: true };
        assert!(is_marked(RpcResponse::of_result(&long, &result)));
    }

    #[test]
    fn the_words_of_a_server_mark_nothing() {
        let id = MessageId::number(1);
        let text = r#"{"content":[{"type":"text","text":"AUTHORIZATION_ERROR: You are not allowed to look."}]}"#;
        let result = Raw::parse(text.to_owned()).expect("valid").into();
        assert!(!is_marked(RpcResponse::of_result(&id, &result)));
        let error = Raw::parse(r#"{"code":-32003,"message":"You are not allowed to look."}"#).expect("valid");
        assert!(!is_marked(RpcResponse::of_error(&id, &Error::from_upstream(error))));
    }
}
