//! In which project a request works: the one of its address (`/mcp/{project}`), and the one of its header, as far as
//! its caller may. A project that is not there and one that is another's look the same.

use axum::RequestExt;
use axum::extract::{Path, Request};
use hikite_core::caller::Caller;
use hikite_core::error::{Error, Kind};
use http::header::HeaderName;

use crate::app::App;

const HEADER: HeaderName = HeaderName::from_static("hikite-project");
/// The address of MCP within a project; the rest of it is the name.
const ADDRESS: &str = "/mcp/";
/// What clients say that have no project.
const UNASSIGNED: &str = "__unassigned__";

/// The caller in the project that the request names.
pub(crate) async fn enter(app: &App, mut caller: Caller, request: &mut Request) -> Result<Caller, Error> {
    if request.uri().path().starts_with(ADDRESS) {
        let Ok(Path(name)) = request.extract_parts::<Path<String>>().await else { return Ok(caller) };
        caller = narrow(app, caller, &name)?;
    }
    let mut named = request.headers().get_all(HEADER).iter();
    match (named.next(), named.next()) {
        (None, _) => Ok(caller),
        (Some(name), None) => named_in(app, caller, std::str::from_utf8(name.as_bytes()).ok()),
        (Some(_), Some(_)) => Err(unknown()),
    }
}

/// The caller in a project that it names itself; an empty name, or one that says so, is none.
pub(crate) fn named_in(app: &App, caller: Caller, name: Option<&str>) -> Result<Caller, Error> {
    match name.map(str::trim) {
        Some("" | UNASSIGNED) => Ok(caller),
        Some(name) => narrow(app, caller, name),
        None => Err(unknown()),
    }
}

fn narrow(app: &App, caller: Caller, name: &str) -> Result<Caller, Error> {
    if caller.project.as_deref() == Some(name) {
        return Ok(caller);
    }
    app.gateway.freshness().check()?;
    app.gateway.people().enter(&caller, name).ok_or_else(unknown)
}

fn unknown() -> Error {
    Error::new(Kind::NotFound, "there is no such project").hint("`hikite project list` names those there are")
}
