//! Handshake on a new connection: `initialize` for revisions with sessions, `server/discover` for the stateless one.
//! Probes for the revision if it is unknown.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_wire::encode;
use hikite_wire::handshake::{InitializeRequest, InitializeResult, own_info};
use hikite_wire::revision::Revision;
use hikite_wire::stateless::TASKS;

use crate::error::{FailureReason, UpstreamError};
use crate::outbound::Outbound;
use crate::revision::{self, DiscoverOutcome, HandshakeMode};

use super::request_meta::StatelessMeta;
use super::{Connection, Handshake, listen};

/// Wait for `server/discover` before `initialize` is sent too, for a stdio server of unknown revision.
const UNKNOWN_DISCOVER_WAIT: Duration = Duration::from_secs(2);
/// Wait for `server/discover` from a server that answered it before, or a remote one.
const DISCOVER_WAIT: Duration = Duration::from_secs(10);

/// Performs the handshake. `time` is its total timeout.
pub(crate) async fn perform(
    connection: &Arc<Connection>,
    handshake_mode: HandshakeMode,
    time: Duration,
) -> Result<(), UpstreamError> {
    match handshake_mode {
        HandshakeMode::SessionsOnly => {
            let initialize_result = initialize(connection).await?;
            complete_with_session(connection, initialize_result).await;
        }
        HandshakeMode::Sessions => match initialize(connection).await {
            Ok(initialize_result) => complete_with_session(connection, initialize_result).await,
            Err(error) if revision::refuses_sessions(&error) => match discover(connection).await {
                DiscoverOutcome::Stateless(initialize_result) => {
                    complete_stateless(connection, initialize_result);
                }
                _ => return Err(error),
            },
            Err(error) => return Err(error),
        },
        HandshakeMode::Probe => probe(connection, Some(time / 2)).await?,
        HandshakeMode::Stateless => probe(connection, None).await?,
        HandshakeMode::StatelessOnly => match discover(connection).await {
            DiscoverOutcome::Stateless(initialize_result) => complete_stateless(connection, initialize_result),
            DiscoverOutcome::Again(error) | DiscoverOutcome::Nothing(error) => return Err(error),
            DiscoverOutcome::Sessions => {
                return Err(unexpected_response(connection, "`server/discover`").into());
            }
        },
    }
    Ok(())
}

/// Probes for the revision. `silence` limits how long an unknown stdio server may stay silent.
async fn probe(connection: &Arc<Connection>, silence: Option<Duration>) -> Result<(), UpstreamError> {
    let stdio = matches!(connection.outbound(), Some(Outbound::Stdio(_)));
    let silence = silence.filter(|_| stdio);
    let discover_wait = if silence.is_some() { UNKNOWN_DISCOVER_WAIT } else { DISCOVER_WAIT };
    let mut discovering = Box::pin(discover(connection));
    let Ok(verdict) = tokio::time::timeout(discover_wait, &mut discovering).await else {
        let silence = silence.map(|silence| silence.saturating_sub(discover_wait));
        return race(connection, discovering, stdio, silence).await;
    };
    match verdict {
        DiscoverOutcome::Stateless(initialize_result) => complete_stateless(connection, initialize_result),
        DiscoverOutcome::Again(error) => return Err(error),
        DiscoverOutcome::Nothing(error) if stdio || matches!(error.reason, FailureReason::Unreachable) => {
            return Err(error);
        }
        // A server that requires a login for unknown methods may allow `initialize`.
        DiscoverOutcome::Nothing(error) if error.needs_login() => {
            let initialize_result = initialize(connection).await.map_err(|_| error)?;
            complete_with_session(connection, initialize_result).await;
        }
        // A proxy before the server may block methods that it does not know.
        DiscoverOutcome::Sessions | DiscoverOutcome::Nothing(_) => {
            let initialize_result = initialize(connection).await?;
            complete_with_session(connection, initialize_result).await;
        }
    }
    Ok(())
}

/// Sends `initialize` while `server/discover` is still unanswered: the server may be starting, or may ignore
/// unknown methods. The first handshake that succeeds wins.
async fn race(
    connection: &Arc<Connection>,
    mut discovering: std::pin::Pin<Box<impl Future<Output = DiscoverOutcome>>>,
    stdio: bool,
    silence: Option<Duration>,
) -> Result<(), UpstreamError> {
    let mut initializing = Box::pin(initialize(connection));
    tokio::select! {
        // Both responses may have arrived.
        biased;
        verdict = &mut discovering => match verdict {
            DiscoverOutcome::Stateless(initialize_result) if stdio => await_initialize(connection, initialize_result, initializing).await?,
            DiscoverOutcome::Stateless(initialize_result) => complete_stateless(connection, initialize_result),
            _ => complete_with_session(connection, initializing.await?).await,
        },
        initialize_result = &mut initializing => match initialize_result {
            Ok(initialize_result) => complete_with_session(connection, initialize_result).await,
            Err(error) => match discovering.await {
                DiscoverOutcome::Stateless(initialize_result) => complete_stateless(connection, initialize_result),
                _ => return Err(error),
            },
        },
        () = tokio::time::sleep(silence.unwrap_or_default()), if silence.is_some() => {
            let reason = format!("`{}` does not answer the handshake.", connection.name);
            let error = Error::new(ErrorKind::UpstreamUnavailable, reason);
            return Err(UpstreamError::new(FailureReason::HandshakeSilent, error));
        }
    }
    Ok(())
}

/// Waits for the outcome of `initialize` after `server/discover` succeeded. If the server accepts both, its
/// revision is undefined and the connection fails.
async fn await_initialize(
    connection: &Arc<Connection>,
    initialize_result: InitializeResult,
    initializing: impl Future<Output = Result<InitializeResult, UpstreamError>>,
) -> Result<(), UpstreamError> {
    if let Ok(Ok(_)) = tokio::time::timeout(DISCOVER_WAIT, initializing).await {
        let reason = format!("`{}` accepted both kinds of handshake.", connection.name);
        let error = Error::new(ErrorKind::UpstreamUnavailable, reason);
        return Err(UpstreamError::new(FailureReason::HandshakeAmbiguous, error));
    }
    complete_stateless(connection, initialize_result);
    Ok(())
}

/// Sends `server/discover`, and repeats it once if the server lists our revision in an error.
async fn discover(connection: &Connection) -> DiscoverOutcome {
    let ask = async || {
        let request_meta = StatelessMeta::for_handshake(connection);
        revision::classify_discovery(
            connection.request_stateless("server/discover", Object::default(), None, request_meta).await,
        )
    };
    match ask().await {
        DiscoverOutcome::Again(_) => ask().await,
        verdict => verdict,
    }
}

async fn initialize(connection: &Connection) -> Result<InitializeResult, UpstreamError> {
    let initialize_request = InitializeRequest {
        revision: Revision::LATEST,
        client_capabilities: connection.declared_capabilities(),
        client: own_info(),
    };
    let result = connection.request("initialize", Some(initialize_request.params()), None).await?;
    Ok(InitializeResult::read(&result).ok_or_else(|| unexpected_response(connection, "`initialize`"))?)
}

fn unexpected_response(connection: &Connection, greeting: &str) -> Error {
    let reason = format!("`{}` returned an unexpected response to {greeting}.", connection.name);
    Error::new(ErrorKind::UpstreamUnavailable, reason)
}

/// Completes the handshake of a revision with sessions: delivers `notifications/initialized` and, over HTTP, opens
/// the GET stream for server requests before the first request is sent.
async fn complete_with_session(connection: &Arc<Connection>, initialize_result: InitializeResult) {
    if let Some(Outbound::Http(sender)) = connection.outbound() {
        sender.negotiated(&initialize_result.protocol_version);
    }
    let runs_tasks = member(&initialize_result.capabilities, &["tasks", "requests", "tools", "call"]).is_some();
    connection.handshake_done(Handshake { initialize_result, stateless: false, runs_tasks });
    connection.deliver(encode::notification("notifications/initialized", None)).await;
    if let Some(Outbound::Http(sender)) = connection.outbound() {
        sender.listen().await;
    }
}

fn complete_stateless(connection: &Arc<Connection>, initialize_result: InitializeResult) {
    let runs_tasks = member(&initialize_result.capabilities, &["extensions", TASKS]).is_some();
    connection.handshake_done(Handshake { initialize_result, stateless: true, runs_tasks });
    listen::start(connection);
}

/// Returns the value at a path of members.
fn member(object: &Object, path: &[&str]) -> Option<Raw> {
    let (first, rest) = path.split_first()?;
    let mut value = object.get(first)?.clone();
    for step in rest {
        value = value.object()?.get(step)?.clone();
    }
    Some(value)
}
