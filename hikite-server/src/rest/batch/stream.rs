//! A batch as an event stream: one event per task that starts or ends, and the report last. The batch runs while the
//! stream is read; disconnecting cancels it.

use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use hikite_core::caller::Caller;
use hikite_core::json::{Object, Raw};
use hikite_core::plan::Plan;
use hikite_core::source::CallOrigin;
use hikite_gateway::{Batch, Observer, TaskCompletion, scope};
use hikite_wire::sse;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::time::Instant;

use super::{answer, run as run_batch};
use crate::app::App;
use crate::error_response::{milliseconds, timed_error_response};

pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.trim_start().starts_with("text/event-stream"))
}

pub(super) fn run(app: Arc<App>, caller: Caller, origin: CallOrigin, batch: Batch) -> Response {
    let (events_tx, mut events_rx) = mpsc::unbounded_channel::<Bytes>();
    let within = origin.clone();
    let work = async move {
        let (began, watcher) = (Instant::now(), BatchObserver { events_tx, ids: OnceLock::new() });
        let last = match run_batch(&app, caller, origin, batch, &watcher).await {
            Ok(report) => sse::event("report", answer(&report, began.elapsed()).bytes()),
            Err(error) => sse::event("error", &text(timed_error_response(error, began.elapsed())).await),
        };
        // A failed send means that the client has disconnected.
        let _ = watcher.events_tx.send(last);
    };
    let work = stream::once(scope::within(within, work)).filter_map(|()| async { None });
    let events = stream::poll_fn(move |context| events_rx.poll_recv(context));
    let body = stream::select(events, work.boxed()).map(Ok::<_, std::convert::Infallible>);
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns the body of an error response.
async fn text(error_response: Response) -> Bytes {
    error_response.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default()
}

struct BatchObserver {
    events_tx: UnboundedSender<Bytes>,
    /// Task ids, by position in the plan.
    ids: OnceLock<Vec<Arc<str>>>,
}

impl BatchObserver {
    fn send_task(&self, task: &Object) {
        let _ = self.events_tx.send(sse::event("task", task.raw().bytes()));
    }
}

impl Observer for BatchObserver {
    fn begins(&self, plan: &Plan) {
        let ids = plan.tasks.iter().map(|task| Arc::clone(&task.id)).collect();
        let _ = self.ids.set(ids);
    }

    fn starts(&self, at: usize) {
        if let Some(id) = self.ids.get().and_then(|ids| ids.get(at)) {
            self.send_task(&Object::default().with("id", &**id).with("status", "running"));
        }
    }

    fn ends(&self, ending: &TaskCompletion<'_>) {
        let count = |count: usize| Raw::of(&count);
        self.send_task(
            &Object::default()
                .with("id", &*ending.task.id)
                .with("status", ending.status.name())
                .with("ms", milliseconds(ending.took))
                .with("done", count(ending.done))
                .with("total", count(ending.total)),
        );
    }
}
