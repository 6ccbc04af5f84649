//! A client session: the negotiated parameters, the running requests and the open questions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use hikite_core::caller::{Caller, Session as CoreSession};
use hikite_core::json::Raw;
use hikite_core::listing::ListKind;
use hikite_core::log_level::LogLevel;
use hikite_core::time::rfc3339;
use hikite_gateway::{Delivery, Inbox, SessionRegistration, Surfaces, now_ms};
use hikite_wire::encode;
use hikite_wire::handshake::{InitializeRequest, InitializeResult, own_info, server_info};
use hikite_wire::message::MessageId;
use hikite_wire::revision::Revision;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::mcp::capability;
use crate::mcp::outbox::Outbox;
use crate::mcp::resume::Streams;
use crate::mcp::sender::without_sender;

pub(crate) struct ClientSession {
    pub(crate) app: Arc<App>,
    pub(crate) core: Arc<CoreSession>,
    pub(crate) revision: Revision,
    pub(crate) surfaces: Surfaces,
    /// The `clientInfo` of the client.
    pub(crate) client: Raw,
    pub(crate) outbox: Outbox,
    /// Cancellation tokens of the running requests, by the client's id.
    pub(crate) running: Mutex<HashMap<MessageId, CancellationToken>>,
    /// Open questions to the client, by our id.
    pub(crate) questions: Mutex<HashMap<u64, PendingQuestion>>,
    /// Resumable streams of requests.
    pub(crate) streams: Streams,
    next_question: AtomicU64,
    level: AtomicU8,
    last_used: Mutex<Instant>,
    /// Start of the session, in milliseconds since 1970.
    since: u64,
    joined: OnceLock<SessionRegistration>,
}

/// An open question to the client, and the request that it belongs to.
#[derive(Debug)]
pub(crate) struct PendingQuestion {
    pub(crate) request: MessageId,
    pub(crate) answer: oneshot::Sender<Result<Raw, Raw>>,
}

impl std::fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientSession").field("core", &self.core).finish_non_exhaustive()
    }
}

impl ClientSession {
    pub(crate) fn open(app: &Arc<App>, caller: Caller, surfaces: Surfaces, hello: InitializeRequest) -> Arc<Self> {
        let surfaces = app.settings.load().surfaces_for(surfaces, Some(&hello.client));
        let core =
            Arc::new(CoreSession { id: app.next_session(), caller, client_capabilities: hello.client_capabilities });
        let session = Arc::new(Self {
            app: Arc::clone(app),
            core: Arc::clone(&core),
            revision: hello.revision,
            surfaces,
            // Copied, so that the request it came in can be freed.
            client: hello.client.raw().copied(),
            outbox: Outbox::new(app.bounds()),
            running: Mutex::default(),
            questions: Mutex::default(),
            streams: Streams::default(),
            next_question: AtomicU64::new(1),
            level: AtomicU8::new(0),
            last_used: Mutex::new(Instant::now()),
            since: now_ms(),
            joined: OnceLock::new(),
        });
        let inbox: Weak<dyn Inbox> = Arc::<Self>::downgrade(&session);
        let _ = session.joined.set(app.gateway.sessions().join(core, surfaces, inbox));
        let name = hello.client.text("name").unwrap_or_default();
        app.count_session();
        tracing::info!(session = session.core.id.0, client = name, revision = %session.revision, "session started");
        session
    }

    /// Returns the session as the admin API shows it.
    pub(crate) fn object(&self) -> hikite_api::Session {
        let idle = u64::try_from(self.last_used().elapsed().as_millis()).unwrap_or(u64::MAX);
        let user = self.app.gateway.people().name_of(&self.core.caller.subject).map(|(_, name)| name);
        hikite_api::Session {
            id: self.core.id.0.to_string(),
            subject: self.core.caller.subject.to_string(),
            user: user.as_deref().map(str::to_owned),
            client: self.client.clone(),
            revision: self.revision.name().to_owned(),
            project: self.core.caller.project.as_deref().map(str::to_owned),
            since: rfc3339(self.since),
            last_seen: rfc3339(now_ms().saturating_sub(idle)),
            surfaces: self.surfaces.names().into_iter().map(str::to_owned).collect(),
        }
    }

    /// Builds the result of `initialize`.
    pub(crate) fn initialize_result(&self) -> Raw {
        let gateway = &self.app.gateway;
        let view = gateway.catalogs().view_of(&self.core.caller);
        InitializeResult {
            protocol_version: self.revision.name().into(),
            capabilities: capability::of_session(&view, self.revision),
            info: if self.revision >= Revision::V2025_11_25 { server_info() } else { own_info() },
            instructions: gateway.discovery().instructions(&self.core.caller, self.surfaces),
        }
        .result()
    }

    /// Returns the session as the sources see it for this caller, who may name a project for one request.
    pub(crate) fn core_of(&self, caller: &Caller) -> Arc<CoreSession> {
        if self.core.caller == *caller {
            return Arc::clone(&self.core);
        }
        let client_capabilities = self.core.client_capabilities.clone();
        Arc::new(CoreSession { id: self.core.id, caller: caller.clone(), client_capabilities })
    }

    pub(crate) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    pub(crate) fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }

    /// Returns `true` if a request runs or the stream is open.
    pub(crate) fn is_busy(&self) -> bool {
        !self.running.lock().is_empty() || self.outbox.is_open()
    }

    pub(crate) fn next_question(&self) -> u64 {
        self.next_question.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn set_level(&self, level: LogLevel) {
        self.level.store(level.rank(), Ordering::Relaxed);
    }

    /// Returns `true` if the client wants log messages of the level in the params.
    pub(crate) fn wants(&self, params: &Raw) -> bool {
        let level = params.object().and_then(|params| params.text("level"));
        let level = level.and_then(|level| LogLevel::parse(&level));
        level.is_none_or(|level| level.rank() >= self.level.load(Ordering::Relaxed))
    }

    /// Handles a notification of the client.
    pub(crate) fn handle_notification(&self, method: &str, params: Option<&Raw>) {
        match method {
            "notifications/cancelled" => {
                let id =
                    params.and_then(Raw::object).and_then(|params| MessageId::read(params.get("requestId")?.clone()));
                if let Some(running) = id.and_then(|id| self.running.lock().remove(&id)) {
                    running.cancel();
                }
            }
            "notifications/roots/list_changed" => self.app.gateway.sessions().roots_changed(self.core.id),
            _ => {}
        }
    }

    /// Ends the session and cancels its running requests.
    pub(crate) fn end(&self) {
        self.outbox.close();
        for (_, running) in self.running.lock().drain() {
            running.cancel();
        }
        self.streams.clear();
    }

    pub(crate) fn answered(&self, id: &MessageId, body: Result<Raw, Raw>) {
        let question = id.as_number().and_then(|id| self.questions.lock().remove(&id));
        if let Some(question) = question {
            let _ = question.answer.send(body.map(without_sender));
        }
    }
}

impl Drop for ClientSession {
    fn drop(&mut self) {
        self.app.uncount_session();
        tracing::info!(session = self.core.id.0, "session ended");
    }
}

impl Inbox for ClientSession {
    fn deliver(&self, delivery: Delivery) {
        // The token was revoked.
        if !self.app.gateway.people().is_still_valid(&self.core.caller) {
            return self.end();
        }
        let message: Bytes = match delivery {
            Delivery::ListChanged(kind) => {
                let method = match kind {
                    ListKind::Tools => "notifications/tools/list_changed",
                    ListKind::Resources | ListKind::Templates | ListKind::Skills => {
                        "notifications/resources/list_changed"
                    }
                    ListKind::Prompts => "notifications/prompts/list_changed",
                };
                encode::notification(method, None)
            }
            Delivery::ResourceUpdated(params) => encode::notification("notifications/resources/updated", Some(&params)),
            Delivery::Log(params) if self.wants(&params) => {
                encode::notification("notifications/message", Some(&params))
            }
            Delivery::Log(_) => return,
            Delivery::ElicitationComplete(params) => {
                encode::notification("notifications/elicitation/complete", Some(&params))
            }
        };
        self.outbox.send(message);
    }
}
