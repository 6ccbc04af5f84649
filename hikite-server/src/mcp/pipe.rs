//! A client on one bidirectional stream of messages: stdio, or the HTTP+SSE transport of 2024-11-05.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hikite_core::caller::Caller;
use hikite_core::error::ErrorKind;
use hikite_core::json::Raw;
use hikite_gateway::Surfaces;
use hikite_gateway::off_worker::off_worker;
use hikite_wire::encode;
use hikite_wire::handshake::InitializeRequest;
use hikite_wire::message::{Message, MessageId, split};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::mcp::operation::{McpOperation, RequestInfo};
use crate::mcp::sender::MessageParams;
use crate::mcp::session::ClientSession;
use crate::mcp::stateless;
use crate::request_context::{CallerProof, RequestContext};

#[derive(Debug)]
pub(crate) struct DuplexClient {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    pub(crate) proof: CallerProof,
    pub(crate) surfaces: Surfaces,
    /// The transport, as spans name it.
    pub(crate) transport: &'static str,
    pub(crate) out: mpsc::Sender<Bytes>,
    session: OnceLock<Arc<ClientSession>>,
    /// Cancellation tokens of the running stateless requests.
    stateless_requests: Mutex<HashMap<MessageId, CancellationToken>>,
    /// The running requests.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the client stops sending; subscriptions end.
    pub(crate) ending: CancellationToken,
    /// Cancelled when the client is gone; running requests are cancelled.
    pub(crate) gone: CancellationToken,
}

impl DuplexClient {
    pub(crate) fn new(
        app: Arc<App>,
        (caller, proof): (Caller, CallerProof),
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
            stateless_requests: Mutex::default(),
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
            gone: CancellationToken::new(),
        })
    }

    /// Builds the context of one message.
    pub(crate) fn request_context(&self) -> RequestContext {
        RequestContext::bare(self.caller.clone(), self.proof, self.transport)
    }

    /// Receives one message. Requests run concurrently, so a slow one does not delay the others.
    pub(crate) async fn receive(self: &Arc<Self>, bytes: &Bytes) {
        match off_worker(bytes.len(), || split(bytes)).await {
            Some(messages) => self.receive_batch(messages).await,
            None => self.receive_one(bytes).await,
        }
    }

    /// Handles a JSON-RPC batch, which only one revision has.
    async fn receive_batch(self: &Arc<Self>, messages: Vec<Bytes>) {
        let session = self.session.get().filter(|session| session.revision.has_batches());
        let Some(session) = session.filter(|_| !messages.is_empty()) else {
            let reason = "the negotiated revision does not allow several messages in one line";
            let _ = self.out.send(encode::error(None, &encode::error_object(-32600, reason))).await;
            return;
        };
        let (pipe, session) = (Arc::clone(self), Arc::clone(session));
        self.tasks.spawn(async move {
            let answered = async {
                let answer = match session.handle_batch(messages, pipe.request_context()).await {
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
        match off_worker(bytes.len(), || stateless::decode(bytes)).await {
            Ok((Message::Request { id, method, params }, true)) => self.run_stateless((id, method, params)),
            Ok((Message::Request { id, method, params }, false)) => {
                let read = || MessageParams::read(&self.app, params.as_ref(), self.request_context());
                let (read, request_context) = match off_worker(bytes.len(), read).await {
                    Ok(read) => read,
                    Err(error) => {
                        let _ = self.out.send(encode::error(Some(&id), &error.rpc())).await;
                        return;
                    }
                };
                if &*method == "initialize" {
                    self.app.gateway.lookup().wait_for_listings(&self.caller).await;
                    let hello = off_worker(bytes.len(), || InitializeRequest::read(params.as_ref())).await;
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
                        let answer = session.handle(id, method, read, None, request_context).await;
                        pipe.out.send(answer.body).await
                    });
                    pipe.gone.run_until_cancelled(answered).await;
                });
            }
            Ok((Message::Notification { method, params }, _)) => {
                let read = || MessageParams::read(&self.app, params.as_ref(), self.request_context());
                if off_worker(bytes.len(), read).await.is_err() {
                    return;
                }
                if &*method == "notifications/cancelled" && self.cancel_stateless(params.as_ref()) {
                    return;
                }
                if let Some(session) = self.session.get() {
                    session.handle_notification(&method, params.as_ref());
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
    fn run_stateless(self: &Arc<Self>, request: (MessageId, Box<str>, Option<Raw>)) {
        let (pipe, id) = (Arc::clone(self), request.0.clone());
        let cancelled = self.gone.child_token();
        self.stateless_requests.lock().insert(id.clone(), cancelled.clone());
        self.tasks.spawn(async move {
            let answered = async {
                let answer = Box::pin(stateless::on_pipe(&pipe, request)).await;
                pipe.stateless_requests.lock().remove(&id);
                pipe.out.send(answer).await
            };
            cancelled.run_until_cancelled(answered).await;
        });
    }

    /// Returns `true` if the notification cancelled a stateless request.
    fn cancel_stateless(&self, params: Option<&Raw>) -> bool {
        let id = params.and_then(Raw::object).and_then(|params| MessageId::read(params.get("requestId")?.clone()));
        let running = id.and_then(|id| self.stateless_requests.lock().remove(&id));
        running.inspect(CancellationToken::cancel).is_some()
    }

    fn initialize(&self, id: &MessageId, hello: Option<InitializeRequest>) -> Bytes {
        let revision = hello.as_ref().map_or("", |hello| hello.revision.name());
        let asked = RequestInfo::initialize(id, revision);
        let operation = McpOperation::begin(self.app.gateway.meter(), self.request_context(), asked);
        let hello = match InitializeRequest::checked(hello) {
            Ok(hello) => hello,
            Err(why) => {
                operation.close(Some((ErrorKind::Validation.definition().code, -32602)));
                return encode::error(Some(id), &encode::error_object(-32602, why));
            }
        };
        operation.close(None);
        let session =
            self.session.get_or_init(|| ClientSession::open(&self.app, self.caller.clone(), self.surfaces, hello));
        encode::result(id, &session.initialize_result())
    }
}

fn before_initialize(id: &MessageId, method: &str) -> Bytes {
    if method == "ping" {
        return encode::result(id, &Raw::empty_object());
    }
    encode::error(Some(id), &encode::error_object(-32600, "Start with `initialize`."))
}
