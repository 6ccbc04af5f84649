//! Change notifications of a stateless server: one `subscriptions/listen` request per connection stays open and carries
//! them. Each change of subscriptions replaces it with a new request; the old one stays open until the new one is
//! acknowledged.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{BoxFuture, CallOrigin};
use hikite_wire::message::MessageId;
use hikite_wire::stateless::META_SUBSCRIPTION;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::error::UpstreamError;
use crate::revision;

use super::request_meta::StatelessMeta;
use super::{Connection, ConnectionPurpose, listing};

/// Timeout for the acknowledgement of a listen request.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(10);
/// A request that was open this long resets the backoff.
const LONG_ENOUGH: Duration = Duration::from_secs(30);

/// A listen request in flight.
type ListenExchange<'a> = BoxFuture<'a, Result<Raw, UpstreamError>>;

#[derive(Debug)]
pub(crate) struct ListenState {
    /// Incremented with every change of the subscriptions.
    latest_change: watch::Sender<u64>,
    acknowledged_listen: watch::Sender<AcknowledgedListen>,
    /// Listen requests that are not acknowledged yet, by id.
    unacknowledged: Mutex<HashMap<u64, oneshot::Sender<Object>>>,
}

/// State that the server has acknowledged.
#[derive(Clone, Debug, Default)]
struct AcknowledgedListen {
    change: u64,
    uris: HashSet<String>,
    /// Reason why the latest listen request failed.
    refusal: Option<UpstreamError>,
}

impl Default for ListenState {
    fn default() -> Self {
        Self {
            latest_change: watch::Sender::new(0),
            acknowledged_listen: watch::Sender::new(AcknowledgedListen::default()),
            unacknowledged: Mutex::default(),
        }
    }
}

impl ListenState {
    /// Records a change of the subscriptions and returns its sequence number.
    pub(crate) fn change(&self) -> u64 {
        let mut change = 0;
        self.latest_change.send_modify(|latest_change| {
            *latest_change += 1;
            change = *latest_change;
        });
        change
    }

    /// Handles the acknowledgement of a listen request. `origin` is the request on whose stream it came.
    pub(crate) fn acknowledged(&self, params: &Raw, origin: Option<u64>) {
        let Some(params) = params.object() else { return };
        let named = || {
            let id = params.get("_meta")?.object()?.get(META_SUBSCRIPTION)?.clone();
            MessageId::read(id)?.as_number()
        };
        let waiting = origin.or_else(named).and_then(|id| self.unacknowledged.lock().remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(params.get("notifications").and_then(Raw::object).unwrap_or_default());
        }
    }
}

/// Starts listening for the lifetime of the connection, if the server has any notifications to send.
pub(crate) fn start(connection: &Arc<Connection>) {
    // A connection for reading lists is closed right after; changes arrive on the shared connection.
    if matches!(connection.purpose, ConnectionPurpose::Lists)
        || !(lists_may_change(connection) || can_subscribe(connection))
    {
        return;
    }
    let listener = Arc::clone(connection);
    connection.tasks.spawn(async move {
        let closed = listener.closed.clone();
        closed.run_until_cancelled(keep_listening(&listener)).await;
    });
}

/// Subscribes to a resource at the server. The resource must already be among the subscriptions.
pub(crate) async fn listen_to(connection: &Connection, uri: &str) -> Result<Raw, UpstreamError> {
    let unsupported = || {
        let reason = format!("`{}` sends no notifications when `{uri}` changes.", connection.name);
        Error::new(ErrorKind::MethodNotFound, reason)
    };
    if !can_subscribe(connection) {
        return Err(unsupported().into());
    }
    let mut acknowledged_listen = connection.listening.acknowledged_listen.subscribe();
    let change = connection.listening.change();
    let answered = connection
        .closed
        .run_until_cancelled(acknowledged_listen.wait_for(|acknowledged_listen| acknowledged_listen.change >= change))
        .await;
    let Some(Ok(acknowledged_listen)) = answered else { return Err(connection.close_reason()) };
    if acknowledged_listen.uris.contains(uri) {
        return Ok(Raw::empty_object());
    }
    Err(acknowledged_listen.refusal.clone().unwrap_or_else(|| unsupported().into()))
}

fn lists_may_change(connection: &Connection) -> bool {
    LISTS.iter().any(|(capability, _)| promises(connection, capability, "listChanged"))
}

fn can_subscribe(connection: &Connection) -> bool {
    promises(connection, "resources", "subscribe")
}

fn promises(connection: &Connection, capability: &str, member: &str) -> bool {
    let Some(initialize_result) = connection.initialize_result() else { return false };
    let declared = initialize_result.capabilities.get(capability).and_then(Raw::object);
    declared.and_then(|declared| declared.get(member)?.decode().ok()).unwrap_or(false)
}

/// Returns the notifications to listen for, or `None` if there are none.
fn wanted(connection: &Connection) -> Option<Object> {
    let mut wanted = Object::default();
    for (capability, member) in LISTS {
        if promises(connection, capability, "listChanged") {
            wanted.set(member, Raw::of(&true));
        }
    }
    let uris = connection.subscriptions.uris();
    if !uris.is_empty() && can_subscribe(connection) {
        wanted.set("resourceSubscriptions", Raw::of(&uris));
    }
    (!wanted.is_empty()).then_some(wanted)
}

/// Sends a listen request. Returns its exchange and the receiver of its acknowledgement.
fn begin(
    connection: &Connection,
    wanted: Object,
) -> Result<(ListenExchange<'_>, oneshot::Receiver<Object>), UpstreamError> {
    const METHOD: &str = "subscriptions/listen";
    let pending_request = connection.background_request()?;
    let (sender, acknowledged) = oneshot::channel();
    connection.listening.unacknowledged.lock().insert(pending_request.id, sender);
    let unacknowledged = ForgetListenOnDrop { listening: &connection.listening, id: pending_request.id };
    let params = Object::default().with("notifications", wanted);
    let (params, routing) = connection.prepare(
        METHOD,
        params,
        StatelessMeta::for_request(connection, None),
        None,
        (None, &CallOrigin::default()),
    );
    let exchange = async move {
        let _unheard = unacknowledged;
        connection.exchange(pending_request, METHOD, Some(params), routing).await
    };
    Ok((Box::pin(exchange), acknowledged))
}

/// Lists that may change: the capability that announces it, and the member of the listen request.
const LISTS: [(&str, &str); 3] =
    [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];

/// Removes an unacknowledged request when its exchange ends.
struct ForgetListenOnDrop<'a> {
    listening: &'a ListenState,
    id: u64,
}

impl Drop for ForgetListenOnDrop<'_> {
    fn drop(&mut self) {
        self.listening.unacknowledged.lock().remove(&self.id);
    }
}

async fn keep_listening(connection: &Arc<Connection>) {
    let mut change_events = connection.listening.latest_change.subscribe();
    let mut open: Option<ListenExchange<'_>> = None;
    let mut backoff = Backoff::default();
    let mut missed = false;
    loop {
        let change = *change_events.borrow_and_update();
        // A server that refused is asked again only after the subscriptions changed.
        let mut refused = false;
        match renew(connection, &mut open).await {
            Ok(uris) => {
                connection.listening.acknowledged_listen.send_replace(AcknowledgedListen {
                    change,
                    uris,
                    refusal: None,
                });
                if std::mem::take(&mut missed) {
                    listing::reread(connection);
                }
            }
            Err(error) => {
                tracing::debug!(
                    module = &*connection.name,
                    error = error.log_text(),
                    "no change notifications from this server"
                );
                refused = error.error.relayed.is_some() || revision::is_revision_change(&error);
                missed |= open.is_none();
                backoff.failed(Instant::now(), String::new());
                connection.listening.acknowledged_listen.send_modify(|acknowledged_listen| {
                    acknowledged_listen.change = change;
                    acknowledged_listen.refusal = Some(error);
                });
            }
        }
        let since = Instant::now();
        if open.is_some() {
            tokio::select! {
                _ = change_events.changed() => continue,
                () = ended(&mut open) => {}
            }
            (open, missed) = (None, true);
            if since.elapsed() > LONG_ENOUGH {
                backoff.succeeded();
            }
            backoff.failed(Instant::now(), String::new());
        }
        let pause = backoff.pause(Instant::now()).map_or(Duration::ZERO, |(pause, _)| pause);
        let again = !refused && wanted(connection).is_some();
        tokio::select! {
            _ = change_events.changed() => {}
            () = tokio::time::sleep(pause), if again => {}
        }
    }
}

/// Replaces the open listen request with one for the current subscriptions. Returns the resources that the server
/// agreed to.
async fn renew<'a>(
    connection: &'a Connection,
    open: &mut Option<ListenExchange<'a>>,
) -> Result<HashSet<String>, UpstreamError> {
    let Some(wanted) = wanted(connection) else {
        *open = None;
        return Ok(HashSet::new());
    };
    let (mut exchange, mut acknowledged) = begin(connection, wanted)?;
    let deadline = Instant::now() + ACKNOWLEDGE_TIMEOUT;
    let unacknowledged_error = || -> UpstreamError {
        let reason = format!("`{}` does not acknowledge a listen request.", connection.name);
        Error::new(ErrorKind::UpstreamUnavailable, reason).into()
    };
    let acknowledgement = loop {
        tokio::select! {
            acknowledgement = &mut acknowledged => break acknowledgement.map_err(|_| unacknowledged_error())?,
            answer = &mut exchange => return Err(answer.err().unwrap_or_else(unacknowledged_error)),
            () = ended(open), if open.is_some() => *open = None,
            () = tokio::time::sleep_until(deadline) => return Err(unacknowledged_error()),
        }
    };
    *open = Some(exchange);
    let uris = acknowledgement.get("resourceSubscriptions").and_then(|uris| uris.decode().ok());
    Ok(uris.unwrap_or_default())
}

/// Waits until the open request ends for any reason.
async fn ended(open: &mut Option<ListenExchange<'_>>) {
    if let Some(open) = open {
        let _ = open.await;
    }
}
