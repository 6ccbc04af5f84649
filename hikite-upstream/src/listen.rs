//! Change notifications of a stateless server: one `subscriptions/listen` request per connection stays open and carries
//! them. Each change of subscriptions replaces it with a new request; the old one stays open until the new one is
//! acknowledged.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{BoxFuture, Origin};
use hikite_wire::message::Id;
use hikite_wire::stateless::META_SUBSCRIPTION;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::connection::{Connection, Purpose};
use crate::era;

/// Timeout for the acknowledgement of a listen request.
const PATIENCE: Duration = Duration::from_secs(10);
/// A request that was open this long resets the backoff.
const LONG_ENOUGH: Duration = Duration::from_secs(30);

/// A listen request in flight.
type Exchange<'a> = BoxFuture<'a, Result<Raw, Error>>;

#[derive(Debug)]
pub(crate) struct Listening {
    /// Incremented with every change of the subscriptions.
    wished: watch::Sender<u64>,
    agreed: watch::Sender<Agreed>,
    /// Listen requests that are not acknowledged yet, by id.
    unheard: Mutex<HashMap<u64, oneshot::Sender<Object>>>,
}

/// State that the server has acknowledged.
#[derive(Clone, Debug, Default)]
struct Agreed {
    wish: u64,
    uris: HashSet<String>,
    /// Reason why the latest listen request failed.
    refusal: Option<Error>,
}

impl Default for Listening {
    fn default() -> Self {
        Self {
            wished: watch::Sender::new(0),
            agreed: watch::Sender::new(Agreed::default()),
            unheard: Mutex::default(),
        }
    }
}

impl Listening {
    /// Records a change of the subscriptions and returns its sequence number.
    pub(crate) fn wish(&self) -> u64 {
        let mut wish = 0;
        self.wished.send_modify(|wished| {
            *wished += 1;
            wish = *wished;
        });
        wish
    }

    /// Handles the acknowledgement of a listen request. `origin` is the request on whose stream it came.
    pub(crate) fn acknowledged(&self, params: &Raw, origin: Option<u64>) {
        let Some(params) = params.object() else { return };
        let named = || {
            let id = params.get("_meta")?.object()?.get(META_SUBSCRIPTION)?.clone();
            Id::read(id)?.as_number()
        };
        let waiting = origin.or_else(named).and_then(|id| self.unheard.lock().remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(params.get("notifications").and_then(Raw::object).unwrap_or_default());
        }
    }
}

impl Connection {
    /// Starts listening for the lifetime of the connection, if the server has any notifications to send.
    pub(crate) fn start_listening(self: &Arc<Self>) {
        // A connection for reading lists is closed right after; changes arrive on the shared connection.
        if matches!(self.purpose, Purpose::Lists) || !(self.lists_may_change() || self.can_subscribe()) {
            return;
        }
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            let closed = connection.closed.clone();
            closed.run_until_cancelled(keep_listening(&connection)).await;
        });
    }

    /// Subscribes to a resource at the server. The resource must already be among the subscriptions.
    pub(crate) async fn listen_to(&self, uri: &str) -> Result<Raw, Error> {
        let unsupported = || {
            let reason = format!("`{}` tells nobody when `{uri}` changes", self.name);
            Error::new(Kind::MethodNotFound, reason)
        };
        if !self.can_subscribe() {
            return Err(unsupported());
        }
        let mut agreed = self.listening.agreed.subscribe();
        let wish = self.listening.wish();
        let answered = self.closed.run_until_cancelled(agreed.wait_for(|agreed| agreed.wish >= wish)).await;
        let Some(Ok(agreed)) = answered else { return Err(self.ending()) };
        if agreed.uris.contains(uri) {
            return Ok(Raw::empty_object());
        }
        Err(agreed.refusal.clone().unwrap_or_else(unsupported))
    }

    fn lists_may_change(&self) -> bool {
        LISTS.iter().any(|(capability, _)| self.promises(capability, "listChanged"))
    }

    fn can_subscribe(&self) -> bool {
        self.promises("resources", "subscribe")
    }

    fn promises(&self, capability: &str, member: &str) -> bool {
        let Some(welcome) = self.welcome() else { return false };
        let declared = welcome.capabilities.get(capability).and_then(Raw::object);
        declared.and_then(|declared| declared.get(member)?.decode().ok()).unwrap_or(false)
    }

    /// Returns the notifications to listen for, or `None` if there are none.
    fn wanted(&self) -> Option<Object> {
        let mut wanted = Object::default();
        for (capability, member) in LISTS {
            if self.promises(capability, "listChanged") {
                wanted.set(member, Raw::of(&true));
            }
        }
        let uris: Vec<String> = self.subscriptions.lock().keys().cloned().collect();
        if !uris.is_empty() && self.can_subscribe() {
            wanted.set("resourceSubscriptions", Raw::of(&uris));
        }
        (!wanted.is_empty()).then_some(wanted)
    }

    /// Sends a listen request. Returns its exchange and the receiver of its acknowledgement.
    fn begin_listening(&self, wanted: Object) -> Result<(Exchange<'_>, oneshot::Receiver<Object>), Error> {
        const METHOD: &str = "subscriptions/listen";
        let ticket = self.background_ticket()?;
        let (sender, acknowledged) = oneshot::channel();
        self.listening.unheard.lock().insert(ticket.id, sender);
        let unheard = UnheardOnDrop { listening: &self.listening, id: ticket.id };
        let params = Object::default().with("notifications", wanted);
        let (params, routing) =
            self.dress(METHOD, params, self.claiming(None), None, (None, &Origin::default()));
        let exchange = async move {
            let _unheard = unheard;
            self.exchange(ticket, METHOD, Some(params), routing).await
        };
        Ok((Box::pin(exchange), acknowledged))
    }
}

/// Lists that may change: the capability that announces it, and the member of the listen request.
const LISTS: [(&str, &str); 3] =
    [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];

/// Removes an unacknowledged request when its exchange ends.
struct UnheardOnDrop<'a> {
    listening: &'a Listening,
    id: u64,
}

impl Drop for UnheardOnDrop<'_> {
    fn drop(&mut self) {
        self.listening.unheard.lock().remove(&self.id);
    }
}

async fn keep_listening(connection: &Arc<Connection>) {
    let mut wishes = connection.listening.wished.subscribe();
    let mut open: Option<Exchange<'_>> = None;
    let mut backoff = Backoff::default();
    let mut missed = false;
    loop {
        let wish = *wishes.borrow_and_update();
        // A server that refused is asked again only after the subscriptions changed.
        let mut refused = false;
        match renew(connection, &mut open).await {
            Ok(uris) => {
                connection.listening.agreed.send_replace(Agreed { wish, uris, refusal: None });
                if std::mem::take(&mut missed) {
                    connection.doubt_lists();
                }
            }
            Err(error) => {
                tracing::debug!(
                    module = &*connection.name,
                    error = error.guarded(),
                    "no news of this server"
                );
                refused = error.relayed.is_some() || era::casts_doubt(&error);
                missed |= open.is_none();
                backoff.failed(Instant::now(), String::new());
                connection.listening.agreed.send_modify(|agreed| {
                    agreed.wish = wish;
                    agreed.refusal = Some(error);
                });
            }
        }
        let since = Instant::now();
        if open.is_some() {
            tokio::select! {
                _ = wishes.changed() => continue,
                () = ended(&mut open) => {}
            }
            (open, missed) = (None, true);
            if since.elapsed() > LONG_ENOUGH {
                backoff.succeeded();
            }
            backoff.failed(Instant::now(), String::new());
        }
        let pause = backoff.pause(Instant::now()).map_or(Duration::ZERO, |(pause, _)| pause);
        let again = !refused && connection.wanted().is_some();
        tokio::select! {
            _ = wishes.changed() => {}
            () = tokio::time::sleep(pause), if again => {}
        }
    }
}

/// Replaces the open listen request with one for the current subscriptions. Returns the resources that the server
/// agreed to.
async fn renew<'a>(
    connection: &'a Connection,
    open: &mut Option<Exchange<'a>>,
) -> Result<HashSet<String>, Error> {
    let Some(wanted) = connection.wanted() else {
        *open = None;
        return Ok(HashSet::new());
    };
    let (mut exchange, mut acknowledged) = connection.begin_listening(wanted)?;
    let deadline = Instant::now() + PATIENCE;
    let silent = || {
        let reason = format!("`{}` does not acknowledge a listen request", connection.name);
        Error::new(Kind::UpstreamUnavailable, reason)
    };
    let heard = loop {
        tokio::select! {
            heard = &mut acknowledged => break heard.map_err(|_| silent())?,
            answer = &mut exchange => return Err(answer.err().unwrap_or_else(silent)),
            () = ended(open), if open.is_some() => *open = None,
            () = tokio::time::sleep_until(deadline) => return Err(silent()),
        }
    };
    *open = Some(exchange);
    let uris = heard.get("resourceSubscriptions").and_then(|uris| uris.decode().ok());
    Ok(uris.unwrap_or_default())
}

/// Waits until the open request ends for any reason.
async fn ended(open: &mut Option<Exchange<'_>>) {
    if let Some(open) = open {
        let _ = open.await;
    }
}
