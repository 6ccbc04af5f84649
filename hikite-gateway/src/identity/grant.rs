//! A grant: what a client was given for a user, and the family of refresh tokens that keeps it alive. Each token is good
//! once. One that comes again within the grace gets the very pair that the first use got, so that a client that asks
//! twice, or lost an answer, goes on; one that comes later was stolen, and the family ends.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Scopes;
use hikite_core::error::{Error, Kind};
use hikite_core::json::Raw;
use hikite_core::secret::Secret;
use hikite_store::Entry;
use hikite_vault::{DataKey, Place, Sealed, Unverified, Wrapped};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::book::Mark;
use super::key::Keys;
use super::login::milliseconds;
use super::secret::{failed, id};
use super::{Again, Client, Denied, GRANT, GRANT_ID, Identity, Terms};
use crate::clock::now_ms;

const REFRESH: &str = "hkr_";
/// So long a token that was used gets the same answer again.
const GRACE: Duration = Duration::from_secs(60);
/// What the subject of a client that comes for itself begins with.
const OF_CLIENT: &str = "client:";
/// What access tokens are for.
pub(super) const ACCESS: &str = "at+jwt";

/// What a client gets.
#[derive(Clone, Debug)]
pub struct Pair {
    pub access: Secret,
    /// None for a client that comes for itself.
    pub refresh: Option<Secret>,
    /// How long the access token is good.
    pub expires_in: Duration,
    pub scopes: Scopes,
}

#[derive(Clone, Serialize, Deserialize)]
struct Kept {
    client: String,
    scopes: Vec<String>,
    /// Whether the client comes for itself.
    #[serde(default)]
    own: bool,
    /// How many refresh tokens there have been; the last of them is good.
    generation: u64,
    #[serde(default)]
    rotated_at: u64,
    /// The key of this grant, wrapped.
    key_id: String,
    key: String,
    /// The access token of the last rotation, sealed, what it allows, and when it ends.
    #[serde(default)]
    last: Option<Last>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Last {
    access: String,
    scopes: Vec<String>,
    expires_at: u64,
}

impl Kept {
    fn of(entry: &Entry) -> Result<Self, Denied> {
        entry.form.decode().map_err(|_| Denied::Grant("the grant cannot be read"))
    }
}

/// What a request must know of it.
pub(super) fn mark(entry: &Entry) -> Option<Mark> {
    let kept: Kept = entry.form.decode().ok()?;
    let own = kept.own.then(|| read_scopes(&kept.scopes));
    Some(Mark { subject: entry.owner.as_str().into(), expires_at: entry.expires_at, own })
}

pub(super) fn client_of(entry: &Entry) -> Option<String> {
    entry.form.decode::<Kept>().ok().map(|kept| kept.client)
}

/// A new family, and its first pair.
pub(super) fn begin(
    keys: &Keys,
    terms: &Terms,
    (subject, client, scopes): (&str, &str, Scopes),
) -> Result<(Entry, Pair), Denied> {
    let (id, now) = (id(GRANT_ID)?, now_ms());
    let Wrapped { key_id, sealed } =
        keys.ring.wrap(&id, &DataKey::random().map_err(failed)?).map_err(failed)?;
    let kept = Kept {
        client: client.to_owned(),
        scopes: words(scopes),
        own: false,
        generation: 1,
        rotated_at: now,
        key_id,
        key: sealed.text().to_owned(),
        last: None,
    };
    let access = access(keys, terms, &id, (subject, client, scopes), now)?;
    let pair = Pair { access, refresh: Some(refresh_token(keys, &id, 1)), expires_in: terms.access, scopes };
    let entry = Entry {
        kind: GRANT,
        id,
        owner: subject.to_owned(),
        form: Raw::of(&kept),
        version: 0,
        created_at: now,
        expires_at: now + milliseconds(terms.refresh),
    };
    Ok((entry, pair))
}

/// What a client that comes for itself has; it ends with the client.
pub(super) fn of_client(client: &str, scopes: Scopes) -> Result<Entry, Error> {
    let kept = Kept {
        client: client.to_owned(),
        scopes: words(scopes),
        own: true,
        generation: 0,
        rotated_at: 0,
        key_id: String::new(),
        key: String::new(),
        last: None,
    };
    Ok(Entry {
        kind: GRANT,
        id: id(GRANT_ID)?,
        owner: format!("{OF_CLIENT}{client}"),
        form: Raw::of(&kept),
        version: 0,
        created_at: now_ms(),
        expires_at: 0,
    })
}

impl Identity {
    /// The next pair for a refresh token, with fewer scopes if those are asked for.
    pub async fn refresh(
        &self,
        terms: &Terms,
        client: &Client,
        token: &str,
        wanted: Option<Scopes>,
    ) -> Result<Pair, Denied> {
        self.refresh_at(terms, client, (token, wanted), now_ms()).await
    }

    pub(super) async fn refresh_at(
        &self,
        terms: &Terms,
        client: &Client,
        (token, wanted): (&str, Option<Scopes>),
        now: u64,
    ) -> Result<Pair, Denied> {
        let keys = &*self.keys().await?;
        let (id, generation) =
            read_refresh_token(keys, token).ok_or(Denied::Grant("the refresh token is not one of ours"))?;
        loop {
            let entry = self.store.entry(GRANT, &id, now).await?;
            let entry = entry.ok_or(Denied::Grant("the grant is over"))?;
            let kept = Kept::of(&entry)?;
            if kept.client != client.id {
                return Err(Denied::Grant("the refresh token was given to another client"));
            }
            if self.active_user(&entry.owner).await?.is_none() {
                return Err(Denied::Grant("there is no such user any more"));
            }
            if generation + 1 == kept.generation && now <= kept.rotated_at + milliseconds(GRACE) {
                return again(keys, &id, &kept, now);
            }
            if generation != kept.generation {
                tracing::warn!(grant = id, "a refresh token came again after its time; its family ends");
                self.end_grant(&id).await?;
                return Err(Denied::Again(Again {
                    action: "refresh.replay",
                    subject: entry.owner,
                    grant: id,
                    why: "the refresh token was used before; log in again",
                }));
            }
            let (next, pair) = rotate(keys, terms, &entry, kept, wanted, now)?;
            if self.store.change_entry(&next).await? {
                if let Some(mark) = mark(&next) {
                    self.learn(|book| book.put_grant(&id, mark)).await;
                }
                return Ok(pair);
            }
            // Another was faster: its pair is the one, and is read in the next turn.
        }
    }

    /// A token for a client that comes for itself.
    pub async fn own_token(
        &self,
        terms: &Terms,
        client: &Client,
        wanted: Option<Scopes>,
    ) -> Result<Pair, Denied> {
        let id = client.grant.as_deref().ok_or(Denied::Client("this client does not come for itself"))?;
        let entry = self.store.entry(GRANT, id, now_ms()).await?.ok_or(Denied::Grant("the grant is over"))?;
        let all = read_scopes(&Kept::of(&entry)?.scopes);
        let scopes = wanted.unwrap_or(all);
        if !all.contains(scopes) {
            return Err(Denied::Scope("the client may not do all of this"));
        }
        let keys = &*self.keys().await?;
        let access = access(keys, terms, id, (&entry.owner, &client.id, scopes), now_ms())?;
        Ok(Pair { access, refresh: None, expires_in: terms.access, scopes })
    }

    /// Ends what a token stands for, if it is of this client. Whether there was anything is nobody's business.
    /// What was ended is for the audit: subject and grant.
    pub async fn revoke(&self, client: &Client, token: &str) -> Result<Option<(String, String)>, Error> {
        let keys = &*self.keys().await?;
        let of_access = || {
            let claims = keys.public.verify(&Unverified::read(token)?).ok()?;
            claims["gid"].as_str().map(str::to_owned)
        };
        let Some(id) = read_refresh_token(keys, token).map(|(id, _)| id).or_else(of_access) else {
            return Ok(None);
        };
        let Some(entry) = self.store.entry(GRANT, &id, now_ms()).await? else { return Ok(None) };
        let kept = entry.form.decode::<Kept>().ok();
        if !kept.is_some_and(|kept| kept.client == client.id && !kept.own) {
            return Ok(None);
        }
        self.end_grant(&id).await?;
        Ok(Some((entry.owner, id)))
    }

    pub(super) async fn end_grant(&self, id: &str) -> Result<(), Error> {
        self.store.take_entry(GRANT, id, now_ms()).await?;
        self.learn(|book| book.remove_grants(&[id.to_owned()])).await;
        Ok(())
    }
}

/// The successor, written into the grant so that whoever comes again gets it.
fn rotate(
    keys: &Keys,
    terms: &Terms,
    entry: &Entry,
    kept: Kept,
    wanted: Option<Scopes>,
    now: u64,
) -> Result<(Entry, Pair), Denied> {
    let all = read_scopes(&kept.scopes);
    let scopes = wanted.unwrap_or(all);
    if !all.contains(scopes) {
        return Err(Denied::Scope("the user did not allow all of this"));
    }
    let generation = kept.generation + 1;
    let access = access(keys, terms, &entry.id, (&entry.owner, &kept.client, scopes), now)?;
    let sealed = own_key(keys, &entry.id, &kept)?.seal(place(&entry.id, generation), &access);
    let last = Last {
        access: sealed.map_err(failed)?.text().to_owned(),
        scopes: words(scopes),
        expires_at: now + milliseconds(terms.access),
    };
    let next = Kept { generation, rotated_at: now, last: Some(last), ..kept };
    let pair = Pair {
        access,
        refresh: Some(refresh_token(keys, &entry.id, generation)),
        expires_in: terms.access,
        scopes,
    };
    let expires_at = now + milliseconds(terms.refresh);
    Ok((Entry { form: Raw::of(&next), expires_at, ..entry.clone() }, pair))
}

/// The pair of the last rotation.
fn again(keys: &Keys, id: &str, kept: &Kept, now: u64) -> Result<Pair, Denied> {
    let last = kept.last.as_ref().ok_or(Denied::Grant("the refresh token was used before"))?;
    let key = own_key(keys, id, kept)?;
    let sealed = Sealed::from_text(last.access.as_str());
    let access = key.open(place(id, kept.generation), &sealed).map_err(failed)?;
    Ok(Pair {
        access,
        refresh: Some(refresh_token(keys, id, kept.generation)),
        expires_in: Duration::from_millis(last.expires_at.saturating_sub(now)),
        scopes: read_scopes(&last.scopes),
    })
}

fn own_key(keys: &Keys, id: &str, kept: &Kept) -> Result<DataKey, Error> {
    let sealed = Sealed::from_text(kept.key.as_str());
    keys.ring.unwrap(id, &Wrapped { key_id: kept.key_id.clone(), sealed }).map_err(failed)
}

fn place(id: &str, generation: u64) -> Place<'_> {
    Place { account: id, provider: "grant", field: "access", version: generation }
}

/// Made from the grant and the generation alone, so that the same one can be made again.
fn refresh_token(keys: &Keys, id: &str, generation: u64) -> Secret {
    Secret::hidden(format!("{REFRESH}{}", keys.refresh.put(format!("{id} {generation}").as_bytes(), &[])))
}

fn read_refresh_token(keys: &Keys, token: &str) -> Option<(String, u64)> {
    let payload = keys.refresh.open(token.strip_prefix(REFRESH)?, &[])?;
    let payload = String::from_utf8(payload).ok()?;
    let (id, generation) = payload.split_once(' ')?;
    Some((id.to_owned(), generation.parse().ok()?))
}

fn access(
    keys: &Keys,
    terms: &Terms,
    grant: &str,
    (subject, client, scopes): (&str, &str, Scopes),
    now: u64,
) -> Result<Secret, Error> {
    let issued = now / 1000;
    let claims = json!({
        "iss": &*terms.issuer,
        "aud": &*terms.audience,
        "sub": subject,
        "client_id": client,
        "scope": words(scopes).join(" "),
        "iat": issued,
        "exp": issued + terms.access.as_secs(),
        "jti": id("")?,
        "gid": grant,
    });
    let signed = keys.signing.newest().sign(ACCESS, &claims);
    signed.map(Secret::hidden).map_err(|_| Error::new(Kind::Internal, "a token could not be signed"))
}

fn words(scopes: Scopes) -> Vec<String> {
    scopes.names().map(str::to_owned).collect()
}

fn read_scopes(words: &[String]) -> Scopes {
    words.iter().filter_map(|word| Scopes::parse(word)).fold(Scopes::NONE, Scopes::with)
}

/// The id of a grant, as callers carry it.
pub(super) fn shared(id: &str) -> Option<Arc<str>> {
    id.starts_with(GRANT_ID).then(|| id.into())
}
