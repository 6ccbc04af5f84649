//! Grants: what a client may do for a user, and the family of refresh tokens that keeps it alive. Each refresh token is
//! valid once. Repeated within the grace period it returns the same pair again, so that a client that lost an answer
//! can continue; used later it counts as stolen, and the family is revoked.

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
use super::{Again, Client, Denied, GRANT, GRANT_ID, Identity, Target, Terms, target};
use crate::clock::now_ms;

const REFRESH: &str = "hkr_";
/// Time in which a used refresh token returns the same answer.
const GRACE: Duration = Duration::from_secs(60);
/// Prefix of the subject of a client that acts for itself.
pub(crate) const OF_CLIENT: &str = "client:";
/// JWT type of access tokens (RFC 9068).
pub(super) const ACCESS: &str = "at+jwt";
/// Claim of a token for one project only.
pub(super) const PROJECT: &str = "project";

/// An access token with its refresh token.
#[derive(Clone, Debug)]
pub struct Pair {
    pub access: Secret,
    /// `None` for the client credentials grant.
    pub refresh: Option<Secret>,
    /// Lifetime of the access token.
    pub expires_in: Duration,
    pub scopes: Scopes,
}

#[derive(Clone, Serialize, Deserialize)]
struct Kept {
    client: String,
    scopes: Vec<String>,
    /// `true` for the client credentials grant.
    #[serde(default)]
    own: bool,
    /// Number of refresh tokens so far; the last one is valid.
    generation: u64,
    #[serde(default)]
    rotated_at: u64,
    /// Wrapped key of this grant, after the id of the wrapping key.
    key_id: String,
    key: String,
    /// Access token of the last rotation, sealed, with its scopes and expiry.
    #[serde(default)]
    last: Option<Last>,
    /// The only project that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Last {
    access: String,
    scopes: Vec<String>,
    expires_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<String>,
}

/// The receiver of a token, and its rights.
#[derive(Clone, Copy)]
pub(super) struct Holder<'a> {
    pub(super) subject: &'a str,
    pub(super) client: &'a str,
    pub(super) scopes: Scopes,
    /// The only project that it is for.
    pub(super) project: Option<&'a str>,
}

/// A refresh request.
#[derive(Clone, Copy)]
pub struct Refresh<'a> {
    pub token: &'a str,
    /// Requested subset of the granted scopes.
    pub scopes: Option<Scopes>,
    pub target: Target<'a>,
}

impl std::fmt::Debug for Refresh<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refresh")
            .field("scopes", &self.scopes)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl Kept {
    fn of(entry: &Entry) -> Result<Self, Denied> {
        entry.form.decode().map_err(|_| Denied::Grant("the grant cannot be read"))
    }
}

/// Extracts the part of a grant that requests need.
pub(super) fn mark(entry: &Entry) -> Option<Mark> {
    let kept: Kept = entry.form.decode().ok()?;
    let own = kept.own.then(|| read_scopes(&kept.scopes));
    Some(Mark { subject: entry.owner.as_str().into(), expires_at: entry.expires_at, own })
}

pub(super) fn client_of(entry: &Entry) -> Option<String> {
    entry.form.decode::<Kept>().ok().map(|kept| kept.client)
}

/// Creates a grant and its first token pair.
pub(super) fn begin(keys: &Keys, terms: &Terms, holder: Holder<'_>) -> Result<(Entry, Pair), Denied> {
    let Holder { subject, client, scopes, project } = holder;
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
        project: project.map(str::to_owned),
    };
    let access = access(keys, terms, &id, holder, now)?;
    let refresh = Some(refresh_token(keys, &id, &kept));
    let pair = Pair { access, refresh, expires_in: terms.access, scopes };
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

/// Creates the grant of a client that acts for itself; it ends with the client.
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
        project: None,
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
    /// Returns the next pair for a refresh token, limited to what the user consented to.
    pub async fn refresh(&self, terms: &Terms, client: &Client, wanted: Refresh<'_>) -> Result<Pair, Denied> {
        self.refresh_at(terms, client, wanted, now_ms()).await
    }

    pub(super) async fn refresh_at(
        &self,
        terms: &Terms,
        client: &Client,
        wanted: Refresh<'_>,
        now: u64,
    ) -> Result<Pair, Denied> {
        let keys = &*self.keys().await?;
        let shown = read_refresh_token(keys, wanted.token);
        let Shown { id, generation, project } =
            shown.ok_or(Denied::Grant("the refresh token is not one of ours"))?;
        loop {
            let entry = self.store.entry(GRANT, &id, now).await?;
            let entry = entry.ok_or(Denied::Grant("the grant is over"))?;
            let kept = Kept::of(&entry)?;
            if kept.client != client.id || kept.project != project {
                return Err(Denied::Grant("the refresh token was given to another client"));
            }
            if self.active_user(&entry.owner).await?.is_none() {
                return Err(Denied::Grant("there is no such user any more"));
            }
            if generation + 1 == kept.generation && now <= kept.rotated_at + milliseconds(GRACE) {
                return again(keys, &id, &kept, wanted.target, now);
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
            // Another request rotated the token first; the next iteration returns its pair.
        }
    }

    /// Issues a token for the client credentials grant.
    pub async fn own_token(
        &self,
        terms: &Terms,
        client: &Client,
        wanted: Option<Scopes>,
        target: Target<'_>,
    ) -> Result<Pair, Denied> {
        let id = client.grant.as_deref().ok_or(Denied::Client("this client does not come for itself"))?;
        let entry = self.store.entry(GRANT, id, now_ms()).await?.ok_or(Denied::Grant("the grant is over"))?;
        let all = read_scopes(&Kept::of(&entry)?.scopes);
        let scopes = wanted.unwrap_or(all);
        if !all.contains(scopes) {
            return Err(Denied::Scope("the client may not do all of this"));
        }
        let keys = &*self.keys().await?;
        let project = target.within(None)?;
        let holder = Holder { subject: &entry.owner, client: &client.id, scopes, project };
        let access = access(keys, terms, id, holder, now_ms())?;
        Ok(Pair { access, refresh: None, expires_in: terms.access, scopes })
    }

    /// Revokes the grant of a token, if it belongs to this client. Returns its subject and id for the audit; the client
    /// must not learn whether anything was revoked (RFC 7009).
    pub async fn revoke(&self, client: &Client, token: &str) -> Result<Option<(String, String)>, Error> {
        let keys = &*self.keys().await?;
        let of_access = || {
            let claims = keys.public.verify_own(&Unverified::read(token)?).ok()?;
            claims["gid"].as_str().map(str::to_owned)
        };
        let Some(id) = read_refresh_token(keys, token).map(|shown| shown.id).or_else(of_access) else {
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

/// Rotates the refresh token. The new access token is stored in the grant for repeated requests.
fn rotate(
    keys: &Keys,
    terms: &Terms,
    entry: &Entry,
    kept: Kept,
    wanted: Refresh<'_>,
    now: u64,
) -> Result<(Entry, Pair), Denied> {
    let all = read_scopes(&kept.scopes);
    let scopes = wanted.scopes.unwrap_or(all);
    if !all.contains(scopes) {
        return Err(Denied::Scope("the user did not allow all of this"));
    }
    let project = wanted.target.within(kept.project.as_deref())?;
    let generation = kept.generation + 1;
    let holder = Holder { subject: &entry.owner, client: &kept.client, scopes, project };
    let access = access(keys, terms, &entry.id, holder, now)?;
    let sealed = own_key(keys, &entry.id, &kept)?.seal(place(&entry.id, generation), &access);
    let last = Last {
        access: sealed.map_err(failed)?.text().to_owned(),
        scopes: words(scopes),
        expires_at: now + milliseconds(terms.access),
        project: project.map(str::to_owned),
    };
    let next = Kept { generation, rotated_at: now, last: Some(last), ..kept };
    let refresh = Some(refresh_token(keys, &entry.id, &next));
    let pair = Pair { access, refresh, expires_in: terms.access, scopes };
    let expires_at = now + milliseconds(terms.refresh);
    Ok((Entry { form: Raw::of(&next), expires_at, ..entry.clone() }, pair))
}

/// Returns the pair of the last rotation, if it is for the same resource.
fn again(keys: &Keys, id: &str, kept: &Kept, target: Target<'_>, now: u64) -> Result<Pair, Denied> {
    let last = kept.last.as_ref().ok_or(Denied::Grant("the refresh token was used before"))?;
    if target.within(kept.project.as_deref())? != last.project.as_deref() {
        return Err(Denied::Target("the refresh token was just used for another resource"));
    }
    let key = own_key(keys, id, kept)?;
    let sealed = Sealed::from_text(last.access.as_str());
    let access = key.open(place(id, kept.generation), &sealed).map_err(failed)?;
    Ok(Pair {
        access,
        refresh: Some(refresh_token(keys, id, kept)),
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

/// Derives the refresh token from the grant, its generation and its project alone, so that it can be derived again. A
/// version without projects cannot read the token of one, and so cannot widen it.
fn refresh_token(keys: &Keys, id: &str, kept: &Kept) -> Secret {
    let project = kept.project.as_ref().map(|project| format!(" {project}")).unwrap_or_default();
    let payload = format!("{id} {}{project}", kept.generation);
    Secret::hidden(format!("{REFRESH}{}", keys.refresh.put(payload.as_bytes(), &[])))
}

/// Contents of a refresh token.
struct Shown {
    id: String,
    generation: u64,
    project: Option<String>,
}

fn read_refresh_token(keys: &Keys, token: &str) -> Option<Shown> {
    let payload = keys.refresh.open(token.strip_prefix(REFRESH)?, &[])?;
    let payload = String::from_utf8(payload).ok()?;
    let mut words = payload.splitn(3, ' ');
    Some(Shown {
        id: words.next()?.to_owned(),
        generation: words.next()?.parse().ok()?,
        project: words.next().map(str::to_owned),
    })
}

fn access(keys: &Keys, terms: &Terms, grant: &str, holder: Holder<'_>, now: u64) -> Result<Secret, Error> {
    let issued = now / 1000;
    let mut claims = json!({
        "iss": &*terms.issuer,
        "aud": target::audience(terms, holder.project),
        "sub": holder.subject,
        "client_id": holder.client,
        "scope": words(holder.scopes).join(" "),
        "iat": issued,
        "exp": issued + terms.access.as_secs(),
        "jti": id("")?,
        "gid": grant,
    });
    if let Some(project) = holder.project {
        claims[PROJECT] = project.into();
    }
    let signed = keys.signing.newest().sign(ACCESS, &claims);
    signed.map(Secret::hidden).map_err(|_| Error::new(Kind::Internal, "a token could not be signed"))
}

fn words(scopes: Scopes) -> Vec<String> {
    scopes.names().map(str::to_owned).collect()
}

fn read_scopes(words: &[String]) -> Scopes {
    words.iter().filter_map(|word| Scopes::parse(word)).fold(Scopes::NONE, Scopes::with)
}

/// Validates the id of a grant and returns it in shared form.
pub(super) fn shared(id: &str) -> Option<Arc<str>> {
    id.starts_with(GRANT_ID).then(|| id.into())
}
