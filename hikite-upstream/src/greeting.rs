//! Handshake on a new connection: `initialize` for revisions with sessions, `server/discover` for the stateless one.
//! Probes for the revision if it is unknown.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Abilities;
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_wire::encode;
use hikite_wire::handshake::{Hello, Welcome, own_info};
use hikite_wire::revision::Revision;
use hikite_wire::stateless::TASKS;

use crate::connection::{Connection, Greeted, Purpose};
use crate::era::{self, Opening, Verdict};
use crate::http::UNREACHED;
use crate::outbound::Outbound;

/// Wait for `server/discover` before `initialize` is sent too, for a stdio server of unknown revision.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);
/// Wait for `server/discover` from a server that answered it before, or a remote one.
const PATIENCE: Duration = Duration::from_secs(10);

/// Error name: a stdio server answered neither handshake within half of its start timeout, and may be stuck on the
/// first one. Most servers this slow are still being downloaded, which must not be interrupted.
pub(crate) const MUTE: &str = "Mute";
/// Error name: a stdio server accepted both handshakes.
pub(crate) const GREETED_TWICE: &str = "GreetedTwice";

impl Connection {
    /// Performs the handshake. `time` is its total timeout.
    pub(crate) async fn greet(self: &Arc<Self>, opening: Opening, time: Duration) -> Result<(), Error> {
        match opening {
            Opening::SessionsOnly => {
                let welcome = self.initialize().await?;
                self.has_sessions(welcome).await;
            }
            Opening::Sessions => match self.initialize().await {
                Ok(welcome) => self.has_sessions(welcome).await,
                Err(error) if era::refuses_sessions(&error) => match self.discover().await {
                    Verdict::Stateless(welcome) => self.has_none(welcome),
                    _ => return Err(error),
                },
                Err(error) => return Err(error),
            },
            Opening::Probe => self.probe(Some(time / 2)).await?,
            Opening::Stateless => self.probe(None).await?,
            Opening::StatelessOnly => match self.discover().await {
                Verdict::Stateless(welcome) => self.has_none(welcome),
                Verdict::Again(error) | Verdict::Nothing(error) => return Err(error),
                Verdict::Sessions => return Err(self.odd("`server/discover`")),
            },
        }
        Ok(())
    }

    /// Probes for the revision. `silence` limits how long an unknown stdio server may stay silent.
    async fn probe(self: &Arc<Self>, silence: Option<Duration>) -> Result<(), Error> {
        let stdio = matches!(self.outbound(), Some(Outbound::Stdio(_)));
        let silence = silence.filter(|_| stdio);
        let patience = if silence.is_some() { SHORT_PATIENCE } else { PATIENCE };
        let mut discovering = Box::pin(self.discover());
        let Ok(verdict) = tokio::time::timeout(patience, &mut discovering).await else {
            let silence = silence.map(|silence| silence.saturating_sub(patience));
            return self.race(discovering, stdio, silence).await;
        };
        match verdict {
            Verdict::Stateless(welcome) => self.has_none(welcome),
            Verdict::Again(error) => return Err(error),
            Verdict::Nothing(error) if stdio || error.name == Some(UNREACHED) => return Err(error),
            // A server that requires a login for unknown methods may allow `initialize`.
            Verdict::Nothing(error) if error.kind == Kind::AccountRequired => {
                let welcome = self.initialize().await.map_err(|_| error)?;
                self.has_sessions(welcome).await;
            }
            // A proxy before the server may block methods that it does not know.
            Verdict::Sessions | Verdict::Nothing(_) => {
                let welcome = self.initialize().await?;
                self.has_sessions(welcome).await;
            }
        }
        Ok(())
    }

    /// Sends `initialize` while `server/discover` is still unanswered: the server may be starting, or may ignore
    /// unknown methods. The first handshake that succeeds wins.
    async fn race(
        self: &Arc<Self>,
        mut discovering: std::pin::Pin<Box<impl Future<Output = Verdict>>>,
        stdio: bool,
        silence: Option<Duration>,
    ) -> Result<(), Error> {
        let mut initializing = Box::pin(self.initialize());
        tokio::select! {
            // Both responses may have arrived.
            biased;
            verdict = &mut discovering => match verdict {
                Verdict::Stateless(welcome) if stdio => self.settle(welcome, initializing).await?,
                Verdict::Stateless(welcome) => self.has_none(welcome),
                _ => self.has_sessions(initializing.await?).await,
            },
            welcome = &mut initializing => match welcome {
                Ok(welcome) => self.has_sessions(welcome).await,
                Err(error) => match discovering.await {
                    Verdict::Stateless(welcome) => self.has_none(welcome),
                    _ => return Err(error),
                },
            },
            () = tokio::time::sleep(silence.unwrap_or_default()), if silence.is_some() => {
                let reason = format!("`{}` answers no greeting", self.name);
                return Err(Error::new(Kind::UpstreamUnavailable, reason).named(MUTE));
            }
        }
        Ok(())
    }

    /// Waits for the outcome of `initialize` after `server/discover` succeeded. If the server accepts both, its
    /// revision is undefined and the connection fails.
    async fn settle(
        self: &Arc<Self>,
        welcome: Welcome,
        initializing: impl Future<Output = Result<Welcome, Error>>,
    ) -> Result<(), Error> {
        if let Ok(Ok(_)) = tokio::time::timeout(PATIENCE, initializing).await {
            let reason = format!("`{}` took both greetings", self.name);
            return Err(Error::new(Kind::UpstreamUnavailable, reason).named(GREETED_TWICE));
        }
        self.has_none(welcome);
        Ok(())
    }

    /// Sends `server/discover`, and repeats it once if the server lists our revision in an error.
    async fn discover(&self) -> Verdict {
        let ask = async || {
            let claiming = self.greeting_claim();
            era::judge(self.request_stateless("server/discover", Object::default(), None, claiming).await)
        };
        match ask().await {
            Verdict::Again(_) => ask().await,
            verdict => verdict,
        }
    }

    async fn initialize(&self) -> Result<Welcome, Error> {
        let hello = Hello { revision: Revision::LATEST, abilities: self.own_abilities(), client: own_info() };
        let result = self.request("initialize", Some(hello.params()), None).await?;
        Welcome::read(&result).ok_or_else(|| self.odd("`initialize`"))
    }

    fn odd(&self, greeting: &str) -> Error {
        let reason = format!("`{}` answered {greeting} with something else", self.name);
        Error::new(Kind::UpstreamUnavailable, reason)
    }

    /// Returns the capabilities that the connection declares.
    pub(crate) fn own_abilities(&self) -> Abilities {
        match &self.purpose {
            Purpose::Lists => Abilities::all(),
            Purpose::Shared => self.starter.get().cloned().unwrap_or_default(),
            Purpose::Owned(session) => session.abilities.clone(),
        }
    }

    /// Completes the handshake of a revision with sessions: delivers `notifications/initialized` and, over HTTP, opens
    /// the GET stream for server requests before the first request is sent.
    async fn has_sessions(self: &Arc<Self>, welcome: Welcome) {
        if let Some(Outbound::Http(sender)) = self.outbound() {
            sender.negotiated(&welcome.protocol_version);
        }
        let runs_tasks = member(&welcome.capabilities, &["tasks", "requests", "tools", "call"]).is_some();
        self.greeted(Greeted { welcome, stateless: false, runs_tasks });
        self.deliver(encode::notification("notifications/initialized", None)).await;
        if let Some(Outbound::Http(sender)) = self.outbound() {
            sender.listen().await;
        }
    }

    fn has_none(self: &Arc<Self>, welcome: Welcome) {
        let runs_tasks = member(&welcome.capabilities, &["extensions", TASKS]).is_some();
        self.greeted(Greeted { welcome, stateless: true, runs_tasks });
        self.start_listening();
    }
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
