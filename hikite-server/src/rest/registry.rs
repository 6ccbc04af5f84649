//! Changing which tools there are: for admins alone, which the router sees to.

use std::fmt::Write;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use hikite_core::caller::Caller;
use hikite_core::json::Raw;
use hikite_core::source::Origin;
use http::header::{HeaderValue, LOCATION};
use http::{HeaderMap, StatusCode, Uri};

use super::words::of_tool;
use super::{Answer, Named, body, key, ok, query};
use crate::app::App;
use crate::refusal::json;

pub(crate) async fn register(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(origin): Extension<Origin>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    query::none(&uri)?;
    let form = body::read(&app, &headers, body).await?;
    let name = form.text("name").unwrap_or_default();
    let work = app.gateway.register(&form);
    let tool = app.gateway.audit_admin((&caller, &origin), "tool.register", &name, work).await?;
    let mut response = json(StatusCode::CREATED, &tool);
    if let Some(address) = address_of(&tool) {
        response.headers_mut().insert(LOCATION, address);
    }
    Ok(response)
}

pub(crate) async fn unregister(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(origin): Extension<Origin>,
    path: Named,
    uri: Uri,
) -> Answer {
    query::none(&uri)?;
    let name = key(path)?;
    let work = app.gateway.unregister(&name);
    let done = app.gateway.audit_admin((&caller, &origin), "tool.unregister", &name, work).await;
    done.map_err(|error| of_tool(&name, error))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn enable(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(origin): Extension<Origin>,
    path: Named,
    uri: Uri,
) -> Answer {
    switch(&app, (&caller, &origin), path, &uri, true).await
}

pub(crate) async fn disable(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(origin): Extension<Origin>,
    path: Named,
    uri: Uri,
) -> Answer {
    switch(&app, (&caller, &origin), path, &uri, false).await
}

async fn switch(app: &App, who: (&Caller, &Origin), path: Named, uri: &Uri, enabled: bool) -> Answer {
    query::none(uri)?;
    let name = key(path)?;
    let action = if enabled { "tool.enable" } else { "tool.disable" };
    let work = app.gateway.switch(&name, enabled);
    let tool = app.gateway.audit_admin(who, action, &name, work).await;
    let tool = tool.map_err(|error| of_tool(&name, error))?;
    Ok(ok(&tool))
}

/// Where the new tool is to be found.
fn address_of(tool: &Raw) -> Option<HeaderValue> {
    let key = tool.object()?.text("key")?;
    let mut address = String::from("/v1/tools/");
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':') {
            address.push(char::from(byte));
        } else {
            let _ = write!(address, "%{byte:02X}");
        }
    }
    HeaderValue::try_from(address).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_tool_is_one_part_of_a_path() {
        let tool = Raw::parse(r#"{"key":"m:a/b ?é"}"#).expect("JSON");
        assert_eq!(address_of(&tool).expect("an address"), "/v1/tools/m:a%2Fb%20%3F%C3%A9");
    }
}
