//! The REST API: the same tools and the same call path for programs that use plain HTTP and JSON. Handlers parse the
//! request, call the gateway and return its raw JSON.

pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod batch;
mod body;
pub(crate) mod call;
pub(crate) mod clients;
mod form;
pub(crate) mod login_session;
pub(crate) mod me;
pub(crate) mod openapi;
pub(crate) mod overview;
pub(crate) mod page;
pub(crate) mod pins;
pub(crate) mod preview;
pub(crate) mod projects;
mod query;
pub(crate) mod reauthentication;
pub(crate) mod redirect;
pub(crate) mod registry;
pub(crate) mod search;
pub(crate) mod status;
mod text;
pub(crate) mod tokens;
pub(crate) mod tools;
pub(crate) mod upstreams;
pub(crate) mod users;

use std::fmt::Write;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::{IntoResponse, Response};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_identity::Identity;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use serde::Serialize;

use crate::app::App;
use crate::error_response::{error_response, json};

/// An error returned by a handler.
pub(crate) struct RestError(Error);

impl From<Error> for RestError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for RestError {
    fn into_response(self) -> Response {
        error_response(self.0)
    }
}

type RestResult = Result<Response, RestError>;

/// The last path segment: the name or id of an object.
type NamePath = Result<Path<String>, PathRejection>;

fn ok(body: &impl Serialize) -> Response {
    json(StatusCode::OK, &Raw::of(body))
}

/// Builds the `Location` of a new object: its percent-encoded name below `address`.
fn location(address: &str, name: &str) -> Option<HeaderValue> {
    let mut address = String::from(address);
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':') {
            address.push(char::from(byte));
        } else {
            let _ = write!(address, "%{byte:02X}");
        }
    }
    HeaderValue::try_from(address).ok()
}

/// Builds a 201 response.
fn created(body: &impl Serialize, location: Option<HeaderValue>) -> Response {
    let mut response = json(StatusCode::CREATED, &Raw::of(body));
    if let Some(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// Returns the identity store, if OAuth is enabled.
fn identity(app: &App) -> Result<&Identity, Error> {
    let identity = app.gateway.people().identity();
    identity.map(|identity| &**identity).ok_or_else(|| Error::new(ErrorKind::NotFound, "Logins are not enabled here."))
}

fn key(path: NamePath) -> Result<String, Error> {
    path.map(|Path(key)| key).map_err(|_| Error::new(ErrorKind::Validation, "The key in the address is not UTF-8."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_name_as_one_part_of_its_path() {
        let address = location("/v1/tools/", "m:a/b ?é").expect("an address");
        assert_eq!(address, "/v1/tools/m:a%2Fb%20%3F%C3%A9");
    }
}
