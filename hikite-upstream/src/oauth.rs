//! Being let in by a remote server, as the authorization part of the protocol has it: whose word opens it, how a person
//! says it, how it is renewed. A token goes to the server it was given for and nowhere else, and no token of our own
//! clients ever comes this far.

mod address;
mod challenge;
mod client;
mod discovery;
mod endpoint;
mod fetch;
mod form;
mod login;
mod metadata;
mod pending;
mod renew;
mod tokens;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hikite_core::error::{Error, Kind};
use hikite_core::keep::{Keep, Signer};
use hikite_core::secret::Secret;
use hikite_egress::{Allow, Client};
use http::header::{AUTHORIZATION, HeaderValue};
use http::{HeaderMap, Request, StatusCode, Uri};
use parking_lot::Mutex;
use tokio::sync::Notify;

use self::challenge::Challenge;
use self::fetch::Fetcher;
use self::pending::Pending;
use self::renew::AtHand;
use self::tokens::Tokens;

/// How a remote server is logged in to.
#[derive(Clone, Debug)]
pub struct Access {
    pub grant: Grant,
    /// The client that the owner wrote down.
    pub client: Option<Fixed>,
    /// What is asked for; empty for what the server names.
    pub scopes: Vec<String>,
    /// The only authorization server that is used, where the owner names one.
    pub issuer: Option<String>,
    /// What we say of ourselves, where others can read it.
    pub document: Option<Document>,
    /// What a person is told to do.
    pub advice: String,
    /// What may be reached beside the public internet.
    pub egress: Allow,
    pub keep: Arc<dyn Keep>,
}

/// A client that somebody registered.
#[derive(Clone, Debug)]
pub struct Fixed {
    pub id: String,
    pub secret: Option<Secret>,
    /// In place of a secret.
    pub signer: Option<Arc<dyn Signer>>,
}

/// Our own description at an address of ours, which then is our name.
#[derive(Clone, Debug)]
pub struct Document {
    pub url: String,
    /// The only way back that stands in it.
    pub redirect: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// A person logs in with a browser.
    #[default]
    AuthorizationCode,
    /// We log in ourselves.
    ClientCredentials,
}

/// The way into one server, for all its connections.
#[derive(Debug)]
pub(crate) struct Authorization {
    name: Arc<str>,
    access: Access,
    fetcher: Fetcher,
    state: Mutex<State>,
    /// Held while a token is renewed.
    turn: tokio::sync::Mutex<()>,
    /// Whether it was looked for what is kept.
    looked: AtomicBool,
    /// A person must log in before anything else can be done.
    needed: AtomicBool,
    /// Whether somebody has to log in has changed.
    pub(crate) changed: Notify,
    /// Somebody did.
    pub(crate) news: Notify,
}

#[derive(Debug, Default)]
struct State {
    tokens: Option<Arc<Tokens>>,
    /// What the server said when it last refused us.
    challenge: Challenge,
    /// Scopes that a call needed beside those of the token.
    more: Vec<String>,
    /// How often a token that had all scopes was refused for its scopes; and the last of them.
    useless: (u32, Option<Arc<Tokens>>),
    pending: Pending,
}

/// What a request showed.
pub(crate) type Shown = Option<Arc<Tokens>>;

impl Authorization {
    pub(crate) fn new(name: Arc<str>, home: Uri, access: Access) -> Self {
        let client = Client::guarded(address::allowed(&home, &access.egress));
        let fetcher = Fetcher { name: Arc::clone(&name), home, client };
        Self {
            name,
            access,
            fetcher,
            state: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            looked: AtomicBool::new(false),
            needed: AtomicBool::new(false),
            changed: Notify::new(),
            news: Notify::new(),
        }
    }

    /// What documents may be read from, beside the public internet.
    pub(crate) fn allow(&self, egress: &Allow) {
        self.fetcher.client.allow(address::allowed(&self.fetcher.home, egress));
    }

    pub(crate) fn is_needed(&self) -> bool {
        self.needed.load(Ordering::Relaxed)
    }

    /// The server let us in after all.
    pub(crate) fn opened(&self) {
        if self.needed.swap(false, Ordering::Relaxed) {
            self.changed.notify_one();
        }
    }

    /// Puts the token into a request to the server, if there is one.
    pub(crate) async fn show<B>(&self, request: &mut Request<B>) -> Result<Shown, Error> {
        if !address::same_origin(request.uri(), &self.fetcher.home) {
            return Ok(None);
        }
        let tokens = match self.at_hand() {
            AtHand::Sure(tokens) => tokens,
            // Boxed, so that it takes no room in a call that has a token at hand.
            AtHand::Unsure => Box::pin(self.current()).await?,
        };
        let Some(tokens) = tokens else { return Ok(None) };
        let value = HeaderValue::try_from(format!("Bearer {}", tokens.access.expose()));
        let mut value = value.map_err(|_| self.fetcher.failed("its token cannot be sent"))?;
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
        Ok(Some(tokens))
    }

    /// Whether an answer refuses for want of a login.
    pub(crate) fn is_refusal(status: StatusCode, headers: &HeaderMap) -> bool {
        status == StatusCode::UNAUTHORIZED
            || (status == StatusCode::FORBIDDEN && Challenge::read(headers).wants_more_scopes())
    }

    /// The server refused what a request showed. `Ok` if there is something else to show by now.
    pub(crate) async fn refused(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        shown: Shown,
    ) -> Result<(), Error> {
        let challenge = Challenge::read(headers);
        let _turn = self.turn.lock().await;
        // Another request may have seen to it.
        let current = self.state.lock().tokens.clone();
        if current.is_some() && current != shown {
            return Ok(());
        }
        let wants_more = status == StatusCode::FORBIDDEN;
        self.state.lock().challenge = challenge.clone();
        if !wants_more && self.take_kept(shown.as_deref()).await? {
            return Ok(());
        }
        if self.access.grant == Grant::ClientCredentials {
            return self.let_ourselves_in(&challenge, shown.as_deref()).await;
        }
        match shown {
            Some(shown) if wants_more => Err(self.step_up(&challenge, &shown)),
            Some(shown) => self.renew_refused(&shown, &challenge).await,
            None => Err(self.must_log_in()),
        }
    }

    /// A call needs scopes that the token does not have: the next login asks for both.
    fn step_up(&self, challenge: &Challenge, shown: &Arc<Tokens>) -> Error {
        let mut state = self.state.lock();
        if challenge.scopes.iter().all(|scope| shown.scopes.contains(scope)) {
            let (count, last) = &mut state.useless;
            if last.as_ref() != Some(shown) {
                (*count, *last) = (*count + 1, Some(Arc::clone(shown)));
            }
            if *count > 1 {
                let message =
                    format!("`{}` refuses for want of rights that the login does not give", self.name);
                return Error::new(Kind::Authorization, message);
            }
        } else {
            state.useless = (0, None);
        }
        state.more = union(&shown.scopes, &challenge.scopes);
        drop(state);
        let scopes = challenge.scopes.join(" ");
        let message = format!("`{}` needs a login with more rights ({scopes})", self.name);
        Error::new(Kind::AccountRequired, message).hint(self.access.advice.as_str())
    }

    /// Nothing can be shown: a person has to do something.
    fn must_log_in(&self) -> Error {
        if !self.needed.swap(true, Ordering::Relaxed) {
            self.changed.notify_one();
        }
        Error::new(Kind::AccountRequired, format!("`{}` needs a login", self.name))
            .hint(self.access.advice.as_str())
    }

    /// What we show is new each time and refused each time.
    pub(crate) fn useless(&self) -> Error {
        self.fetcher.failed("it refuses what its authorization server gave us")
    }

    fn set(&self, tokens: Option<Arc<Tokens>>) {
        let has = tokens.is_some();
        self.state.lock().tokens = tokens;
        if has {
            self.opened();
        }
    }
}

/// Both, each once, in their order.
fn union(one: &[String], other: &[String]) -> Vec<String> {
    let mut all = one.to_vec();
    all.extend(other.iter().filter(|scope| !one.contains(scope)).cloned());
    all
}

/// What nobody can guess.
fn random() -> Result<[u8; 32], Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| Error::new(Kind::Internal, "there is no randomness"))?;
    Ok(bytes)
}
