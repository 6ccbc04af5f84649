//! All groups of routes, and the authentication that each requires. The guard of a group checks in this order: Host and
//! Origin (403), bearer token (401), rate limit (429), project (404). A wrong method (405) is answered behind it. Paths
//! that are unknown need a caller, so that strangers cannot find out which exist.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{any, delete, get, patch, post, put};
use hikite_ui::ApiClient;

use crate::app::App;
use crate::guard::{GuardLayer, RequiredAuth};
use crate::mcp::{http, sse};
use crate::request_context::RequestContext;
use crate::request_id::RequestId;
use crate::rest::audit::export;
use crate::rest::{
    accounts, audit, batch, call, clients, login_session, me, openapi, overview, page, pins, preview, projects,
    reauthentication, redirect, registry, search, status, tokens, tools, upstreams, users,
};
use crate::{auth, client_metadata, connect, health, metrics, oauth};

pub(crate) fn router(app: Arc<App>) -> Router {
    let public = Router::new()
        .route("/", get(health::root))
        .route("/health", get(health::health))
        .route("/readyz", get(health::ready))
        .route("/v1/openapi.json", get(openapi::openapi))
        .route("/oauth/client.json", get(client_metadata::document))
        .route("/docs", get(page::html))
        .route("/docs/page.css", get(page::css))
        .route("/docs/page.js", get(page::script))
        .route("/docs/words.js", get(page::words))
        .route("/connect/callback", get(connect::callback))
        .route("/connect/{provider}", get(connect::show).post(connect::redirect_to_provider))
        .method_not_allowed_fallback(health::wrong_method)
        .layer(GuardLayer::new(&app, RequiredAuth::Nothing));

    // The OAuth routes, which exist only if OAuth is enabled.
    let oauth = oauth::routes()
        .method_not_allowed_fallback(health::wrong_method)
        .layer(GuardLayer::new(&app, RequiredAuth::Oauth));

    // Separate, because the metrics token grants nothing else.
    let metrics =
        Router::new().route("/metrics", get(metrics::metrics)).layer(GuardLayer::new(&app, RequiredAuth::Reader));

    let mcp = || post(http::post).get(http::get).head(http::head).delete(http::delete);
    let protected = Router::new()
        .route("/mcp", mcp())
        .route("/mcp/{project}", mcp())
        .route("/sse", get(sse::open).head(sse::head))
        .route("/messages", post(sse::post))
        .merge(rest())
        .route("/tools", get(redirect::to_v1))
        .route("/tools/call", post(redirect::to_v1))
        .fallback(any(health::not_found))
        .method_not_allowed_fallback(health::wrong_method)
        .layer(GuardLayer::new(&app, RequiredAuth::Caller));

    // Routes for other nodes only, which send a peer token instead of a bearer token.
    let nodes = Router::new()
        .route("/node/mcp", mcp())
        .route("/node/mcp/{project}", mcp())
        .route("/node/messages", post(sse::post))
        .method_not_allowed_fallback(health::wrong_method)
        .layer(GuardLayer::new(&app, RequiredAuth::Node));

    // The UI calls the same API internally, as the user of the browser, without a guard of its own.
    let internal = rest().with_state(Arc::clone(&app)).layer(from_fn(with_error_bodies));
    let pages = hikite_ui::routes(ApiClient::new(internal))
        .method_not_allowed_fallback(health::wrong_method)
        .layer(GuardLayer::new(&app, RequiredAuth::Person));
    let assets = hikite_ui::assets().layer(GuardLayer::new(&app, RequiredAuth::Nothing));

    public.merge(oauth).merge(metrics).merge(nodes).merge(protected).with_state(app).merge(pages).merge(assets)
}

/// Writes the body of error responses, as the guard does for external requests.
async fn with_error_bodies(request: Request, next: Next) -> Response {
    let origin = request.extensions().get::<RequestContext>().map(|request_context| &request_context.origin);
    let id = origin.and_then(|origin| origin.request_id.clone()).map_or_else(RequestId::random, RequestId);
    id.set_header(next.run(request).await)
}

/// The REST API, for programs and the UI.
fn rest() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/me", get(me::me))
        .route("/v1/me/password", post(reauthentication::change_password))
        .route("/v1/tools", get(tools::list))
        .route("/v1/tools/call", post(call::call))
        .route("/v1/tools/search", post(tools::search))
        .route("/v1/tools/{key}", get(tools::get))
        .route("/v1/batch", post(batch::batch))
        .route("/v1/modules", get(overview::modules))
        .route("/v1/modules/{name}", get(overview::module))
        .route("/v1/categories", get(overview::categories))
        .route("/v1/categories/{name}", get(upstreams::category))
        .route("/v1/accounts", get(accounts::list).post(accounts::add))
        .route("/v1/accounts/connect", post(accounts::connect))
        .route("/v1/accounts/connect/{id}", get(accounts::connection))
        .route("/v1/accounts/{id}", get(accounts::get).patch(accounts::change).delete(accounts::remove))
        .route("/v1/accounts/{id}/verify", post(accounts::verify))
        .route("/v1/providers", get(accounts::providers))
        .route("/catalog/search", post(search::search))
        .merge(admin())
}

/// Routes that affect or reveal data of all users.
fn admin() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/tools", post(registry::register))
        .route("/v1/tools/{key}", patch(registry::override_text).delete(registry::unregister))
        .route("/v1/tools/{key}/enable", post(registry::enable))
        .route("/v1/tools/{key}/disable", post(registry::disable))
        .route("/v1/categories/{name}", put(upstreams::put_category).delete(upstreams::delete_category))
        .route("/v1/upstreams", get(upstreams::list))
        .route("/v1/upstreams/import", post(upstreams::import))
        .route("/v1/upstreams/{name}", get(upstreams::get).put(upstreams::put).delete(upstreams::delete))
        .route("/v1/status", get(status::status))
        .route("/v1/modules/{name}/restart", post(overview::restart))
        .route("/v1/modules/{name}/enable", post(overview::enable))
        .route("/v1/modules/{name}/disable", post(overview::disable))
        .route("/v1/projects", get(projects::list).post(projects::create))
        .route("/v1/projects/{name}", get(projects::get).patch(projects::change).delete(projects::delete))
        .route("/v1/tokens", get(tokens::list).post(tokens::create))
        .route("/v1/tokens/{id}", delete(tokens::revoke))
        .route("/v1/providers/{name}", put(accounts::set_app).delete(accounts::remove_app))
        .route("/v1/users", get(users::list).post(users::create))
        .route("/v1/users/{name}", get(users::get).patch(users::change).delete(users::delete))
        .route("/v1/users/{name}/handover", post(reauthentication::transfer_ownership))
        .route("/v1/removals", get(users::removed))
        .route("/v1/removals/{id}", delete(users::lift_removal))
        .route("/v1/clients", get(clients::list).post(clients::create))
        .route("/v1/clients/{id}", get(clients::get).delete(clients::delete))
        .route("/v1/clients/{id}/approve", post(clients::approve))
        .route("/v1/pins", get(pins::list))
        .route("/v1/pins/{key}", get(pins::get))
        .route("/v1/pins/{key}/approve", post(pins::approve))
        .route("/v1/pins/{key}/block", post(pins::block))
        .route("/v1/audit", get(audit::list))
        .route("/v1/audit/verify", get(audit::verify))
        .route("/v1/audit/export", get(export::export))
        .route("/v1/audit/resume-trim", post(audit::resume_trim))
        .route("/v1/audit/{seq}", get(audit::get))
        .route("/v1/menu", get(preview::menu))
        .route("/v1/permissions/preview", post(preview::permissions))
        .route("/v1/sessions", get(login_session::sessions))
        .route("/v1/sessions/{id}", delete(login_session::end_session))
        .route("/v1/consents", get(login_session::consents))
        .route("/v1/consents/{id}", delete(login_session::end_consent))
        .route("/v1/logins", get(login_session::logins))
        .route("/v1/logins/{id}", delete(login_session::end_login))
        .route_layer(from_fn(auth::admin_only))
}

#[cfg(test)]
mod route_tests;

#[cfg(test)]
mod tests {
    use axum::Extension;
    use axum::body::Body;
    use axum::extract::Request;
    use axum::response::Response;
    use hikite_core::caller::Caller;
    use hikite_core::source::CallOrigin;
    use tower::ServiceExt;

    use super::{admin, router};
    use crate::request_context::{CallerProof, RequestContext};
    use crate::test_app::app;

    fn request(method: &str, path: &str) -> Request {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        request.body(Body::empty()).expect("a request")
    }

    async fn as_caller(caller: &Caller, method: &str, path: &str) -> Response {
        let request_context = RequestContext::over_http(caller.clone(), CallerProof::Token, CallOrigin::default());
        let routes = admin().layer(Extension(request_context)).with_state(app());
        routes.oneshot(request(method, path)).await.expect("an answer")
    }

    #[tokio::test]
    async fn what_changes_things_for_everybody_is_for_admins_alone() {
        let alice = Caller::named("alice");
        for (method, path) in [
            ("POST", "/v1/tools"),
            ("DELETE", "/v1/tools/m:t"),
            ("POST", "/v1/tools/m:t/enable"),
            ("POST", "/v1/tools/m:t/disable"),
            ("PATCH", "/v1/tools/m:t"),
            ("PUT", "/v1/categories/c"),
            ("DELETE", "/v1/categories/c"),
            ("GET", "/v1/upstreams"),
            ("POST", "/v1/upstreams/import"),
            ("GET", "/v1/upstreams/u"),
            ("PUT", "/v1/upstreams/u"),
            ("DELETE", "/v1/upstreams/u"),
            ("GET", "/v1/status"),
            ("POST", "/v1/modules/m/restart"),
            ("POST", "/v1/modules/m/enable"),
            ("POST", "/v1/modules/m/disable"),
            ("GET", "/v1/projects"),
            ("POST", "/v1/projects"),
            ("GET", "/v1/projects/p"),
            ("PATCH", "/v1/projects/p"),
            ("DELETE", "/v1/projects/p"),
            ("GET", "/v1/tokens"),
            ("POST", "/v1/tokens"),
            ("DELETE", "/v1/tokens/tok_1"),
            ("PUT", "/v1/providers/p"),
            ("DELETE", "/v1/providers/p"),
            ("GET", "/v1/users"),
            ("POST", "/v1/users"),
            ("GET", "/v1/users/alice"),
            ("PATCH", "/v1/users/alice"),
            ("DELETE", "/v1/users/alice"),
            ("POST", "/v1/users/alice/handover"),
            ("GET", "/v1/removals"),
            ("DELETE", "/v1/removals/rmv_1"),
            ("GET", "/v1/clients"),
            ("POST", "/v1/clients"),
            ("GET", "/v1/clients/hkc_1"),
            ("DELETE", "/v1/clients/hkc_1"),
            ("POST", "/v1/clients/hkc_1/approve"),
            ("GET", "/v1/pins"),
            ("GET", "/v1/pins/m:t"),
            ("POST", "/v1/pins/m:t/approve"),
            ("POST", "/v1/pins/m:t/block"),
            ("GET", "/v1/audit"),
            ("GET", "/v1/audit/verify"),
            ("GET", "/v1/audit/export"),
            ("POST", "/v1/audit/resume-trim"),
            ("GET", "/v1/audit/1"),
            ("GET", "/v1/menu"),
            ("POST", "/v1/permissions/preview"),
            ("GET", "/v1/sessions"),
            ("DELETE", "/v1/sessions/1"),
            ("GET", "/v1/consents"),
            ("DELETE", "/v1/consents/1"),
            ("GET", "/v1/logins"),
            ("DELETE", "/v1/logins/1"),
        ] {
            assert_eq!(as_caller(&alice, method, path).await.status(), 403, "{method} {path}");
            let internal = Caller::owner().within("p".into());
            assert_eq!(as_caller(&internal, method, path).await.status(), 403, "{method} {path} in a project");
            assert_ne!(as_caller(&Caller::owner(), method, path).await.status(), 403, "{method} {path}");
        }
    }

    #[tokio::test]
    async fn a_wrong_method_is_told_the_right_ones() {
        let router = router(app());
        for (method, path, allow) in [
            ("POST", "/health", "GET,HEAD"),
            ("PUT", "/v1/tools", "GET,HEAD,POST"),
            ("GET", "/v1/tools/call", "POST"),
            ("PUT", "/v1/tools/m:t", "GET,HEAD,PATCH,DELETE"),
            ("TRACE", "/v1/tools/m:t/enable", "POST"),
            ("HEAD", "/sse", "GET"),
        ] {
            let answer = router.clone().oneshot(request(method, path)).await.expect("an answer");
            assert_eq!(answer.status(), 405, "{method} {path}");
            let mut allowed: Vec<&str> = answer.headers()["allow"].to_str().expect("text").split(',').collect();
            let mut expected: Vec<&str> = allow.split(',').collect();
            allowed.sort_unstable();
            expected.sort_unstable();
            assert_eq!(allowed, expected, "{method} {path}");
        }
    }

    #[tokio::test]
    async fn what_is_described_is_there() {
        let router = router(app());
        let document = hikite_api::document();
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for method in methods.as_object().expect("methods").keys() {
                let method = method.to_uppercase();
                let answer = router.clone().oneshot(request(&method, &path.replace(['{', '}'], ""))).await;
                let status = answer.expect("an answer").status().as_u16();
                assert!(!matches!(status, 405), "{method} {path}: {status}");
                let known = &methods[method.to_lowercase()]["responses"][status.to_string()];
                assert!(known.is_object(), "{method} {path} answers {status}, which is not described");
            }
        }
    }
}
