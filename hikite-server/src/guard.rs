//! The guard: the only way in for every route. In order: request id and span, Host and Origin, authentication, rate
//! limit, project. One service instead of a layer for each, because a layer costs more than its work.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::Response;
use futures_util::FutureExt;
use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::source::BoxFuture;
use hikite_gateway::scope;
use http::HeaderValue;
use tower::{Layer, Service};

use crate::app::App;
use crate::challenge::AuthChallenge;
use crate::connection::Activity;
use crate::error_response::error_response;
use crate::observe::HttpOperation;
use crate::rate::{self, RateLimitState};
use crate::request_context::RequestContext;
use crate::{auth, browser_auth, connection, health, node, origin, project, proxy};

/// The authentication that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequiredAuth {
    Nothing,
    /// None; the route exists only if OAuth is enabled.
    Oauth,
    /// Access to the metrics.
    Reader,
    /// A caller.
    Caller,
    /// Another node; the route exists only in a cluster.
    Node,
    /// A login at the browser; anybody else is redirected to the login page.
    Person,
}

#[derive(Clone, Debug)]
pub(crate) struct GuardLayer {
    app: Arc<App>,
    needs: RequiredAuth,
}

impl GuardLayer {
    pub(crate) fn new(app: &Arc<App>, needs: RequiredAuth) -> Self {
        Self { app: Arc::clone(app), needs }
    }

    /// Handles a request from first check to finished response.
    async fn pass<S: GuardedService>(self, mut request: Request, mut service: S) -> Result<Response, Infallible> {
        proxy::apply_forwarding(&self.app.settings.load().proxies, &mut request);
        let operation = HttpOperation::begin(&self.app, &request);
        let answered = async {
            let mut response_context = ResponseContext::default();
            let response = match self.admit(&mut request, &operation, &mut response_context).await {
                Ok(()) => service.call(request).await?,
                Err(instead) => instead,
            };
            Ok::<_, Infallible>(response_context.finish(response, &self.app))
        };
        let answered = AssertUnwindSafe(scope::within(operation.origin.clone(), answered)).catch_unwind();
        let response = answered.await.unwrap_or_else(|_| {
            tracing::error!(request_id = operation.request_id(), "a request failed inside hikite");
            Ok(error_response(Error::new(ErrorKind::Internal, "A handler panicked.")))
        })?;
        Ok(operation.end(&self.app, connection::close_refused(response)))
    }

    /// Admits the request or returns the response that refuses it.
    async fn admit(
        &self,
        request: &mut Request,
        operation: &HttpOperation,
        response_context: &mut ResponseContext,
    ) -> Result<(), Response> {
        response_context.page = origin::check(&self.app.settings.load().origins, request)?;
        self.authenticate(request, operation, response_context).await?;
        // A public route does not authenticate the connection.
        if !matches!(self.needs, RequiredAuth::Nothing | RequiredAuth::Oauth)
            && let Some(activity) = request.extensions_mut().remove::<Activity>()
        {
            activity.mark_authenticated();
        }
        Ok(())
    }

    async fn authenticate(
        &self,
        request: &mut Request,
        operation: &HttpOperation,
        response_context: &mut ResponseContext,
    ) -> Result<(), Response> {
        match self.needs {
            RequiredAuth::Caller => self.admit_caller(request, operation, response_context).await,
            RequiredAuth::Reader => {
                response_context.challenge = Some(AuthChallenge::of(request));
                auth::reader(&self.app, request)
            }
            RequiredAuth::Oauth if self.app.settings.load().oauth.is_none() => {
                self.reject_disabled(request, operation, response_context).await
            }
            // Boxed to keep the future of calls small.
            RequiredAuth::Node => Box::pin(self.admit_node(request, operation, response_context)).await,
            RequiredAuth::Person => Box::pin(browser_auth::admit(&self.app, request, &operation.origin)).await,
            RequiredAuth::Nothing | RequiredAuth::Oauth => Ok(()),
        }
    }

    async fn admit_node(
        &self,
        request: &mut Request,
        operation: &HttpOperation,
        response_context: &mut ResponseContext,
    ) -> Result<(), Response> {
        let Some(peers) = self.app.peers() else {
            return self.reject_disabled(request, operation, response_context).await;
        };
        self.app.gateway.freshness().check().map_err(error_response)?;
        let request_context =
            node::admit(&self.app, peers, request, &operation.origin).await.map_err(error_response)?;
        request.extensions_mut().insert(request_context);
        Ok(())
    }

    /// Answers for a route that is disabled: 404, but only to callers who are authenticated.
    async fn reject_disabled(
        &self,
        request: &mut Request,
        operation: &HttpOperation,
        response_context: &mut ResponseContext,
    ) -> Result<(), Response> {
        self.admit_caller(request, operation, response_context).await?;
        Err(health::not_found().await)
    }

    async fn admit_caller(
        &self,
        request: &mut Request,
        operation: &HttpOperation,
        response_context: &mut ResponseContext,
    ) -> Result<(), Response> {
        response_context.challenge = Some(AuthChallenge::of(request));
        let (caller, proof) = auth::caller(&self.app, request, operation.is_mcp()).await?;
        response_context.caller = Some(caller.clone());
        if operation.is_mcp() && self.app.peers().is_some() {
            // The store records which node holds a session, so this applies to the local owner too.
            self.app.gateway.freshness().check().map_err(error_response)?;
        }
        response_context.rate_limit = rate::take(&self.app, &caller)?;
        let caller = project::enter(&self.app, caller, request).await.map_err(error_response)?;
        let request_context = RequestContext::over_http(caller, proof, operation.origin.clone());
        request.extensions_mut().insert(request_context);
        Ok(())
    }
}

/// Data for the headers that are added to a response.
#[derive(Default)]
struct ResponseContext {
    /// The origin that may read the response (CORS).
    page: Option<HeaderValue>,
    challenge: Option<AuthChallenge>,
    caller: Option<Caller>,
    rate_limit: Option<RateLimitState>,
}

impl ResponseContext {
    fn finish(self, response: Response, app: &App) -> Response {
        let mut response = rate::set_headers(response, self.rate_limit);
        if let Some(challenge) = self.challenge {
            response = challenge.apply(response, app, self.caller.as_ref());
        }
        origin::allow(response, self.page)
    }
}

/// A service behind the guard; always ready.
pub(crate) trait GuardedService:
    Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

impl<S> GuardedService for S where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

impl<S> Layer<S> for GuardLayer {
    type Service = GuardService<S>;

    fn layer(&self, service: S) -> GuardService<S> {
        GuardService { guard: self.clone(), service }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct GuardService<S> {
    guard: GuardLayer,
    service: S,
}

impl<S: GuardedService> Service<Request> for GuardService<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        Box::pin(self.guard.clone().pass(request, self.service.clone()))
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::request_id::HEADER;
    use crate::test_app::app;

    #[tokio::test]
    async fn a_panic_is_the_error_of_its_request_alone() {
        async fn panics() {
            panic!("a secret of the gateway");
        }
        let router = Router::new()
            .route("/panics", get(panics))
            .route("/works", get(|| async { "fine" }))
            .layer(GuardLayer::new(&app(), RequiredAuth::Nothing))
            .with_state(());
        let ask = |path: &str| {
            let request = Request::get(path)
                .header("host", "localhost")
                .header(HEADER, "r-7")
                .body(Body::empty())
                .expect("a request");
            router.clone().oneshot(request)
        };
        let failed = ask("/panics").await.expect("an answer");
        assert_eq!(failed.status(), 500);
        assert_eq!(failed.headers()[HEADER], "r-7");
        let body = failed.into_body().collect().await.expect("a body").to_bytes();
        let body = hikite_core::json::Raw::parse(body).expect("JSON").value();
        assert_eq!((&body["error"], &body["code"]), (&"Internal server error".into(), &"INTERNAL_ERROR".into()));
        assert_eq!(body["requestId"], "r-7");
        assert_eq!(ask("/works").await.expect("an answer").status(), 200);
    }
}
