//! The REST API: the same tools on the same path of a call, for programs that speak plain HTTP and JSON. Handlers
//! read the request, ask the gateway, and put its raw JSON into the answer.

pub(crate) mod audit;
mod body;
pub(crate) mod call;
mod form;
pub(crate) mod openapi;
pub(crate) mod overview;
pub(crate) mod page;
mod query;
pub(crate) mod redirect;
pub(crate) mod registry;
pub(crate) mod tools;
mod words;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::{IntoResponse, Response};
use hikite_core::error::{Error, Kind};
use hikite_core::json::Raw;
use http::StatusCode;

use crate::refusal::{json, refusal};

/// An error on its way out of a handler.
pub(crate) struct Failed(Error);

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        refusal(self.0)
    }
}

type Answer = Result<Response, Failed>;

/// The last part of the address, which names a tool.
type Named = Result<Path<String>, PathRejection>;

fn ok(body: &Raw) -> Response {
    json(StatusCode::OK, body)
}

fn key(path: Named) -> Result<String, Error> {
    path.map(|Path(key)| key).map_err(|_| Error::new(Kind::Validation, "the key in the address is not UTF-8"))
}
