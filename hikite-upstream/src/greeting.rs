//! The first words on a new connection: `initialize` to a server with sessions, `server/discover` to one
//! without. Where nobody knows which it is, it is found out here.

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

/// A program of which nothing is known and that has not answered `server/discover` by then may never do so.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);
/// Neither may one that did before, or a web server.
const PATIENCE: Duration = Duration::from_secs(10);

/// The name of the error when a program may have choked on the first greeting: it answered none for half of the time
/// that it has to start. Most that are so slow are being downloaded, which is better not cut short.
pub(crate) const MUTE: &str = "Mute";
/// The name of the error when a program took both greetings.
pub(crate) const GREETED_TWICE: &str = "GreetedTwice";

impl Connection {
    /// `time` is how long all of it may take.
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

    /// Finds out what the server speaks. Where nobody knows, a program may be silent for so long, but no longer.
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
            // What wants a login for what it does not know may let the rest in.
            Verdict::Nothing(error) if error.kind == Kind::AccountRequired => {
                let welcome = self.initialize().await.map_err(|_| error)?;
                self.has_sessions(welcome).await;
            }
            // Whatever stands before a web server may be in the way of what it does not know.
            Verdict::Sessions | Verdict::Nothing(_) => {
                let welcome = self.initialize().await?;
                self.has_sessions(welcome).await;
            }
        }
        Ok(())
    }

    /// The server is silent: it may be starting, or it may never answer what it does not know. Whichever of
    /// the two greetings succeeds first is the right one.
    async fn race(
        self: &Arc<Self>,
        mut discovering: std::pin::Pin<Box<impl Future<Output = Verdict>>>,
        stdio: bool,
        silence: Option<Duration>,
    ) -> Result<(), Error> {
        let mut initializing = Box::pin(self.initialize());
        tokio::select! {
            // Both answers may be there by now.
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

    /// A program that has answered the first greeting has also been sent the second. If it takes that, too, the last
    /// may count, and what it speaks from here on is anyone's guess.
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

    /// Asks the server what it is; once more if it wants to hear our revision again.
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

    /// What the connection as a whole declares.
    pub(crate) fn own_abilities(&self) -> Abilities {
        match &self.purpose {
            Purpose::Lists => Abilities::all(),
            Purpose::Shared => self.starter.get().cloned().unwrap_or_default(),
            Purpose::Owned(session) => session.abilities.clone(),
        }
    }

    /// Ends the handshake: the server has `notifications/initialized`, and over HTTP the stream is open on which it may ask
    /// at once, before the first request is sent.
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

/// A member of a member.
fn member(object: &Object, path: &[&str]) -> Option<Raw> {
    let (first, rest) = path.split_first()?;
    let mut value = object.get(first)?.clone();
    for step in rest {
        value = value.object()?.get(step)?.clone();
    }
    Some(value)
}
