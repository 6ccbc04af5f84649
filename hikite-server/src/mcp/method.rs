//! The methods that a client may call, each mapped to the gateway.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use hikite_core::caller::Session as CoreSession;
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::level::Level;
use hikite_core::listing::ListKind;
use hikite_core::source::{CallContext, Method, Origin};
use hikite_gateway::aside::by_cost;
use hikite_gateway::{Command, Gateway, Page, Surfaces, scope};
use hikite_wire::encode;
use hikite_wire::message::{Id, Message};
use tokio::sync::mpsc;
use tokio::task::coop;
use tokio_util::sync::CancellationToken;

use crate::arrival::Arrival;
use crate::mcp::call::Call;
use crate::mcp::operation::{Asked, Operation};
use crate::mcp::sender::Params;
use crate::mcp::session::Session;

impl Session {
    /// Runs one request to its response. Messages that belong to the request go to `stream` while it runs.
    pub(crate) async fn handle(
        self: Arc<Self>,
        id: Id,
        method: Box<str>,
        Params { members: params, meta }: Params,
        stream: Option<mpsc::Sender<Bytes>>,
        arrival: Arrival,
    ) -> Bytes {
        self.touch();
        let core = self.core_of(&arrival.caller);
        let asked = Asked {
            id: &id,
            method: &method,
            params: &params,
            meta: meta.as_ref(),
            revision: self.revision.name(),
            session: Some(self.core.id.0),
        };
        let operation = Operation::begin(self.app.gateway.meter(), arrival, asked);
        let way = (meta.as_ref(), stream.clone());
        let context = self.context(core, &id, way, operation.origin.clone());
        let cancelled = CancellationToken::new();
        self.running.lock().insert(id.clone(), cancelled.clone());
        let _running = Forget { session: &self, id: &id };
        let answer = {
            let mut running =
                pin!(scope::within(operation.origin.clone(), self.run(&method, params, context)));
            tokio::select! {
                biased;
                answer = &mut running => answer,
                () = cancelled.cancelled() => {
                    Err(Error::new(Kind::Cancelled, "the client cancelled the request"))
                }
            }
        };
        operation.end(&answer);
        // While other requests run, a question on this stream may belong to them.
        if cancelled.is_cancelled() && self.running.lock().is_empty() {
            self.withdraw_questions(&id, stream.as_ref());
        }
        match answer {
            Ok(result) => encode::result(&id, &result),
            Err(error) => encode::error(Some(&id), &error.rpc()),
        }
    }

    /// Runs the messages of a batch concurrently and returns the responses. Fails if there are too many messages.
    pub(crate) async fn handle_batch(
        self: Arc<Self>,
        messages: Vec<Bytes>,
        arrival: Arrival,
    ) -> Result<Vec<Bytes>, Error> {
        let (count, most) = (messages.len(), self.app.limits.batch_tasks);
        if count > most {
            let message = format!("there are {count} messages at once; there may be {most}");
            return Err(Error::new(Kind::PayloadTooLarge, message)
                .hint("send fewer at once, or raise `limits.batch_tasks`"));
        }
        let answers = join_all(messages.into_iter().map(|bytes| {
            let (session, arrival) = (Arc::clone(&self), arrival.clone());
            async move {
                // The messages of a batch share one task.
                coop::consume_budget().await;
                match by_cost(bytes.len(), || Message::decode(&bytes)).await {
                    Ok(Message::Request { id, method, params }) => {
                        let read = || Params::read(&session.app, params.as_ref(), arrival);
                        return Some(match by_cost(bytes.len(), read).await {
                            Ok((params, arrival)) => session.handle(id, method, params, None, arrival).await,
                            Err(error) => encode::error(Some(&id), &error.rpc()),
                        });
                    }
                    Ok(Message::Notification { method, params }) => {
                        let read = || Params::read(&session.app, params.as_ref(), arrival);
                        if by_cost(bytes.len(), read).await.is_ok() {
                            session.notified(&method, params.as_ref());
                        }
                    }
                    Ok(Message::Response { id, body }) => session.answered(&id, body),
                    Err(bad) => {
                        let error = encode::error_object(bad.code(), &bad.to_string());
                        return Some(encode::error(bad.id(), &error));
                    }
                }
                None
            }
        }));
        Ok(answers.await.into_iter().flatten().collect())
    }

    async fn run(self: &Arc<Self>, method: &str, params: Object, context: CallContext) -> Result<Raw, Error> {
        let gateway = &self.app.gateway;
        if let Some(kind) = ListKind::ALL.into_iter().find(|kind| kind.method() == method) {
            let page = Page { cursor: params.text("cursor") };
            return Box::pin(gateway.list(&*context.session, self.surfaces, kind, page)).await;
        }
        if method == "ping" {
            return Ok(Raw::empty_object());
        }
        // Boxed to keep the future of `tools/call` small.
        match method {
            "logging/setLevel" => Box::pin(self.change_level(params, &context)).await,
            "resources/subscribe" => Box::pin(gateway.dispatch(Command::Subscribe { params }, context)).await,
            "resources/unsubscribe" => {
                Box::pin(gateway.dispatch(Command::Unsubscribe { params }, context)).await
            }
            "tools/call" if params.get("task").is_some() => Box::pin(self.begin_task(params, context)).await,
            "tasks/get" | "tasks/result" | "tasks/cancel" => {
                Box::pin(self.task(method, params, context)).await
            }
            "tasks/update" => Err(unknown_method(method)),
            _ => dispatch(gateway, self.surfaces, method, params, context).await,
        }
    }

    fn context(
        self: &Arc<Self>,
        session: Arc<CoreSession>,
        id: &Id,
        (meta, stream): (Option<&Object>, Option<mpsc::Sender<Bytes>>),
        origin: Origin,
    ) -> CallContext {
        let token = meta.and_then(|meta| meta.get("progressToken").cloned());
        let back = Arc::new(Call { session: Arc::downgrade(self), request: id.clone(), token, stream });
        let origin = Origin { client: Some(self.client.clone()), ..origin };
        CallContext { session, back, origin, takes_rounds: false, account: None }
    }

    async fn change_level(&self, params: Object, context: &CallContext) -> Result<Raw, Error> {
        let name = params.text("level").unwrap_or_default();
        let level = Level::parse(&name).ok_or_else(|| {
            Error::new(Kind::Validation, format!("`{name}` is not a log level"))
                .hint("debug, info, notice, warning, error, critical, alert or emergency")
        })?;
        self.set_level(level);
        self.app.gateway.set_level(params, context).await;
        Ok(Raw::empty_object())
    }
}

/// Dispatches the methods that clients with and without a session have in common.
pub(crate) async fn dispatch(
    gateway: &Gateway,
    surfaces: Surfaces,
    method: &str,
    params: Object,
    context: CallContext,
) -> Result<Raw, Error> {
    let command = match method {
        "tools/call" => return gateway.call_tool(surfaces, params, context).await,
        "resources/read" => Command::Read { params },
        "resources/directory/read" => Command::Directory { params },
        "prompts/get" => Command::Prompt { params },
        "completion/complete" => Command::Complete { params },
        "skills/get" => Command::Skill { params },
        "tasks/get" => Command::Task { method: Method::GetTask, params },
        "tasks/update" => Command::Task { method: Method::UpdateTask, params },
        "tasks/cancel" => Command::Task { method: Method::CancelTask, params },
        _ => return Err(unknown_method(method)),
    };
    Box::pin(gateway.dispatch(command, context)).await
}

fn unknown_method(method: &str) -> Error {
    Error::new(Kind::MethodNotFound, format!("there is no method `{method}`"))
}

/// Removes a request from the running ones on drop.
struct Forget<'a> {
    session: &'a Session,
    id: &'a Id,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.session.running.lock().remove(self.id);
    }
}
