//! The methods that a client may call, each mapped to the gateway.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use hikite_core::caller::Session as CoreSession;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::ListKind;
use hikite_core::log_level::LogLevel;
use hikite_core::source::{CallContext, CallOrigin, SourceMethod};
use hikite_gateway::off_worker::off_worker;
use hikite_gateway::{CallResult, Command, Gateway, ListPage, Surfaces, scope};
use hikite_wire::encode;
use hikite_wire::message::{Message, MessageId};
use tokio::sync::mpsc;
use tokio::task::coop;
use tokio_util::sync::CancellationToken;

use crate::mcp::call::RequestBackchannel;
use crate::mcp::operation::{McpOperation, RequestInfo};
use crate::mcp::rpc_response::RpcResponse;
use crate::mcp::sender::MessageParams;
use crate::mcp::session::ClientSession;
use crate::request_context::RequestContext;

impl ClientSession {
    /// Runs one request to its response. Messages that belong to the request go to `stream` while it runs.
    pub(crate) async fn handle(
        self: Arc<Self>,
        id: MessageId,
        method: Box<str>,
        MessageParams { members: params, meta }: MessageParams,
        stream: Option<mpsc::Sender<Bytes>>,
        request_context: RequestContext,
    ) -> RpcResponse {
        self.touch();
        let core = self.core_of(&request_context.caller);
        let asked = RequestInfo {
            id: &id,
            method: &method,
            params: &params,
            meta: meta.as_ref(),
            revision: self.revision.name(),
            session: Some(self.core.id.0),
        };
        let operation = McpOperation::begin(self.app.gateway.meter(), request_context, asked);
        let way = (meta.as_ref(), stream.clone());
        let context = self.context(core, &id, way, operation.origin.clone());
        let cancelled = CancellationToken::new();
        self.running.lock().insert(id.clone(), cancelled.clone());
        let _running = RunningGuard { session: &self, id: &id };
        let answer = {
            let mut running = pin!(scope::within(operation.origin.clone(), self.run(&method, params, context)));
            tokio::select! {
                biased;
                answer = &mut running => answer,
                () = cancelled.cancelled() => {
                    Err(Error::new(ErrorKind::Cancelled, "The client cancelled the request."))
                }
            }
        };
        operation.end(&answer);
        // While other requests run, a question on this stream may belong to them.
        if cancelled.is_cancelled() && self.running.lock().is_empty() {
            self.withdraw_questions(&id, stream.as_ref());
        }
        match answer {
            Ok(result) => RpcResponse::of_result(&id, &result),
            Err(error) => RpcResponse::of_error(&id, &error),
        }
    }

    /// Runs the messages of a batch concurrently and returns the responses. Fails if there are too many messages.
    pub(crate) async fn handle_batch(
        self: Arc<Self>,
        messages: Vec<Bytes>,
        request_context: RequestContext,
    ) -> Result<Vec<Bytes>, Error> {
        let (count, most) = (messages.len(), self.app.limits.batch_tasks);
        if count > most {
            let message = format!("The request has {count} messages; the limit is {most}.");
            return Err(Error::new(ErrorKind::PayloadTooLarge, message)
                .hint("Send fewer at a time, or raise `limits.batch_tasks`."));
        }
        let answers = join_all(messages.into_iter().map(|bytes| {
            let (session, request_context) = (Arc::clone(&self), request_context.clone());
            async move {
                // The messages of a batch share one task.
                coop::consume_budget().await;
                match off_worker(bytes.len(), || Message::decode(&bytes)).await {
                    Ok(Message::Request { id, method, params }) => {
                        let read = || MessageParams::read(&session.app, params.as_ref(), request_context);
                        return Some(match off_worker(bytes.len(), read).await {
                            Ok((params, request_context)) => {
                                session.handle(id, method, params, None, request_context).await.body
                            }
                            Err(error) => encode::error(Some(&id), &error.rpc()),
                        });
                    }
                    Ok(Message::Notification { method, params }) => {
                        let read = || MessageParams::read(&session.app, params.as_ref(), request_context);
                        if off_worker(bytes.len(), read).await.is_ok() {
                            session.handle_notification(&method, params.as_ref());
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

    async fn run(self: &Arc<Self>, method: &str, params: Object, context: CallContext) -> Result<CallResult, Error> {
        let gateway = &self.app.gateway;
        if let Some(kind) = ListKind::ALL.into_iter().find(|kind| kind.method() == method) {
            let page = ListPage { cursor: params.text("cursor") };
            return Ok(Box::pin(gateway.discovery().list(&*context.session, self.surfaces, kind, page)).await?.into());
        }
        if method == "ping" {
            return Ok(Raw::empty_object().into());
        }
        // Boxed to keep the future of `tools/call` small.
        let result = match method {
            "logging/setLevel" => Box::pin(self.change_level(params, &context)).await,
            "resources/subscribe" => Box::pin(gateway.dispatch(Command::Subscribe { params }, context)).await,
            "resources/unsubscribe" => Box::pin(gateway.dispatch(Command::Unsubscribe { params }, context)).await,
            "tools/call" if params.get("task").is_some() => {
                return Box::pin(self.begin_task(params, context)).await;
            }
            "tasks/get" | "tasks/result" | "tasks/cancel" => Box::pin(self.task(method, params, context)).await,
            "tasks/update" => Err(unknown_method(method)),
            _ => return dispatch(gateway, self.surfaces, method, params, context).await,
        };
        Ok(result?.into())
    }

    fn context(
        self: &Arc<Self>,
        session: Arc<CoreSession>,
        id: &MessageId,
        (meta, stream): (Option<&Object>, Option<mpsc::Sender<Bytes>>),
        origin: CallOrigin,
    ) -> CallContext {
        let token = meta.and_then(|meta| meta.get("progressToken").cloned());
        let back = Arc::new(RequestBackchannel { session: Arc::downgrade(self), request: id.clone(), token, stream });
        let origin = CallOrigin { client: Some(self.client.clone()), ..origin };
        CallContext { session, back, origin, accepts_input_required: false, account: None }
    }

    async fn change_level(&self, params: Object, context: &CallContext) -> Result<Raw, Error> {
        let name = params.text("level").unwrap_or_default();
        let level = LogLevel::parse(&name).ok_or_else(|| {
            Error::new(ErrorKind::Validation, format!("`{name}` is not a log level."))
                .hint("Use debug, info, notice, warning, error, critical, alert or emergency.")
        })?;
        self.set_level(level);
        self.app.gateway.sessions().set_level(params, context).await;
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
) -> Result<CallResult, Error> {
    let command = match method {
        "tools/call" => return gateway.call_tool(surfaces, params, context).await,
        "resources/read" => Command::Read { params },
        "resources/directory/read" => Command::Directory { params },
        "prompts/get" => Command::Prompt { params },
        "completion/complete" => Command::Complete { params },
        "skills/get" => Command::Skill { params },
        "tasks/get" => Command::Task { method: SourceMethod::GetTask, params },
        "tasks/update" => Command::Task { method: SourceMethod::UpdateTask, params },
        "tasks/cancel" => Command::Task { method: SourceMethod::CancelTask, params },
        _ => return Err(unknown_method(method)),
    };
    Ok(Box::pin(gateway.dispatch(command, context)).await?.into())
}

fn unknown_method(method: &str) -> Error {
    Error::new(ErrorKind::MethodNotFound, format!("There is no method `{method}`."))
}

/// Removes a request from the running ones on drop.
struct RunningGuard<'a> {
    session: &'a ClientSession,
    id: &'a MessageId,
}

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.session.running.lock().remove(self.id);
    }
}
