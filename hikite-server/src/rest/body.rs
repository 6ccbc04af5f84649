//! The body of a REST request: one JSON object, with precise errors otherwise.

use axum::body::Body;
use bytes::Bytes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_gateway::off_worker::off_worker;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use crate::app::App;
use crate::mcp::body::read as read_bytes;

pub(crate) async fn read(app: &App, headers: &HeaderMap, body: Body) -> Result<Object, Error> {
    if !is_json(headers) {
        let error = Error::new(ErrorKind::MediaType, "The body must be application/json.");
        return Err(error.hint("Send `Content-Type: application/json`."));
    }
    let bytes = read_bytes(app, body).await?;
    if bytes.is_empty() {
        return Err(Error::new(ErrorKind::Validation, "The body is empty.").hint("Send a JSON object."));
    }
    off_worker(bytes.len(), || members(bytes)).await
}

fn members(bytes: Bytes) -> Result<Object, Error> {
    let raw = Raw::parse(bytes).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        let what = if error.is_eof() { "ends too early" } else { "is not valid JSON" };
        Error::new(ErrorKind::Validation, format!("The body {what}: {place}."))
    })?;
    raw.object().ok_or_else(|| Error::new(ErrorKind::Validation, "The body must be a JSON object."))
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let (Some(kind), None) = (kinds.next(), kinds.next()) else { return false };
    let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}
