//! The project of a request: that of its path (`/mcp/{project}`) and of its header, if the caller may enter it. A
//! missing project and one without access look the same.

use axum::RequestExt;
use axum::extract::{Path, Request};
use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use http::header::HeaderName;

use crate::app::App;

const HEADER: HeaderName = HeaderName::from_static("hikite-project");
/// Path prefix of MCP within a project, followed by its name.
const PROJECT_PATH: &str = "/mcp/";
/// Header value of clients without a project.
const UNASSIGNED: &str = "__unassigned__";

/// Returns the caller in the project that the request names.
pub(crate) async fn enter(app: &App, mut caller: Caller, request: &mut Request) -> Result<Caller, Error> {
    if request.uri().path().starts_with(PROJECT_PATH) {
        let Ok(Path(name)) = request.extract_parts::<Path<String>>().await else { return Ok(caller) };
        caller = enter_project(app, caller, &name)?;
    }
    let mut named = request.headers().get_all(HEADER).iter();
    match (named.next(), named.next()) {
        (None, _) => Ok(caller),
        (Some(name), None) => named_in(app, caller, std::str::from_utf8(name.as_bytes()).ok()),
        (Some(_), Some(_)) => Err(unknown()),
    }
}

/// Returns the caller in the named project; an empty name or `__unassigned__` is none.
pub(crate) fn named_in(app: &App, caller: Caller, name: Option<&str>) -> Result<Caller, Error> {
    match name.map(str::trim) {
        Some("" | UNASSIGNED) => Ok(caller),
        Some(name) => enter_project(app, caller, name),
        None => Err(unknown()),
    }
}

fn enter_project(app: &App, caller: Caller, name: &str) -> Result<Caller, Error> {
    if caller.project.as_deref() == Some(name) {
        return Ok(caller);
    }
    app.gateway.freshness().check()?;
    app.gateway.people().enter(&caller, name).ok_or_else(unknown)
}

fn unknown() -> Error {
    Error::new(ErrorKind::NotFound, "There is no such project.").hint("Run `hikite project list` to see all projects.")
}
