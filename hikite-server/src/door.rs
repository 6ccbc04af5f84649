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
use hikite_core::error::{Error, Kind};
use hikite_core::source::BoxFuture;
use hikite_gateway::scope;
use http::HeaderValue;
use tower::{Layer, Service};

use crate::app::App;
use crate::arrival::Arrival;
use crate::challenge::Challenge;
use crate::connection::Activity;
use crate::observe::Visit;
use crate::rate::{self, Turn};
use crate::refusal::refusal;
use crate::{auth, connection, health, node, origin, person, project, proxy};

/// The authentication that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
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
pub(crate) struct Door {
    app: Arc<App>,
    needs: Needs,
}

impl Door {
    pub(crate) fn new(app: &Arc<App>, needs: Needs) -> Self {
        Self { app: Arc::clone(app), needs }
    }

    /// Handles a request from first check to finished response.
    async fn pass<S: Inside>(self, mut request: Request, mut inside: S) -> Result<Response, Infallible> {
        proxy::settle(&self.app, &mut request);
        let visit = Visit::begin(&self.app, &request);
        let answered = async {
            let mut leaving = Leaving::default();
            let response = match self.admit(&mut request, &visit, &mut leaving).await {
                Ok(()) => inside.call(request).await?,
                Err(instead) => instead,
            };
            Ok::<_, Infallible>(leaving.touch(response, &self.app))
        };
        let answered = AssertUnwindSafe(scope::within(visit.origin.clone(), answered)).catch_unwind();
        let response = answered.await.unwrap_or_else(|_| {
            tracing::error!(request_id = visit.request_id(), "a request failed inside hikite");
            Ok(refusal(Error::new(Kind::Internal, "a handler panicked")))
        })?;
        Ok(visit.end(&self.app, connection::close_refused(response)))
    }

    /// Admits the request or returns the response that refuses it.
    async fn admit(
        &self,
        request: &mut Request,
        visit: &Visit,
        leaving: &mut Leaving,
    ) -> Result<(), Response> {
        leaving.page = origin::check(&self.app, request)?;
        self.admit_by_need(request, visit, leaving).await?;
        // A public route does not authenticate the connection.
        if !matches!(self.needs, Needs::Nothing | Needs::Oauth)
            && let Some(activity) = request.extensions_mut().remove::<Activity>()
        {
            activity.becomes_known();
        }
        Ok(())
    }

    async fn admit_by_need(
        &self,
        request: &mut Request,
        visit: &Visit,
        leaving: &mut Leaving,
    ) -> Result<(), Response> {
        match self.needs {
            Needs::Caller => self.admit_caller(request, visit, leaving).await,
            Needs::Reader => {
                leaving.challenge = Some(Challenge::of(request));
                auth::reader(&self.app, request)
            }
            Needs::Oauth if self.app.settings.load().oauth.is_none() => {
                self.admit_nobody(request, visit, leaving).await
            }
            // Boxed to keep the future of calls small.
            Needs::Node => Box::pin(self.admit_node(request, visit, leaving)).await,
            Needs::Person => Box::pin(person::admit(&self.app, request, &visit.origin)).await,
            Needs::Nothing | Needs::Oauth => Ok(()),
        }
    }

    async fn admit_node(
        &self,
        request: &mut Request,
        visit: &Visit,
        leaving: &mut Leaving,
    ) -> Result<(), Response> {
        let Some(neighbours) = self.app.neighbours() else {
            return self.admit_nobody(request, visit, leaving).await;
        };
        self.app.gateway.freshness().check().map_err(refusal)?;
        let arrival = node::admit(&self.app, neighbours, request, &visit.origin).await.map_err(refusal)?;
        request.extensions_mut().insert(arrival);
        Ok(())
    }

    /// Answers for a route that is disabled: 404, but only to callers who are authenticated.
    async fn admit_nobody(
        &self,
        request: &mut Request,
        visit: &Visit,
        leaving: &mut Leaving,
    ) -> Result<(), Response> {
        self.admit_caller(request, visit, leaving).await?;
        Err(health::not_found().await)
    }

    async fn admit_caller(
        &self,
        request: &mut Request,
        visit: &Visit,
        leaving: &mut Leaving,
    ) -> Result<(), Response> {
        leaving.challenge = Some(Challenge::of(request));
        let (caller, proof) = auth::caller(&self.app, request, visit.is_mcp()).await?;
        leaving.caller = Some(caller.clone());
        if visit.is_mcp() && self.app.neighbours().is_some() {
            // The store records which node holds a session, so this applies to the local owner too.
            self.app.gateway.freshness().check().map_err(refusal)?;
        }
        leaving.turn = rate::take(&self.app, &caller)?;
        let caller = project::enter(&self.app, caller, request).await.map_err(refusal)?;
        let arrival = Arrival::over_http(caller, proof, visit.origin.clone());
        request.extensions_mut().insert(arrival);
        Ok(())
    }
}

/// Data for the headers that are added to a response.
#[derive(Default)]
struct Leaving {
    /// The origin that may read the response (CORS).
    page: Option<HeaderValue>,
    challenge: Option<Challenge>,
    caller: Option<Caller>,
    turn: Option<Turn>,
}

impl Leaving {
    fn touch(self, response: Response, app: &App) -> Response {
        let mut response = rate::tell(response, self.turn);
        if let Some(challenge) = self.challenge {
            response = challenge.put_on(response, app, self.caller.as_ref());
        }
        origin::allow(response, self.page)
    }
}

/// A service behind the guard; always ready.
pub(crate) trait Inside:
    Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

impl<S> Inside for S where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static
{
}

impl<S> Layer<S> for Door {
    type Service = Behind<S>;

    fn layer(&self, inside: S) -> Behind<S> {
        Behind { door: self.clone(), inside }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Behind<S> {
    door: Door,
    inside: S,
}

impl<S: Inside> Service<Request> for Behind<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inside.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        Box::pin(self.door.clone().pass(request, self.inside.clone()))
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
    use crate::probe::app;
    use crate::request_id::HEADER;

    #[tokio::test]
    async fn a_panic_is_the_error_of_its_request_alone() {
        async fn panics() {
            panic!("the secret of the house");
        }
        let router = Router::new()
            .route("/panics", get(panics))
            .route("/works", get(|| async { "fine" }))
            .layer(Door::new(&app(), Needs::Nothing))
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
        assert_eq!(
            (&body["error"], &body["code"]),
            (&"Internal server error".into(), &"INTERNAL_ERROR".into())
        );
        assert_eq!(body["requestId"], "r-7");
        assert_eq!(ask("/works").await.expect("an answer").status(), 200);
    }
}
