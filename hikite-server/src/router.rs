//! All routes on one page. A route that is not in the first list needs a caller; the order on every route is
//! Host and Origin (403), bearer (401), how often (429), method (405).

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, delete, get, post};

use crate::app::App;
use crate::mcp::{http, sse};
use crate::rest::{audit, call, openapi, overview, page, redirect, registry, tools};
use crate::{auth, health, metrics, observe, origin, rate, request_id};

pub(crate) fn router(app: Arc<App>) -> Router {
    let public = Router::new()
        .route("/", get(health::health))
        .route("/health", get(health::health))
        .route("/v1/openapi.json", get(openapi::openapi))
        .route("/docs", get(page::html))
        .route("/docs/page.css", get(page::css))
        .route("/docs/page.js", get(page::script))
        .route("/docs/words.js", get(page::words))
        .method_not_allowed_fallback(health::wrong_method);

    // Of its own, because its token opens nothing else.
    let metrics = Router::new()
        .route("/metrics", get(metrics::metrics))
        .layer(from_fn_with_state(Arc::clone(&app), metrics::require_reader));

    let protected = Router::new()
        .route("/mcp", post(http::post).get(http::get).head(http::head).delete(http::delete))
        .route("/sse", get(sse::open).head(sse::head))
        .route("/messages", post(sse::post))
        .route("/v1/tools", get(tools::list))
        .route("/v1/tools/call", post(call::call))
        .route("/v1/tools/search", post(tools::search))
        .route("/v1/tools/{key}", get(tools::get))
        .route("/v1/modules", get(overview::modules))
        .route("/v1/categories", get(overview::categories))
        .route("/tools", get(redirect::to_v1))
        .route("/tools/call", post(redirect::to_v1))
        .merge(admin())
        .fallback(any(health::not_found))
        .method_not_allowed_fallback(health::wrong_method)
        .route_layer(from_fn(crate::connection::close_refused))
        .layer(from_fn_with_state(Arc::clone(&app), rate::limit))
        .layer(from_fn_with_state(Arc::clone(&app), auth::require_caller));

    public
        .merge(metrics)
        .merge(protected)
        .layer(from_fn_with_state(Arc::clone(&app), origin::check))
        .layer(from_fn_with_state(Arc::clone(&app), observe::observe))
        .layer(from_fn(request_id::tag))
        .with_state(app)
}

/// What changes things for everybody, or tells of everybody.
fn admin() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/tools", post(registry::register))
        .route("/v1/tools/{key}", delete(registry::unregister))
        .route("/v1/tools/{key}/enable", post(registry::enable))
        .route("/v1/tools/{key}/disable", post(registry::disable))
        .route("/v1/audit", get(audit::list))
        .route("/v1/audit/verify", get(audit::verify))
        .route_layer(from_fn(auth::require_admin))
}

#[cfg(test)]
mod tests {
    use axum::Extension;
    use axum::body::Body;
    use axum::extract::Request;
    use axum::response::Response;
    use hikite_core::caller::Caller;
    use tower::ServiceExt;

    use super::{admin, router};
    use crate::probe::app;

    fn request(method: &str, path: &str) -> Request {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        request.body(Body::empty()).expect("a request")
    }

    async fn as_caller(caller: &Caller, method: &str, path: &str) -> Response {
        let routes = admin().layer(Extension(caller.clone())).with_state(app());
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
            ("GET", "/v1/audit"),
            ("GET", "/v1/audit/verify"),
        ] {
            assert_eq!(as_caller(&alice, method, path).await.status(), 403, "{method} {path}");
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
            ("PATCH", "/v1/tools/m:t", "GET,HEAD,DELETE"),
            ("TRACE", "/v1/tools/m:t/enable", "POST"),
            ("HEAD", "/sse", "GET"),
        ] {
            let answer = router.clone().oneshot(request(method, path)).await.expect("an answer");
            assert_eq!(answer.status(), 405, "{method} {path}");
            let mut allowed: Vec<&str> =
                answer.headers()["allow"].to_str().expect("text").split(',').collect();
            let mut expected: Vec<&str> = allow.split(',').collect();
            allowed.sort_unstable();
            expected.sort_unstable();
            assert_eq!(allowed, expected, "{method} {path}");
        }
    }

    #[tokio::test]
    async fn what_is_described_is_there() {
        let router = router(app());
        let document = crate::rest::openapi::document();
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for method in methods.as_object().expect("methods").keys() {
                let method = method.to_uppercase();
                let answer = router.clone().oneshot(request(&method, &path.replace("{key}", "x"))).await;
                let status = answer.expect("an answer").status().as_u16();
                assert!(!matches!(status, 405), "{method} {path}: {status}");
                let known = &methods[method.to_lowercase()]["responses"][status.to_string()];
                assert!(known.is_object(), "{method} {path} answers {status}, which is not described");
            }
        }
    }
}
