//! The one way in, for every route, from top to bottom: the request gets its id and its span, Host and Origin are
//! checked, then who asks, how often, and in which project. One service instead of a layer for each, because every
//! layer costs a call more than it does.

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
use tower::{Layer, Service};

use crate::app::App;
use crate::arrival::Arrival;
use crate::challenge::Challenge;
use crate::observe::Visit;
use crate::refusal::refusal;
use crate::{auth, connection, health, node, origin, person, project, proxy, rate};

/// What a route wants to know of whoever comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// Nothing, where people log in; elsewhere there is no such route.
    Oauth,
    /// That it may read what is counted.
    Reader,
    /// Who it is.
    Caller,
    /// That another node has handed it on; where there are none, there is no such route.
    Node,
    /// Who sits at the browser; whoever is not logged in is sent there first.
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

    /// From the first look at a request to the last touch on its answer.
    async fn pass<S: Inside>(self, mut request: Request, inside: S) -> Response {
        proxy::settle(&self.app, &mut request);
        let visit = Visit::begin(&self.app, &request);
        let admitted = self.check_origin(request, &visit, inside);
        let admitted = AssertUnwindSafe(scope::within(visit.origin.clone(), admitted)).catch_unwind();
        let response = admitted.await.unwrap_or_else(|_| {
            tracing::error!(request_id = visit.request_id(), "a request failed inside hikite");
            refusal(Error::new(Kind::Internal, "a handler panicked"))
        });
        visit.end(&self.app, connection::close_refused(response))
    }

    async fn check_origin<S: Inside>(&self, mut request: Request, visit: &Visit, inside: S) -> Response {
        let page = match origin::check(&self.app, &request) {
            Ok(page) => page,
            Err(answer) => return answer,
        };
        let response = match self.needs {
            Needs::Caller => self.check_caller(request, visit, inside).await,
            Needs::Reader => match auth::reader(&self.app, &request) {
                Ok(()) => answer(request, inside).await,
                Err(refused) => Challenge::of(&request).put_on(refused, &self.app, None),
            },
            Needs::Oauth if self.app.settings.load().oauth.is_none() => {
                Box::pin(self.check_caller(request, visit, nothing())).await
            }
            // Boxed, so that they take no room in a call.
            Needs::Node => Box::pin(self.check_node(request, visit, inside)).await,
            Needs::Person => match Box::pin(person::admit(&self.app, &mut request, &visit.origin)).await {
                Ok(()) => answer(request, inside).await,
                Err(instead) => instead,
            },
            Needs::Nothing | Needs::Oauth => answer(request, inside).await,
        };
        origin::allow(response, page)
    }

    async fn check_node<S: Inside>(&self, mut request: Request, visit: &Visit, inside: S) -> Response {
        let Some(neighbours) = self.app.neighbours() else {
            return self.check_caller(request, visit, nothing()).await;
        };
        match node::admit(&self.app, neighbours, &mut request, &visit.origin).await {
            Ok(arrival) => {
                request.extensions_mut().insert(arrival);
                answer(request, inside).await
            }
            Err(error) => refusal(error),
        }
    }

    async fn check_caller<S: Inside>(&self, request: Request, visit: &Visit, inside: S) -> Response {
        let challenge = Challenge::of(&request);
        let mut caller = None;
        let response = self.let_in(request, visit, inside, &mut caller).await;
        challenge.put_on(response, &self.app, caller.as_ref())
    }

    async fn let_in<S: Inside>(
        &self,
        mut request: Request,
        visit: &Visit,
        inside: S,
        known: &mut Option<Caller>,
    ) -> Response {
        let (caller, proof) = match auth::caller(&self.app, &mut request, visit.is_mcp()).await {
            Ok(known) => known,
            Err(refused) => return refused,
        };
        *known = Some(caller.clone());
        let turn = match rate::take(&self.app, &caller) {
            Ok(turn) => turn,
            Err(refused) => return refused,
        };
        let response = match project::enter(&self.app, caller, &mut request).await {
            Ok(caller) => {
                let arrival = Arrival::over_http(caller, proof, visit.origin.clone());
                request.extensions_mut().insert(arrival);
                answer(request, inside).await
            }
            Err(error) => refusal(error),
        };
        rate::tell(response, turn)
    }
}

async fn answer<S: Inside>(request: Request, mut inside: S) -> Response {
    match inside.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// Where nothing is behind the door.
fn nothing() -> impl Inside {
    tower::service_fn(|_| async { Ok(health::not_found().await) })
}

/// What stands behind the door; always ready.
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
        let passing = self.door.clone().pass(request, self.inside.clone());
        Box::pin(async move { Ok(passing.await) })
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
