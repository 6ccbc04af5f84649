//! OAuth clients: self-registered, described by a client ID metadata document, or created by an admin. A redirect URI
//! must be a loopback address, belong to a well-known client, or be approved.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Scopes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;
use hikite_core::share::{Allowance, CallerTally, ShareHolder, Shares, SlotUsage};
use hikite_core::suggestion;
use hikite_core::time::rfc3339;
use hikite_core::violation::{self, Violation};
use hikite_store::ClientRow;
use hikite_store::clock::now_ms;
use subtle::ConstantTimeEq;

use super::secret::id;
use super::{Identity, RedirectUri, TokenError, WellKnownClient, grant, hash, milliseconds, secret};

const ID: &str = "hkc_";
const SECRET: &str = "hks_";
/// Age at which an unused registration expires.
const UNUSED_LIFETIME: Duration = Duration::from_secs(30 * 86_400);
const NAME_CHARS: usize = 128;
/// Name of unused clients in the metrics.
const UNUSED_CLIENTS: &str = "unused_clients";

/// Limits on clients that nobody has logged in with, and the origin of a new one.
#[derive(Clone, Debug)]
pub struct ClientQuota {
    /// IP address or network.
    pub from: String,
    pub allowance: Allowance,
}

/// Unused clients at the last registration, and counters since the start.
#[derive(Debug, Default)]
pub(super) struct UnusedClients {
    refused: CallerTally,
    evicted: CallerTally,
    usage: Option<SlotUsage>,
}

/// Origin of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientOrigin {
    /// Dynamic client registration.
    Registered,
    /// The client id is the URL of its metadata document.
    Document,
    /// Created by an admin.
    Admin,
}

impl ClientOrigin {
    const ALL: [Self; 3] = [Self::Registered, Self::Document, Self::Admin];

    fn name(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Document => "document",
            Self::Admin => "admin",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|origin| origin.name() == name)
    }
}

/// Approval state of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStatus {
    Approved,
    /// A redirect URI waits for the approval of an admin.
    Pending,
}

/// Input for a new client.
#[derive(Clone, Debug)]
pub struct NewClient {
    pub name: String,
    pub redirect_uris: Vec<String>,
    /// `true` for a client with a secret.
    pub confidential: bool,
    /// Scopes of the client credentials grant, if allowed.
    pub own: Option<Scopes>,
}

const MEMBERS: [&str; 5] = ["name", "redirectUris", "confidential", "clientCredentials", "scopes"];

impl NewClient {
    /// Reads an admin's input and reports all faults at once.
    pub fn read(form: &Object) -> Result<Self, Error> {
        let mut faults = Vec::new();
        let mut fault = |member: &str, message: String| faults.push(Violation::new(violation::step(member), message));
        for member in form.unknown(&MEMBERS) {
            let near = suggestion::did_you_mean(member, MEMBERS).map(|near| format!(" {near}"));
            fault(member, format!("Unknown member `{member}`.{}", near.unwrap_or_default()));
        }
        let given = |member: &str| form.get(member).filter(|value| !value.is_null());
        let name = form.text("name").unwrap_or_default();
        if name.trim().is_empty() || name.chars().count() > NAME_CHARS {
            fault("name", format!("`name` must have 1 to {NAME_CHARS} characters."));
        }
        let uris = given("redirectUris").map(Raw::decode::<Vec<String>>).transpose().unwrap_or_else(|_| {
            fault("redirectUris", "`redirectUris` must be a list of addresses.".into());
            None
        });
        let redirect_uris = uris.unwrap_or_default();
        for uri in &redirect_uris {
            if let Err(why) = RedirectUri::read(uri) {
                fault("redirectUris", format!("`{uri}` is not a valid redirect URI: {why}."));
            }
        }
        let mut flag = |member: &str| {
            let given = given(member).map(Raw::decode::<bool>).transpose();
            given.ok().flatten().unwrap_or_else(|| {
                if form.get(member).is_some_and(|value| !value.is_null()) {
                    fault(member, format!("`{member}` must be true or false."));
                }
                false
            })
        };
        let (own, confidential) = (flag("clientCredentials"), flag("confidential"));
        let words = given("scopes").map(Raw::decode::<Vec<String>>).transpose().ok().flatten();
        let scopes =
            words.map(|words| words.iter().try_fold(Scopes::NONE, |all, word| Some(all.with(Scopes::parse(word)?))));
        let scopes = match (scopes, given("scopes")) {
            (Some(Some(scopes)), _) if scopes != Scopes::NONE => scopes,
            (_, None) => Scopes::DEFAULT,
            _ => {
                fault("scopes", "`scopes` must be a list of one or more of `read`, `call`, `admin`.".into());
                Scopes::NONE
            }
        };
        if redirect_uris.is_empty() && !own {
            fault(
                "redirectUris",
                "`redirectUris` is required: the addresses to which the client is redirected.".into(),
            );
        }
        if !faults.is_empty() {
            return Err(violation::error(&faults));
        }
        Ok(Self { name, redirect_uris, confidential: confidential || own, own: own.then_some(scopes) })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRecord {
    pub id: String,
    pub name: String,
    pub redirect_uris: Vec<String>,
    pub origin: ClientOrigin,
    /// Hash of the client secret, if it has one.
    secret: Option<String>,
    /// Redirect origins that an admin approved.
    approved: Vec<String>,
    /// Grant for the client credentials flow.
    pub(super) grant: Option<String>,
    /// Time at which its metadata document was last fetched.
    looked_up_at: u64,
    /// Address that it registered from or was first named from; empty once somebody has logged in with it.
    from: String,
    pub created_at: u64,
}

impl ClientRecord {
    /// Builds a client from a metadata document, not stored yet.
    pub fn described(id: &str, name: String, redirect_uris: Vec<String>) -> Self {
        let (id, origin) = (id.to_owned(), ClientOrigin::Document);
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

    /// Reads a client from the store; `None` if its origin is unknown.
    fn of(row: &ClientRow) -> Option<Self> {
        Some(Self {
            id: row.id.clone(),
            name: row.name.clone(),
            redirect_uris: row.redirect_uris.clone(),
            origin: ClientOrigin::parse(&row.origin)?,
            secret: row.secret_hash.clone(),
            approved: row.approved.clone(),
            grant: row.grant_id.clone(),
            looked_up_at: row.looked_up_at,
            from: row.address.clone(),
            created_at: row.created_at,
        })
    }

    fn row(&self, version: u64, expires_at: u64) -> ClientRow {
        ClientRow {
            id: self.id.clone(),
            name: self.name.clone(),
            origin: self.origin.name().to_owned(),
            redirect_uris: self.redirect_uris.clone(),
            approved: self.approved.clone(),
            secret_hash: self.secret.clone(),
            grant_id: self.grant.clone(),
            looked_up_at: self.looked_up_at,
            address: self.from.clone(),
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
    pub fn has_redirect_uri(&self, redirect: &RedirectUri<'_>) -> bool {
        self.redirect_uris.iter().any(|own| redirect.is(own))
    }

    /// Returns the approval state of one redirect URI.
    pub fn status(&self, redirect: &RedirectUri<'_>, uri: &str) -> ClientStatus {
        let approved = || self.origin == ClientOrigin::Admin || self.approved.contains(&redirect.place());
        if redirect.is_loopback() || WellKnownClient::has_redirect_uri(uri) || approved() {
            ClientStatus::Approved
        } else {
            ClientStatus::Pending
        }
    }

    /// Returns the approval state of all redirect URIs together.
    fn overall_status(&self) -> ClientStatus {
        let waits = |uri: &String| {
            RedirectUri::read(uri).is_ok_and(|redirect| self.status(&redirect, uri) == ClientStatus::Pending)
        };
        if self.redirect_uris.iter().any(waits) { ClientStatus::Pending } else { ClientStatus::Approved }
    }

    /// Returns `true` if a redirect URI waits for approval.
    pub fn is_pending(&self) -> bool {
        self.overall_status() == ClientStatus::Pending
    }

    /// Returns the JSON for the API.
    pub fn object(&self) -> Object {
        let status = if self.overall_status() == ClientStatus::Approved { "active" } else { "pending" };
        Object::default()
            .with("id", self.id.as_str())
            .with("name", self.name.as_str())
            .with("redirectUris", Raw::of(&self.redirect_uris))
            .with("origin", self.origin.name())
            .with("confidential", Raw::of(&self.is_confidential()))
            .with("clientCredentials", Raw::of(&self.is_own()))
            .with("status", status)
            .with("createdAt", rfc3339(self.created_at))
    }
}

/// Origin of a new client, and its address.
struct NewClientOrigin<'a> {
    origin: ClientOrigin,
    from: &'a str,
}

/// The OAuth clients and the consents of users.
#[derive(Clone, Copy, Debug)]
pub struct ClientRegistry<'a>(pub(super) &'a Identity);

impl ClientRegistry<'_> {
    pub async fn get(self, id: &str) -> Result<Option<ClientRecord>, Error> {
        Ok(self.0.store.clients().get(id, now_ms()).await?.as_ref().and_then(ClientRecord::of))
    }

    /// Returns all clients, oldest first.
    pub async fn all(self) -> Result<Vec<ClientRecord>, Error> {
        Ok(self.0.store.clients().all(now_ms()).await?.iter().filter_map(ClientRecord::of).collect())
    }

    pub async fn object(self, id: &str) -> Result<Raw, Error> {
        Ok(self.get(id).await?.ok_or_else(|| no_client(id))?.object().raw())
    }

    /// Registers a client. Returns its secret if it is confidential.
    pub async fn register(self, form: NewClient, room: &ClientQuota) -> Result<(ClientRecord, Option<Secret>), Error> {
        self.evict_unused(room).await?;
        let form = NewClient { own: None, ..form };
        let new_origin = NewClientOrigin { origin: ClientOrigin::Registered, from: &room.from };
        self.make(form, new_origin, now_ms() + milliseconds(UNUSED_LIFETIME)).await
    }

    /// Makes room for one more unused client: the oldest one is evicted if its address has used up its share or there
    /// are too many in all. Registration is always possible.
    async fn evict_unused(self, room: &ClientQuota) -> Result<(), Error> {
        let clients = self.0.store.clients().all(now_ms()).await?;
        let mut unused: Vec<(u64, String, ShareHolder)> = Vec::new();
        for client in clients.into_iter().filter(|client| client.expires_at > 0) {
            unused.push((client.created_at, client.id, ShareHolder::unprivileged(client.address)));
        }
        unused.sort_by_key(|(created_at, ..)| *created_at);
        let newest = (now_ms(), String::new(), ShareHolder::unprivileged(room.from.as_str()));
        let mut shares = Shares::new(room.allowance);
        for (created_at, id, holder) in unused.into_iter().chain([newest]) {
            let taken = shares.take(&holder, id, Duration::from_millis(created_at), |_, _| Some(Duration::ZERO));
            let evicted = taken.ok().and_then(|taken| taken.evicted);
            if let Some(evicted) = evicted.filter(|evicted| !evicted.value.is_empty()) {
                self.remove_unused(&evicted.value, &evicted.holder).await?;
                self.0.unused.lock().evicted.count(&evicted.holder);
            }
        }
        let mut unused = self.0.unused.lock();
        unused.usage = Some(SlotUsage::of(UNUSED_CLIENTS, &shares, (&unused.refused, &unused.evicted)));
        Ok(())
    }

    /// Counts a refused registration.
    pub fn count_refused(self, room: &ClientQuota) {
        let mut unused = self.0.unused.lock();
        unused.refused.count(&Arc::from(room.from.as_str()));
        let usage =
            SlotUsage::of(UNUSED_CLIENTS, &Shares::<()>::new(room.allowance), (&unused.refused, &unused.evicted));
        // The usage per holder is unchanged.
        unused.usage = Some(match unused.usage.take() {
            Some(before) => SlotUsage { refused: usage.refused, ..before },
            None => usage,
        });
    }

    pub fn usage(self) -> Option<SlotUsage> {
        self.0.unused.lock().usage.clone()
    }

    async fn remove_unused(self, id: &str, from: &str) -> Result<(), Error> {
        let client = self.0.store.clients().get(id, now_ms()).await?;
        if client.is_some_and(|client| client.expires_at > 0) {
            self.0.store.clients().take(id, now_ms()).await?;
            tracing::info!(client = id, from, "an unused client registration is removed to make room for a new one");
        }
        Ok(())
    }

    /// Creates a client for an admin.
    pub async fn add(self, form: NewClient) -> Result<(ClientRecord, Option<Secret>), Error> {
        if form.own.is_some() && !form.confidential {
            return Err(Error::new(
                ErrorKind::Validation,
                "A client that uses the client credentials grant needs a secret.",
            )
            .hint("Make it confidential."));
        }
        self.make(form, NewClientOrigin { origin: ClientOrigin::Admin, from: "" }, 0).await
    }

    async fn make(
        self,
        form: NewClient,
        new_origin: NewClientOrigin<'_>,
        expires_at: u64,
    ) -> Result<(ClientRecord, Option<Secret>), Error> {
        let secret = if form.confidential { Some(secret(SECRET)?) } else { None };
        let mut client = ClientRecord {
            id: id(ID)?,
            name: form.name,
            redirect_uris: form.redirect_uris,
            origin: new_origin.origin,
            secret: secret.as_ref().map(|secret| hash(secret.expose())),
            approved: Vec::new(),
            grant: None,
            looked_up_at: 0,
            from: new_origin.from.to_owned(),
            created_at: now_ms(),
        };
        if let Some(scopes) = form.own {
            let grant = grant::of_client(&client.id, scopes)?;
            self.0.store.grants().put(&grant).await?;
            client.grant = Some(grant.id.clone());
            self.0.update_snapshot(|snapshot| snapshot.put_grant(&grant)).await;
        }
        self.0.store.clients().put(&client.row(0, expires_at)).await?;
        Ok((client, secret))
    }

    /// Stores a client from its metadata document; earlier approvals remain.
    pub async fn save_described(self, client: ClientRecord, room: &ClientQuota) -> Result<ClientRecord, Error> {
        loop {
            let before = self.0.store.clients().get(&client.id, now_ms()).await?;
            let known = before.as_ref().and_then(ClientRecord::of);
            let (approved, from) = match known {
                Some(known) => (known.approved, known.from),
                None => (Vec::new(), room.from.clone()),
            };
            let next = ClientRecord { approved, from, ..client.clone() };
            if before.is_none() {
                self.evict_unused(room).await?;
            }
            let done = match before {
                Some(before) => {
                    let row =
                        ClientRow { created_at: before.created_at, ..next.row(before.version, before.expires_at) };
                    row == before || self.0.store.clients().change(&row).await?
                }
                None => self.0.store.clients().put(&next.row(0, now_ms() + milliseconds(UNUSED_LIFETIME))).await?,
            };
            if done {
                return Ok(next);
            }
        }
    }

    /// Clears the expiry of a client after a user's first consent.
    pub(super) async fn mark_used(self, id: &str) -> Result<(), Error> {
        let client = self.0.store.clients().get(id, now_ms()).await?;
        if let Some(client) = client.filter(|client| client.expires_at > 0) {
            // The address matters only while nobody has used the client. On a conflict the next consent does this.
            let used = ClientRow { expires_at: 0, address: String::new(), ..client };
            self.0.store.clients().change(&used).await?;
        }
        Ok(())
    }

    /// Approves all current redirect URIs of a client.
    pub async fn approve(self, id: &str) -> Result<Raw, Error> {
        loop {
            let row = self.0.store.clients().get(id, now_ms()).await?.ok_or_else(|| no_client(id))?;
            let mut client = ClientRecord::of(&row).ok_or_else(|| no_client(id))?;
            for uri in &client.redirect_uris {
                let place = RedirectUri::read(uri).map(|redirect| redirect.place()).unwrap_or_default();
                if !client.approved.contains(&place) {
                    client.approved.push(place);
                }
            }
            if self.0.store.clients().change(&client.row(row.version, 0)).await? {
                return Ok(client.object().raw());
            }
        }
    }

    /// Removes a client with its consents and grants.
    pub async fn remove(self, id: &str) -> Result<(), Error> {
        if self.0.store.clients().take(id, now_ms()).await?.is_none() {
            return Err(no_client(id));
        }
        self.0.store.consents().remove_of_client(id).await?;
        let gone = self.0.store.grants().remove_of_client(id, None).await?;
        self.0.update_snapshot(|snapshot| snapshot.remove_grants(&gone)).await;
        Ok(())
    }

    /// Authenticates a client: by its secret if it has one, else by its id alone.
    pub async fn authenticate(self, id: &str, shown: Option<&str>) -> Result<ClientRecord, TokenError> {
        let client = match self.get(id).await? {
            Some(client) => client,
            None => match WellKnownClient::of(id) {
                Some(known) => ClientRecord::described(id, known.name.clone(), known.redirect_uris.clone()),
                None => return Err(TokenError::Client("There is no such client.")),
            },
        };
        match (&client.secret, shown) {
            (None, None | Some("")) => Ok(client),
            (Some(kept), Some(shown)) if hash(shown).as_bytes().ct_eq(kept.as_bytes()).into() => Ok(client),
            (None, Some(_)) => Err(TokenError::Client("This client has no secret.")),
            (Some(_), _) => Err(TokenError::Client("The client secret is missing or wrong.")),
        }
    }
}

pub(super) fn no_client(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("There is no client `{id}`."))
        .hint("Run `hikite client list` to see all clients.")
}
