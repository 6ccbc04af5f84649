//! Previews of what others see; admins only, enforced by the router.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_gateway::{Surface, Surfaces};
use http::{HeaderMap, Uri};

use super::form::RequestForm;
use super::query::QueryParams;
use super::{RestResult, body, ok, query};
use crate::app::App;

/// Returns the tool menu that a model gets: `?project=work&surface=modules,search`.
pub(crate) async fn menu(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    let mut query = QueryParams::read(&uri, &["project", "surface"]);
    let (project, surface) = (query.one("project"), query.one("surface"));
    query.finish()?;
    let asked = surface.as_deref().map(surfaces).transpose()?;
    let default = app.settings.load().surfaces;
    Ok(ok(&app.gateway.admin().previews.menu_object(project.as_deref(), asked, default).await?))
}

/// Returns what permissions would show and hide.
pub(crate) async fn permissions(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap, body: Body) -> RestResult {
    query::none(&uri)?;
    let mut form = RequestForm::new(body::read(&app, &headers, body).await?, &["permissions"]);
    let permissions = form.raw("permissions");
    if permissions.as_ref().is_none_or(|permissions| !permissions.is_object()) {
        form.fault("permissions", "`permissions` must be an object with `allow` and `deny`.");
    }
    form.finish()?;
    let permissions = permissions.unwrap_or_else(Raw::empty_object);
    Ok(ok(&app.gateway.admin().previews.preview_permissions(&permissions).await?))
}

fn surfaces(names: &str) -> Result<Surfaces, Error> {
    let parsed: Option<Vec<Surface>> = names.split(',').map(|name| Surface::parse(name.trim())).collect();
    parsed.map(Surfaces::of).ok_or_else(|| {
        let known = Surface::ALL.map(Surface::name).join(", ");
        Error::new(ErrorKind::Validation, format!("Unknown surface in `surface={names}`."))
            .hint(format!("Use one or more of: {known}."))
    })
}
