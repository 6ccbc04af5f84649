//! The authenticated caller, as it may see itself.

use std::sync::Arc;

use axum::extract::State;
use hikite_api::Me;
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
    let expires_at = caller.token.as_ref().and_then(|id| app.gateway.people().expires_at(id));
    let user = app.gateway.people().name_of(&caller.subject);
    let (user_id, user) = user.map(|(id, name)| (id.to_string(), name.to_string())).unzip();
    Ok(ok(&Me {
        subject: caller.subject.to_string(),
        user,
        user_id,
        project: caller.project.as_deref().map(str::to_owned),
        scopes: caller.scopes.names().map(str::to_owned).collect(),
        token: caller.token.as_deref().map(str::to_owned),
        expires_at: expires_at.map(rfc3339),
    }))
}
