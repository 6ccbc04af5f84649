//! The checks that a request of 2026-07-28 must pass first: `_meta`, headers, revision, method.

use hikite_core::error::ErrorKind;
use hikite_core::json::{Object, Raw};
use hikite_core::listing::ListKind;
use hikite_core::view::View;
use hikite_wire::header::{self, ParamHeader};
use hikite_wire::revision::Revision;
use hikite_wire::stateless::{HEADER_MISMATCH, REVISION, RequestClaim, UNSUPPORTED_REVISION};
use http::header::HeaderName;
use http::{HeaderMap, StatusCode};
use memchr::memmem;

use super::result::StatelessError;
use crate::mcp::http::REVISION as REVISION_HEADER;

const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");
const METHODS: [&str; 11] = [
    "server/discover",
    "tools/call",
    "resources/read",
    "resources/directory/read",
    "prompts/get",
    "completion/complete",
    "subscriptions/listen",
    "skills/get",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// Returns `true` if the version header names this revision.
pub(crate) fn has_revision_header(headers: &HeaderMap) -> bool {
    headers.get(REVISION_HEADER).is_some_and(|value| value.as_bytes() == REVISION.as_bytes())
}

pub(crate) fn claim(params: &Object) -> Result<RequestClaim, StatelessError> {
    RequestClaim::read(params)
        .map_err(|reason| StatelessError::new(StatusCode::BAD_REQUEST, ErrorKind::Validation.definition().rpc, &reason))
}

pub(crate) fn headers(
    headers: &HeaderMap,
    method: &str,
    params: &Object,
    claim: &RequestClaim,
) -> Result<(), StatelessError> {
    require(headers, &REVISION_HEADER, &claim.revision)?;
    require(headers, &METHOD_HEADER, method)?;
    match header::named_member(method).and_then(|member| params.text(member)) {
        Some(name) => require(headers, &NAME_HEADER, &name),
        None => Ok(()),
    }
}

/// Requires the header exactly once, with the value of the body.
fn require(headers: &HeaderMap, name: &HeaderName, body: &str) -> Result<(), StatelessError> {
    let mut values = headers.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(mismatch(&format!("the {name} header must be sent once, with the value '{body}'")));
    };
    let value = value.to_str().ok().map(str::trim);
    let value = if *name == NAME_HEADER { value.and_then(header::decode) } else { value.map(Into::into) };
    match value {
        Some(value) if value == body => Ok(()),
        _ => Err(mismatch(&format!("the {name} header does not match the body value '{body}'"))),
    }
}

fn mismatch(what: &str) -> StatelessError {
    StatelessError::new(StatusCode::BAD_REQUEST, HEADER_MISMATCH, &format!("Header mismatch: {what}"))
}

pub(crate) fn revision(claim: &RequestClaim) -> Result<(), StatelessError> {
    if claim.revision == REVISION {
        return Ok(());
    }
    let data = Object::default().with("supported", Raw::of(&supported())).with("requested", claim.revision.as_str());
    let message = format!("The protocol revision {} is not supported.", claim.revision);
    Err(StatelessError::new(StatusCode::BAD_REQUEST, UNSUPPORTED_REVISION, &message).with_data(data))
}

/// Returns all supported revisions, newest first.
pub(crate) fn supported() -> Vec<&'static str> {
    let older = Revision::ALL.into_iter().rev().map(Revision::name);
    std::iter::once(REVISION).chain(older).collect()
}

pub(crate) fn method(method: &str) -> Result<(), StatelessError> {
    if METHODS.contains(&method) || ListKind::ALL.iter().any(|kind| kind.method() == method) {
        return Ok(());
    }
    let message = format!("There is no method `{method}` in {REVISION}.");
    Err(StatelessError::new(StatusCode::NOT_FOUND, ErrorKind::MethodNotFound.definition().rpc, &message))
}

/// Checks the arguments that a tool wants mirrored in headers (`x-mcp-header`) against the body.
pub(crate) fn mirrored_headers(
    view: impl FnOnce() -> View,
    headers: &HeaderMap,
    method: &str,
    params: &Object,
) -> Result<(), StatelessError> {
    let Some(name) = params.text("name").filter(|_| method == "tools/call") else { return Ok(()) };
    let view = view();
    let Ok(tool) = view.tool(&name) else { return Ok(()) };
    // Most tools mirror none and are not parsed.
    if memmem::find(tool.definition.bytes(), b"x-mcp-header").is_none() {
        return Ok(());
    }
    let schema = tool.definition.object().and_then(|tool| tool.get("inputSchema").cloned());
    for param_header in schema.and_then(|schema| header::param_headers(&schema).ok()).unwrap_or_default() {
        let Some(argument) = param_header.argument(params.get("arguments")) else { continue };
        let sent = headers.get(format!("mcp-param-{}", param_header.header)).and_then(|value| value.to_str().ok());
        if !sent.is_some_and(|sent| ParamHeader::says(&argument, sent)) {
            let path = param_header.path.join(".");
            return Err(mismatch(&format!("Mcp-Param-{} does not match the argument `{path}`", param_header.header)));
        }
    }
    Ok(())
}
