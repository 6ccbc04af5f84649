//! Changing which tools there are: for admins alone, which the router sees to.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use http::{HeaderMap, StatusCode, Uri};

use super::words::of_tool;
use super::{Answer, Named, body, created, key, location, ok, query};
use crate::app::App;

pub(crate) async fn register(
    State(app): State<Arc<App>>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    query::none(&uri)?;
    let form = body::read(&app, &headers, body).await?;
    let tool = app.gateway.register(&form).await?;
    let key = tool.object().and_then(|tool| tool.text("key"));
    Ok(created(&tool, key.and_then(|key| location("/v1/tools/", &key))))
}

pub(crate) async fn unregister(State(app): State<Arc<App>>, path: Named, uri: Uri) -> Answer {
    query::none(&uri)?;
    let name = key(path)?;
    app.gateway.unregister(&name).await.map_err(|error| of_tool(&name, error))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn enable(State(app): State<Arc<App>>, path: Named, uri: Uri) -> Answer {
    switch(&app, path, &uri, true).await
}

pub(crate) async fn disable(State(app): State<Arc<App>>, path: Named, uri: Uri) -> Answer {
    switch(&app, path, &uri, false).await
}

async fn switch(app: &App, path: Named, uri: &Uri, enabled: bool) -> Answer {
    query::none(uri)?;
    let name = key(path)?;
    let tool = app.gateway.switch(&name, enabled).await.map_err(|error| of_tool(&name, error))?;
    Ok(ok(&tool))
}
