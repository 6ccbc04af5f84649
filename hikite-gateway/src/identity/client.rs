//! OAuth clients: self-registered, described by a client ID metadata document, or created by an admin. A redirect URI
//! must be a loopback address, belong to a well-known client, or be approved.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Scopes;
use hikite_core::error::{Error, Kind};
use hikite_core::fault::{self, Fault};
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;
use hikite_core::share::{Allowance, ShareHolder, Shares};
use hikite_core::suggest;
use hikite_core::time::rfc3339;
use hikite_store::Entry;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use super::login::milliseconds;
use super::secret::id;
use super::{CLIENT, Denied, GRANT, Identity, Known, Redirect, consent, grant, hash, secret};
use crate::clock::now_ms;
use crate::share::{Tally, Usage};

const ID: &str = "hkc_";
const SECRET: &str = "hks_";
/// Age at which an unused registration expires.
const UNUSED: Duration = Duration::from_secs(30 * 86_400);
const NAME_CHARS: usize = 128;
/// Name of unused clients in the metrics.
const UNUSED_CLIENTS: &str = "unused_clients";

/// Limits on clients that nobody has logged in with, and the origin of a new one.
#[derive(Clone, Debug)]
pub struct ClientRoom {
    /// IP address or network.
    pub from: String,
    pub allowance: Allowance,
}

/// Unused clients at the last registration, and counters since the start.
#[derive(Debug, Default)]
pub(super) struct UnusedClients {
    refused: Tally,
    evicted: Tally,
    usage: Option<Usage>,
}

/// Origin of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Dynamic client registration.
    Registered,
    /// The client id is the URL of its metadata document.
    Document,
    /// Created by an admin.
    Admin,
}

/// Approval state of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Good,
    /// A redirect URI waits for the approval of an admin.
    Pending,
}

/// Input for a new client.
#[derive(Clone, Debug)]
pub struct ClientForm {
    pub name: String,
    pub redirect_uris: Vec<String>,
    /// `true` for a client with a secret.
    pub confidential: bool,
    /// Scopes of the client credentials grant, if allowed.
    pub own: Option<Scopes>,
}

const MEMBERS: [&str; 5] = ["name", "redirectUris", "confidential", "clientCredentials", "scopes"];

impl ClientForm {
    /// Reads an admin's input and reports all faults at once.
    pub fn read(form: &Object) -> Result<Self, Error> {
        let mut faults = Vec::new();
        let mut fault = |member: &str, message: String| faults.push(Fault::new(fault::step(member), message));
        for member in form.unknown(&MEMBERS) {
            let near = suggest::did_you_mean(member, MEMBERS).map(|near| format!(": {near}"));
            fault(member, format!("Unknown member `{member}`{}", near.unwrap_or_default()));
        }
        let given = |member: &str| form.get(member).filter(|value| !value.is_null());
        let name = form.text("name").unwrap_or_default();
        if name.trim().is_empty() || name.chars().count() > NAME_CHARS {
            fault("name", format!("`name` must be a name of up to {NAME_CHARS} characters"));
        }
        let uris = given("redirectUris").map(Raw::decode::<Vec<String>>).transpose().unwrap_or_else(|_| {
            fault("redirectUris", "`redirectUris` must be a list of addresses".into());
            None
        });
        let redirect_uris = uris.unwrap_or_default();
        for uri in &redirect_uris {
            if let Err(why) = Redirect::read(uri) {
                fault("redirectUris", format!("`{uri}` cannot be used: {why}"));
            }
        }
        let mut flag = |member: &str| {
            let given = given(member).map(Raw::decode::<bool>).transpose();
            given.ok().flatten().unwrap_or_else(|| {
                if form.get(member).is_some_and(|value| !value.is_null()) {
                    fault(member, format!("`{member}` must be true or false"));
                }
                false
            })
        };
        let (own, confidential) = (flag("clientCredentials"), flag("confidential"));
        let words = given("scopes").map(Raw::decode::<Vec<String>>).transpose().ok().flatten();
        let scopes = words.map(|words| {
            words.iter().try_fold(Scopes::NONE, |all, word| Some(all.with(Scopes::parse(word)?)))
        });
        let scopes = match (scopes, given("scopes")) {
            (Some(Some(scopes)), _) if scopes != Scopes::NONE => scopes,
            (_, None) => Scopes::USUAL,
            _ => {
                fault("scopes", "`scopes` must be a list of one or more of `read`, `call`, `admin`".into());
                Scopes::NONE
            }
        };
        if redirect_uris.is_empty() && !own {
            fault("redirectUris", "`redirectUris` is required: where the client is answered".into());
        }
        if !faults.is_empty() {
            return Err(fault::error(&faults));
        }
        Ok(Self { name, redirect_uris, confidential: confidential || own, own: own.then_some(scopes) })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Client {
    #[serde(skip)]
    pub id: String,
    pub name: String,
    pub redirect_uris: Vec<String>,
    pub origin: Origin,
    /// Hash of the client secret, if it has one.
    secret: Option<String>,
    /// Redirect origins that an admin approved.
    approved: Vec<String>,
    /// Grant for the client credentials flow.
    pub(super) grant: Option<String>,
    /// Time at which its metadata document was last fetched.
    #[serde(default)]
    looked_up_at: u64,
    /// Address that it registered from or was first named from; empty once somebody has logged in with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    from: String,
    #[serde(skip)]
    pub created_at: u64,
}

impl Client {
    /// Builds a client from a metadata document, not stored yet.
    pub fn described(id: &str, name: String, redirect_uris: Vec<String>) -> Self {
        let (id, origin) = (id.to_owned(), Origin::Document);
        Self {
            id,
            name,
            redirect_uris,
            origin,
            secret: None,
            approved: Vec::new(),
            grant: None,
            looked_up_at: 0,
            from: String::new(),
            created_at: now_ms(),
        }
    }

    /// Notes that its metadata document was fetched just now.
    #[must_use]
    pub fn looked_up(self) -> Self {
        Self { looked_up_at: now_ms(), ..self }
    }

    /// Returns `true` if its metadata document was fetched within this span.
    pub fn is_fresh(&self, span: Duration) -> bool {
        self.looked_up_at > 0 && now_ms() < self.looked_up_at + milliseconds(span)
    }

    fn of(entry: &Entry) -> Option<Self> {
        let client: Self = entry.form.decode().ok()?;
        Some(Self { id: entry.id.clone(), created_at: entry.created_at, ..client })
    }

    fn entry(&self, version: u64, expires_at: u64) -> Entry {
        Entry {
            kind: CLIENT,
            id: self.id.clone(),
            owner: String::new(),
            form: Raw::of(self),
            version,
            created_at: self.created_at,
            expires_at,
        }
    }

    pub fn is_confidential(&self) -> bool {
        self.secret.is_some()
    }

    /// Returns `true` if it may use the client credentials grant.
    pub fn is_own(&self) -> bool {
        self.grant.is_some()
    }

    /// Returns `true` if it registered this redirect URI.
    pub fn leads_to(&self, redirect: &Redirect<'_>) -> bool {
        self.redirect_uris.iter().any(|own| redirect.is(own))
    }

    /// Returns the approval state of one redirect URI.
    pub fn standing(&self, redirect: &Redirect<'_>, uri: &str) -> Standing {
        let approved = || self.origin == Origin::Admin || self.approved.contains(&redirect.place());
        if redirect.is_loopback() || Known::leads_to(uri) || approved() {
            Standing::Good
        } else {
            Standing::Pending
        }
    }

    /// Returns the approval state of all redirect URIs together.
    fn whole_standing(&self) -> Standing {
        let waits = |uri: &String| {
            Redirect::read(uri).is_ok_and(|redirect| self.standing(&redirect, uri) == Standing::Pending)
        };
        if self.redirect_uris.iter().any(waits) { Standing::Pending } else { Standing::Good }
    }

    /// Returns `true` if a redirect URI waits for approval.
    pub fn is_pending(&self) -> bool {
        self.whole_standing() == Standing::Pending
    }

    /// Returns the JSON for the API.
    pub fn object(&self) -> Object {
        let standing = if self.whole_standing() == Standing::Good { "active" } else { "pending" };
        Object::default()
            .with("id", self.id.as_str())
            .with("name", self.name.as_str())
            .with("redirectUris", Raw::of(&self.redirect_uris))
            .with("origin", Raw::of(&self.origin))
            .with("confidential", Raw::of(&self.is_confidential()))
            .with("clientCredentials", Raw::of(&self.is_own()))
            .with("status", standing)
            .with("createdAt", rfc3339(self.created_at))
    }
}

/// Origin of a new client, and its address.
struct Born<'a> {
    origin: Origin,
    from: &'a str,
}

impl Identity {
    pub async fn client(&self, id: &str) -> Result<Option<Client>, Error> {
        Ok(self.store.entry(CLIENT, id, now_ms()).await?.as_ref().and_then(Client::of))
    }

    /// Returns all clients, oldest first.
    pub async fn clients(&self) -> Result<Vec<Client>, Error> {
        let entries = self.store.entries(CLIENT, None, now_ms()).await?;
        Ok(entries.iter().filter_map(Client::of).collect())
    }

    pub async fn client_object(&self, id: &str) -> Result<Raw, Error> {
        Ok(self.client(id).await?.ok_or_else(|| no_client(id))?.object().raw())
    }

    /// Registers a client. Returns its secret if it is confidential.
    pub async fn register_client(
        &self,
        form: ClientForm,
        room: &ClientRoom,
    ) -> Result<(Client, Option<Secret>), Error> {
        self.make_room(room).await?;
        let form = ClientForm { own: None, ..form };
        let born = Born { origin: Origin::Registered, from: &room.from };
        self.make_client(form, born, now_ms() + milliseconds(UNUSED)).await
    }

    /// Makes room for one more unused client: the oldest one is evicted if its address has used up its share or there
    /// are too many in all. Registration is always possible.
    async fn make_room(&self, room: &ClientRoom) -> Result<(), Error> {
        let entries = self.store.entries(CLIENT, None, now_ms()).await?;
        let mut unused: Vec<(u64, String, ShareHolder)> = Vec::new();
        for entry in entries.iter().filter(|entry| entry.expires_at > 0) {
            let from = Client::of(entry).map(|client| client.from).unwrap_or_default();
            unused.push((entry.created_at, entry.id.clone(), ShareHolder::stranger(from)));
        }
        unused.sort_by_key(|(created_at, ..)| *created_at);
        let newest = (now_ms(), String::new(), ShareHolder::stranger(room.from.as_str()));
        let mut shares = Shares::new(room.allowance);
        for (created_at, id, holder) in unused.into_iter().chain([newest]) {
            let taken =
                shares.take(&holder, id, Duration::from_millis(created_at), |_, _| Some(Duration::ZERO));
            let out = taken.ok().and_then(|taken| taken.out);
            if let Some(out) = out.filter(|out| !out.value.is_empty()) {
                self.forget_unused(&out.value, &out.holder).await?;
                self.unused.lock().evicted.count(&out.holder);
            }
        }
        let mut unused = self.unused.lock();
        unused.usage = Some(Usage::of(UNUSED_CLIENTS, &shares, (&unused.refused, &unused.evicted)));
        Ok(())
    }

    /// Counts a refused registration.
    pub fn client_was_refused(&self, room: &ClientRoom) {
        let mut unused = self.unused.lock();
        unused.refused.count(&Arc::from(room.from.as_str()));
        let usage =
            Usage::of(UNUSED_CLIENTS, &Shares::<()>::new(room.allowance), (&unused.refused, &unused.evicted));
        // The usage per holder is unchanged.
        unused.usage = Some(match unused.usage.take() {
            Some(before) => Usage { refused: usage.refused, ..before },
            None => usage,
        });
    }

    pub(crate) fn client_usage(&self) -> Option<Usage> {
        self.unused.lock().usage.clone()
    }

    async fn forget_unused(&self, id: &str, from: &str) -> Result<(), Error> {
        let entry = self.store.entry(CLIENT, id, now_ms()).await?;
        if entry.is_some_and(|entry| entry.expires_at > 0) {
            self.store.take_entry(CLIENT, id, now_ms()).await?;
            tracing::info!(client = id, from, "a client that nobody has used gives way to another");
        }
        Ok(())
    }

    /// Creates a client for an admin.
    pub async fn add_client(&self, form: ClientForm) -> Result<(Client, Option<Secret>), Error> {
        if form.own.is_some() && !form.confidential {
            return Err(Error::new(Kind::Validation, "a client that comes for itself keeps a secret")
                .hint("make it confidential"));
        }
        self.make_client(form, Born { origin: Origin::Admin, from: "" }, 0).await
    }

    async fn make_client(
        &self,
        form: ClientForm,
        born: Born<'_>,
        expires_at: u64,
    ) -> Result<(Client, Option<Secret>), Error> {
        let secret = if form.confidential { Some(secret(SECRET)?) } else { None };
        let mut client = Client {
            id: id(ID)?,
            name: form.name,
            redirect_uris: form.redirect_uris,
            origin: born.origin,
            secret: secret.as_ref().map(|secret| hash(secret.expose())),
            approved: Vec::new(),
            grant: None,
            looked_up_at: 0,
            from: born.from.to_owned(),
            created_at: now_ms(),
        };
        if let Some(scopes) = form.own {
            let entry = grant::of_client(&client.id, scopes)?;
            self.store.put_entry(&entry).await?;
            client.grant = Some(entry.id.clone());
            if let Some(mark) = grant::mark(&entry) {
                self.learn(|book| book.put_grant(&entry.id, mark)).await;
            }
        }
        self.store.put_entry(&client.entry(0, expires_at)).await?;
        Ok((client, secret))
    }

    /// Stores a client from its metadata document; earlier approvals remain.
    pub async fn keep_client(&self, client: Client, room: &ClientRoom) -> Result<Client, Error> {
        loop {
            let before = self.store.entry(CLIENT, &client.id, now_ms()).await?;
            let known = before.as_ref().and_then(Client::of);
            let (approved, from) = match known {
                Some(known) => (known.approved, known.from),
                None => (Vec::new(), room.from.clone()),
            };
            let next = Client { approved, from, ..client.clone() };
            if before.is_none() {
                self.make_room(room).await?;
            }
            let done = match before {
                Some(entry) if entry.form == Raw::of(&next) => true,
                Some(entry) => self.store.change_entry(&next.entry(entry.version, entry.expires_at)).await?,
                None => self.store.put_entry(&next.entry(0, now_ms() + milliseconds(UNUSED))).await?,
            };
            if done {
                return Ok(next);
            }
        }
    }

    /// Clears the expiry of a client after a user's first consent.
    pub(super) async fn client_was_used(&self, id: &str) -> Result<(), Error> {
        let entry = self.store.entry(CLIENT, id, now_ms()).await?;
        if let Some(entry) = entry.filter(|entry| entry.expires_at > 0) {
            // The address matters only while nobody has used the client.
            let client = Client::of(&entry).map(|client| Client { from: String::new(), ..client });
            let form = client.map_or_else(|| entry.form.clone(), |client| Raw::of(&client));
            // On a conflict the next consent does this.
            self.store.change_entry(&Entry { expires_at: 0, form, ..entry }).await?;
        }
        Ok(())
    }

    /// Approves all current redirect URIs of a client.
    pub async fn approve_client(&self, id: &str) -> Result<Raw, Error> {
        loop {
            let entry = self.store.entry(CLIENT, id, now_ms()).await?.ok_or_else(|| no_client(id))?;
            let mut client = Client::of(&entry).ok_or_else(|| no_client(id))?;
            for uri in &client.redirect_uris {
                let place = Redirect::read(uri).map(|redirect| redirect.place()).unwrap_or_default();
                if !client.approved.contains(&place) {
                    client.approved.push(place);
                }
            }
            if self.store.change_entry(&client.entry(entry.version, 0)).await? {
                return Ok(client.object().raw());
            }
        }
    }

    /// Removes a client with its consents and grants.
    pub async fn remove_client(&self, id: &str) -> Result<(), Error> {
        if self.store.take_entry(CLIENT, id, now_ms()).await?.is_none() {
            return Err(no_client(id));
        }
        consent::forget(&self.store, id).await?;
        let grants = self.store.entries(GRANT, None, now_ms()).await?;
        let of_client = |entry: &&Entry| grant::client_of(entry).as_deref() == Some(id);
        let gone: Vec<String> = grants.iter().filter(of_client).map(|entry| entry.id.clone()).collect();
        for grant in &gone {
            self.store.take_entry(GRANT, grant, now_ms()).await?;
        }
        self.learn(|book| book.remove_grants(&gone)).await;
        Ok(())
    }

    /// Authenticates a client: by its secret if it has one, else by its id alone.
    pub async fn prove_client(&self, id: &str, shown: Option<&str>) -> Result<Client, Denied> {
        let client = match self.client(id).await? {
            Some(client) => client,
            None => match Known::of(id) {
                Some(known) => Client::described(id, known.name.clone(), known.redirect_uris.clone()),
                None => return Err(Denied::Client("there is no such client")),
            },
        };
        match (&client.secret, shown) {
            (None, None | Some("")) => Ok(client),
            (Some(kept), Some(shown)) if hash(shown).as_bytes().ct_eq(kept.as_bytes()).into() => Ok(client),
            (None, Some(_)) => Err(Denied::Client("this client keeps no secret")),
            (Some(_), _) => Err(Denied::Client("the secret of the client is missing or wrong")),
        }
    }
}

pub(super) fn no_client(id: &str) -> Error {
    Error::new(Kind::NotFound, format!("there is no client `{id}`"))
        .hint("`hikite client list` names those there are")
}
