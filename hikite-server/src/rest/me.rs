//! The authenticated caller, as it may see itself.

use std::sync::Arc;

use axum::extract::State;
use hikite_core::json::{Object, Raw};
use hikite_core::time::rfc3339;
use http::Uri;

use super::{RestResult, ok, query};
use crate::app::App;
use crate::request_context::RequestContext;

pub(crate) async fn me(
    State(app): State<Arc<App>>,
    RequestContext { caller, .. }: RequestContext,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let or_null = |text: Option<&str>| text.map_or_else(Raw::null, Raw::from);
    let expires_at = caller.token.as_ref().and_then(|id| app.gateway.people().expires_at(id));
    let user = app.gateway.people().name_of(&caller.subject);
    let body = Object::default()
        .with("subject", &*caller.subject)
        .with("user", or_null(user.as_ref().map(|(_, name)| &**name)))
        .with("userId", or_null(user.as_ref().map(|(id, _)| &**id)))
        .with("project", or_null(caller.project.as_deref()))
        .with("scopes", Raw::of(&caller.scopes.names().collect::<Vec<_>>()))
        .with("token", or_null(caller.token.as_deref()))
        .with("expiresAt", or_null(expires_at.map(rfc3339).as_deref()));
    Ok(ok(&body.raw()))
}
