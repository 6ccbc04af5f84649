//! Pinned tool definitions and their approval; admins only, enforced by the router.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use hikite_api::pin::HASH_CHARS;
use hikite_core::json::{Object, Raw};
use hikite_gateway::{PinFilter, PinState};
use http::{HeaderMap, Uri};

use super::form::RequestForm;
use super::query::{self, QueryParams};
use super::{NamePath, RestResult, body, key, ok};
use crate::app::App;
use crate::request_context::RequestContext;

pub(crate) async fn list(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    let mut query = QueryParams::read(&uri, &["state", "module"]);
    let state = query.one_of("state", &PinState::ALL.map(PinState::word));
    let filter = PinFilter { state: state.as_deref().and_then(PinState::of_word), module: query.one("module") };
    query.finish()?;
    Ok(ok(&Object::default().with("pins", Raw::array(&app.gateway.admin().pins.list(&filter))).raw()))
}

pub(crate) async fn get(State(app): State<Arc<App>>, path: NamePath, uri: Uri) -> RestResult {
    query::none(&uri)?;
    Ok(ok(&app.gateway.admin().pins.get(&key(path)?).await?))
}

pub(crate) async fn approve(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let mut form = RequestForm::new(body::read(&app, &headers, body).await?, &["hash"]);
    let hash = form.text("hash", HASH_CHARS).unwrap_or_default();
    let is_hash = hash.len() == HASH_CHARS && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hash && form.faults.is_empty() {
        form.fault("hash", "`hash` must be the hash of the reviewed definition: 64 hexadecimal digits in lowercase.");
    }
    form.finish()?;
    let name = key(path)?;
    let work = app.gateway.admin().pins.approve(&name, &hash);
    Ok(ok(&app.gateway.auditor().record_admin((&caller, &origin), "pin.approve", &name, work).await?))
}

pub(crate) async fn block(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let name = key(path)?;
    let work = app.gateway.admin().pins.block(&name);
    Ok(ok(&app.gateway.auditor().record_admin((&caller, &origin), "pin.block", &name, work).await?))
}
