//! `subscriptions/listen`: a stream of the changes that a client subscribed to, until it disconnects or the server
//! stops.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use hikite_core::caller::{ClientCapabilities, Session};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::ListKind;
use hikite_core::source::{CallContext, CallOrigin, NoClient};
use hikite_gateway::{Command, Delivery, Inbox, SessionRegistration};
use hikite_wire::encode;
use hikite_wire::message::MessageId;
use hikite_wire::stateless::{META_SUBSCRIPTION, TASKS};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::StatelessRequest;
use super::result::{StatelessError, complete};
use crate::app::App;
use crate::error_response::error_response;
use crate::mcp::open_stream::OpenStreams;
use crate::mcp::pipe::DuplexClient;
use crate::mcp::stream;

/// The subscription flag and the notification of each list.
const FLAGS: [(ListKind, &str, &str); 3] = [
    (ListKind::Tools, "toolsListChanged", "notifications/tools/list_changed"),
    (ListKind::Prompts, "promptsListChanged", "notifications/prompts/list_changed"),
    (ListKind::Resources, "resourcesListChanged", "notifications/resources/list_changed"),
];

/// Maximum resource subscriptions of one listener; the acknowledgement names those in effect.
const SUBSCRIPTIONS: usize = 1000;

/// A subscription and its output.
struct SubscriptionListener {
    id: MessageId,
    kinds: Vec<ListKind>,
    out: mpsc::Sender<Bytes>,
    /// Messages from before the acknowledgement; `None` after it.
    early: Mutex<Option<Vec<Bytes>>>,
}

/// Unsubscribes on drop; lives as long as the stream.
struct ListenGuard {
    listener: Arc<SubscriptionListener>,
    _joined: SessionRegistration,
}

pub(crate) async fn stream(app: &Arc<App>, request: StatelessRequest) -> Response {
    let (out, messages) = mpsc::channel(app.limits.outbox_messages.max(1));
    let id = request.id.clone();
    let place = match OpenStreams::take(app, &request.request_context.caller) {
        Ok(place) => place,
        Err(error) => return error_response(error),
    };
    match begin(app, request, out).await {
        Ok(listening) => {
            let (farewell, ending) = (listening.listener.farewell(), place.ending.clone());
            stream::of_messages(None, messages, Some(farewell), ending, (listening, place))
        }
        Err(error_response) => error_response.answer(&id).response(),
    }
}

/// Listens on a pipe. The request is answered when listening ends: on cancellation, end of input or shutdown.
pub(crate) async fn on_pipe(pipe: &DuplexClient, request: StatelessRequest) -> Bytes {
    let id = request.id.clone();
    match begin(&pipe.app, request, pipe.out.clone()).await {
        Ok(listening) => {
            tokio::select! {
                () = pipe.app.stopping.cancelled() => {}
                () = pipe.ending.cancelled() => {}
            }
            listening.listener.farewell()
        }
        Err(error_response) => error_response.answer(&id).body,
    }
}

async fn begin(
    app: &Arc<App>,
    request: StatelessRequest,
    out: mpsc::Sender<Bytes>,
) -> Result<ListenGuard, StatelessError> {
    let wanted = request.params.get("notifications").and_then(Raw::object).unwrap_or_default();
    if wanted.get("taskIds").is_some() && !request.claim.client_capabilities.has_extension(TASKS) {
        let extensions = Object::default().with(TASKS, Raw::empty_object());
        return Err(StatelessError::missing_capability(&Object::default().with("extensions", extensions)));
    }
    let mut accepted = Object::default();
    let mut kinds = Vec::new();
    for (kind, flag, _) in FLAGS {
        if wanted.get(flag).is_some_and(|value| value.as_str() == "true") {
            kinds.push(kind);
            accepted.set(flag, Raw::of(&true));
        }
    }
    let (id, caller) = (app.next_session(), request.request_context.caller.clone());
    let session = Arc::new(Session { id, caller, client_capabilities: ClientCapabilities::default() });
    let early = Mutex::new(Some(Vec::new()));
    let listener = Arc::new(SubscriptionListener { id: request.id, kinds, out, early });
    let inbox = Arc::downgrade(&listener);
    let requests = request.claim.client_capabilities;
    let joined = app.gateway.sessions().join_listener(Arc::clone(&session), request.surfaces, inbox, requests);
    if let Some(uris) = wanted.get("resourceSubscriptions").and_then(Raw::items) {
        let subscribed = subscribe(app, &session, &uris[..uris.len().min(SUBSCRIPTIONS)]).await;
        accepted.set("resourceSubscriptions", Raw::array(&subscribed));
    }
    listener.acknowledge(accepted).await;
    Ok(ListenGuard { listener, _joined: joined })
}

/// Subscribes to the resources and returns those that succeeded.
async fn subscribe(app: &App, session: &Arc<Session>, uris: &[Raw]) -> Vec<Raw> {
    let mut subscribed = Vec::new();
    for uri in uris {
        let context = CallContext {
            session: Arc::clone(session),
            back: Arc::new(NoClient),
            origin: CallOrigin::default(),
            accepts_input_required: false,
            account: None,
        };
        let params = Object::default().with("uri", uri.clone());
        if app.gateway.dispatch(Command::Subscribe { params }, context).await.is_ok() {
            subscribed.push(uri.clone());
        }
    }
    subscribed
}

impl SubscriptionListener {
    /// Sends the acknowledgement, then the messages from before it.
    async fn acknowledge(&self, accepted: Object) {
        let params = self.with_subscription_id(Object::default().with("notifications", accepted));
        let acknowledgement = encode::notification("notifications/subscriptions/acknowledged", Some(&params));
        let _ = self.out.send(acknowledgement).await;
        let mut early = self.early.lock();
        for message in early.take().unwrap_or_default() {
            self.send(message);
        }
    }

    fn farewell(&self) -> Bytes {
        encode::result(&self.id, &complete(self.with_subscription_id(Object::default())))
    }

    fn with_subscription_id(&self, params: Object) -> Raw {
        let meta = params.get("_meta").and_then(Raw::object).unwrap_or_default();
        params.with("_meta", meta.with(META_SUBSCRIPTION, self.id.raw().clone())).raw()
    }

    fn send(&self, message: Bytes) {
        if self.out.try_send(message).is_err() {
            tracing::debug!("dropped a change notification to a client that does not read");
        }
    }
}

impl Inbox for SubscriptionListener {
    fn deliver(&self, delivery: Delivery) {
        let message = match delivery {
            Delivery::ListChanged(kind) if self.kinds.contains(&kind) => {
                let method = FLAGS.iter().find(|(known, ..)| *known == kind).map(|(_, _, method)| *method);
                method.map(|method| encode::notification(method, Some(&self.with_subscription_id(Object::default()))))
            }
            Delivery::ResourceUpdated(params) => {
                let params = self.with_subscription_id(params.object().unwrap_or_default());
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
