//! `subscriptions/listen`: a stream of the changes that a client subscribed to, until it disconnects or the server
//! stops.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use hikite_core::caller::{Abilities, Session};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::ListKind;
use hikite_core::source::{CallContext, Nobody, Origin};
use hikite_gateway::{Command, Delivery, Inbox, Joined};
use hikite_wire::encode;
use hikite_wire::message::Id;
use hikite_wire::stateless::{META_SUBSCRIPTION, TASKS};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::Request;
use super::result::{Refusal, complete};
use crate::app::App;
use crate::mcp::open_stream::OpenStreams;
use crate::mcp::pipe::Pipe;
use crate::mcp::stream;
use crate::refusal::refusal;

/// The subscription flag and the notification of each list.
const FLAGS: [(ListKind, &str, &str); 3] = [
    (ListKind::Tools, "toolsListChanged", "notifications/tools/list_changed"),
    (ListKind::Prompts, "promptsListChanged", "notifications/prompts/list_changed"),
    (ListKind::Resources, "resourcesListChanged", "notifications/resources/list_changed"),
];

/// Maximum resource subscriptions of one listener; the acknowledgement names those in effect.
const SUBSCRIPTIONS: usize = 1000;

/// A subscription and its output.
struct Listener {
    id: Id,
    kinds: Vec<ListKind>,
    out: mpsc::Sender<Bytes>,
    /// Messages from before the acknowledgement; `None` after it.
    early: Mutex<Option<Vec<Bytes>>>,
}

/// Unsubscribes on drop; lives as long as the stream.
struct Listening {
    listener: Arc<Listener>,
    _joined: Joined,
}

pub(crate) async fn stream(app: &Arc<App>, request: Request) -> Response {
    let (out, messages) = mpsc::channel(app.limits.outbox_messages.max(1));
    let id = request.id.clone();
    let place = match OpenStreams::take(app, &request.arrival.caller) {
        Ok(place) => place,
        Err(error) => return refusal(error),
    };
    match begin(app, request, out).await {
        Ok(listening) => {
            let (farewell, ending) = (listening.listener.farewell(), place.ending.clone());
            stream::of_messages(None, messages, Some(farewell), ending, (listening, place))
        }
        Err(refusal) => refusal.answer(&id).response(),
    }
}

/// Listens on a pipe. The request is answered when listening ends: on cancellation, end of input or shutdown.
pub(crate) async fn on_pipe(pipe: &Pipe, request: Request) -> Bytes {
    let id = request.id.clone();
    match begin(&pipe.app, request, pipe.out.clone()).await {
        Ok(listening) => {
            tokio::select! {
                () = pipe.app.stopping.cancelled() => {}
                () = pipe.ending.cancelled() => {}
            }
            listening.listener.farewell()
        }
        Err(refusal) => refusal.answer(&id).body,
    }
}

async fn begin(app: &Arc<App>, request: Request, out: mpsc::Sender<Bytes>) -> Result<Listening, Refusal> {
    let wanted = request.params.get("notifications").and_then(Raw::object).unwrap_or_default();
    if wanted.get("taskIds").is_some() && !request.claim.abilities.knows(TASKS) {
        let extensions = Object::default().with(TASKS, Raw::empty_object());
        return Err(Refusal::lacking(&Object::default().with("extensions", extensions)));
    }
    let mut honoured = Object::default();
    let mut kinds = Vec::new();
    for (kind, flag, _) in FLAGS {
        if wanted.get(flag).is_some_and(|value| value.as_str() == "true") {
            kinds.push(kind);
            honoured.set(flag, Raw::of(&true));
        }
    }
    let (id, caller) = (app.next_session(), request.arrival.caller.clone());
    let session = Arc::new(Session { id, caller, abilities: Abilities::default() });
    let early = Mutex::new(Some(Vec::new()));
    let listener = Arc::new(Listener { id: request.id, kinds, out, early });
    let inbox = Arc::downgrade(&listener);
    let requests = request.claim.abilities;
    let joined = app.gateway.join_listener(Arc::clone(&session), request.surfaces, inbox, requests);
    if let Some(uris) = wanted.get("resourceSubscriptions").and_then(Raw::items) {
        let subscribed = subscribe(app, &session, &uris[..uris.len().min(SUBSCRIPTIONS)]).await;
        honoured.set("resourceSubscriptions", Raw::array(&subscribed));
    }
    listener.acknowledge(honoured).await;
    Ok(Listening { listener, _joined: joined })
}

/// Subscribes to the resources and returns those that succeeded.
async fn subscribe(app: &App, session: &Arc<Session>, uris: &[Raw]) -> Vec<Raw> {
    let mut subscribed = Vec::new();
    for uri in uris {
        let context = CallContext {
            session: Arc::clone(session),
            back: Arc::new(Nobody),
            origin: Origin::default(),
            takes_rounds: false,
            account: None,
        };
        let params = Object::default().with("uri", uri.clone());
        if app.gateway.dispatch(Command::Subscribe { params }, context).await.is_ok() {
            subscribed.push(uri.clone());
        }
    }
    subscribed
}

impl Listener {
    /// Sends the acknowledgement, then the messages from before it.
    async fn acknowledge(&self, honoured: Object) {
        let params = self.tagged(Object::default().with("notifications", honoured));
        let said = encode::notification("notifications/subscriptions/acknowledged", Some(&params));
        let _ = self.out.send(said).await;
        let mut early = self.early.lock();
        for message in early.take().unwrap_or_default() {
            self.send(message);
        }
    }

    fn farewell(&self) -> Bytes {
        encode::result(&self.id, &complete(self.tagged(Object::default())))
    }

    fn tagged(&self, params: Object) -> Raw {
        let meta = params.get("_meta").and_then(Raw::object).unwrap_or_default();
        params.with("_meta", meta.with(META_SUBSCRIPTION, self.id.raw().clone())).raw()
    }

    fn send(&self, message: Bytes) {
        if self.out.try_send(message).is_err() {
            tracing::debug!("a change was not told to a client that does not read");
        }
    }
}

impl Inbox for Listener {
    fn deliver(&self, delivery: Delivery) {
        let message = match delivery {
            Delivery::ListChanged(kind) if self.kinds.contains(&kind) => {
                let method = FLAGS.iter().find(|(known, ..)| *known == kind).map(|(_, _, method)| *method);
                method.map(|method| encode::notification(method, Some(&self.tagged(Object::default()))))
            }
            Delivery::ResourceUpdated(params) => {
                let params = self.tagged(params.object().unwrap_or_default());
                Some(encode::notification("notifications/resources/updated", Some(&params)))
            }
            Delivery::ListChanged(_) | Delivery::Log(_) | Delivery::ElicitationComplete(_) => None,
        };
        let Some(message) = message else { return };
        match &mut *self.early.lock() {
            Some(early) => early.push(message),
            None => self.send(message),
        }
    }
}
