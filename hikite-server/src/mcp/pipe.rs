//! A client on one bidirectional stream of messages: stdio, or the HTTP+SSE transport of 2024-11-05.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hikite_core::caller::Caller;
use hikite_core::error::Kind;
use hikite_core::json::Raw;
use hikite_gateway::Surfaces;
use hikite_gateway::aside::by_cost;
use hikite_wire::encode;
use hikite_wire::handshake::Hello;
use hikite_wire::message::{Id, Message, split};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::arrival::{Arrival, Proof};
use crate::mcp::operation::{Asked, Operation};
use crate::mcp::sender::Params;
use crate::mcp::session::Session;
use crate::mcp::stateless;

#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    pub(crate) proof: Proof,
    pub(crate) surfaces: Surfaces,
    /// The transport, as spans name it.
    pub(crate) transport: &'static str,
    pub(crate) out: mpsc::Sender<Bytes>,
    session: OnceLock<Arc<Session>>,
    /// Cancellation tokens of the running stateless requests.
    alone: Mutex<HashMap<Id, CancellationToken>>,
    /// The running requests.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the client stops sending; subscriptions end.
    pub(crate) ending: CancellationToken,
    /// Cancelled when the client is gone; running requests are cancelled.
    pub(crate) gone: CancellationToken,
}

impl Pipe {
    pub(crate) fn new(
        app: Arc<App>,
        (caller, proof): (Caller, Proof),
        (surfaces, transport): (Surfaces, &'static str),
        out: mpsc::Sender<Bytes>,
    ) -> Arc<Self> {
        Arc::new(Self {
            app,
            caller,
            proof,
            surfaces,
            transport,
            out,
            session: OnceLock::new(),
            alone: Mutex::default(),
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
            gone: CancellationToken::new(),
        })
    }

    /// Builds the context of one message.
    pub(crate) fn arrival(&self) -> Arrival {
        Arrival::bare(self.caller.clone(), self.proof, self.transport)
    }

    /// Receives one message. Requests run concurrently, so a slow one does not delay the others.
    pub(crate) async fn receive(self: &Arc<Self>, bytes: &Bytes) {
        match by_cost(bytes.len(), || split(bytes)).await {
            Some(messages) => self.receive_batch(messages).await,
            None => self.receive_one(bytes).await,
        }
    }

    /// Handles a JSON-RPC batch, which only one revision has.
    async fn receive_batch(self: &Arc<Self>, messages: Vec<Bytes>) {
        let session = self.session.get().filter(|session| session.revision.has_batches());
        let Some(session) = session.filter(|_| !messages.is_empty()) else {
            let reason = "several messages in one line are not part of the negotiated revision";
            let _ = self.out.send(encode::error(None, &encode::error_object(-32600, reason))).await;
            return;
        };
        let (pipe, session) = (Arc::clone(self), Arc::clone(session));
        self.tasks.spawn(async move {
            let answered = async {
                let answer = match session.handle_batch(messages, pipe.arrival()).await {
                    Ok(answers) if answers.is_empty() => return,
                    Ok(answers) => encode::batch(&answers),
                    Err(error) => encode::error(None, &error.rpc()),
                };
                let _ = pipe.out.send(answer).await;
            };
            pipe.gone.run_until_cancelled(answered).await;
        });
    }

    async fn receive_one(self: &Arc<Self>, bytes: &Bytes) {
        match by_cost(bytes.len(), || stateless::decode(bytes)).await {
            Ok((Message::Request { id, method, params }, true)) => self.run_alone((id, method, params)),
            Ok((Message::Request { id, method, params }, false)) => {
                let read = || Params::read(&self.app, params.as_ref(), self.arrival());
                let (read, arrival) = match by_cost(bytes.len(), read).await {
                    Ok(read) => read,
                    Err(error) => {
                        let _ = self.out.send(encode::error(Some(&id), &error.rpc())).await;
                        return;
                    }
                };
                if &*method == "initialize" {
                    self.app.gateway.settle(&self.caller).await;
                    let hello = by_cost(bytes.len(), || Hello::read(params.as_ref())).await;
                    let answer = self.initialize(&id, hello);
                    let _ = self.out.send(answer).await;
                    // Stored messages are sent after the response to `initialize`.
                    if let Some(session) = self.session.get() {
                        session.outbox.attach(self.out.clone());
                    }
                    return;
                }
                let Some(session) = self.session.get().cloned() else {
                    let _ = self.out.send(before_initialize(&id, &method)).await;
                    return;
                };
                let pipe = Arc::clone(self);
                self.tasks.spawn(async move {
                    let answered = pin!(async {
                        let answer = session.handle(id, method, read, None, arrival).await;
                        pipe.out.send(answer).await
                    });
                    pipe.gone.run_until_cancelled(answered).await;
                });
            }
            Ok((Message::Notification { method, params }, _)) => {
                let read = || Params::read(&self.app, params.as_ref(), self.arrival());
                if by_cost(bytes.len(), read).await.is_err() {
                    return;
                }
                if &*method == "notifications/cancelled" && self.cancel_alone(params.as_ref()) {
                    return;
                }
                if let Some(session) = self.session.get() {
                    session.notified(&method, params.as_ref());
                }
            }
            Ok((Message::Response { id, body }, _)) => {
                if let Some(session) = self.session.get() {
                    session.answered(&id, body);
                }
            }
            Err(bad) => {
                let error = encode::error_object(bad.code(), &bad.to_string());
                let _ = self.out.send(encode::error(bad.id(), &error)).await;
            }
        }
    }

    /// Runs a stateless request.
    fn run_alone(self: &Arc<Self>, request: (Id, Box<str>, Option<Raw>)) {
        let (pipe, id) = (Arc::clone(self), request.0.clone());
        let cancelled = self.gone.child_token();
        self.alone.lock().insert(id.clone(), cancelled.clone());
        self.tasks.spawn(async move {
            let answered = async {
                let answer = Box::pin(stateless::on_pipe(&pipe, request)).await;
                pipe.alone.lock().remove(&id);
                pipe.out.send(answer).await
            };
            cancelled.run_until_cancelled(answered).await;
        });
    }

    /// Returns `true` if the notification cancelled a stateless request.
    fn cancel_alone(&self, params: Option<&Raw>) -> bool {
        let id = params.and_then(Raw::object).and_then(|params| Id::read(params.get("requestId")?.clone()));
        let running = id.and_then(|id| self.alone.lock().remove(&id));
        running.inspect(CancellationToken::cancel).is_some()
    }

    fn initialize(&self, id: &Id, hello: Option<Hello>) -> Bytes {
        let revision = hello.as_ref().map_or("", |hello| hello.revision.name());
        let asked = Asked::initialize(id, revision);
        let operation = Operation::begin(self.app.gateway.meter(), self.arrival(), asked);
        let hello = match Hello::checked(hello) {
            Ok(hello) => hello,
            Err(why) => {
                operation.close(Some((Kind::Validation.face().code, -32602)));
                return encode::error(Some(id), &encode::error_object(-32602, why));
            }
        };
        operation.close(None);
        let session =
            self.session.get_or_init(|| Session::open(&self.app, self.caller.clone(), self.surfaces, hello));
        encode::result(id, &session.welcome())
    }
}

fn before_initialize(id: &Id, method: &str) -> Bytes {
    if method == "ping" {
        return encode::result(id, &Raw::empty_object());
    }
    encode::error(Some(id), &encode::error_object(-32600, "begin with `initialize`"))
}
