//! Grants: what a client may do for a user, and the family of refresh tokens that keeps it alive. Each refresh token is
//! valid once. Repeated within the grace period it returns the same pair again, so that a client that lost an answer
//! can continue; used later it counts as stolen, and the family is revoked.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Scopes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::secret::Secret;
use hikite_store::clock::now_ms;
use hikite_store::{GrantRotation, GrantRow};
use hikite_vault::{DataKey, SealedText, SecretContext, UnverifiedToken, WrappedKey};
use serde_json::json;

use super::key::IdentityKeys;
use super::secret::{failed, id};
use super::snapshot::GrantSummary;
use super::{
    ClientRecord, GRANT_ID, Identity, Replay, ResourceTarget, TokenError, TokenTerms, milliseconds, read_scopes, target,
};

const REFRESH: &str = "hkr_";
/// Time in which a used refresh token returns the same answer.
const GRACE: Duration = Duration::from_secs(60);
/// Prefix of the subject of a client that acts for itself.
pub const OF_CLIENT: &str = "client:";
/// JWT type of access tokens (RFC 9068).
pub(super) const ACCESS: &str = "at+jwt";
/// Claim of a token for one project only.
pub(super) const PROJECT: &str = "project";

/// An access token with its refresh token.
#[derive(Clone, Debug)]
pub struct TokenPair {
    pub access: Secret,
    /// `None` for the client credentials grant.
    pub refresh: Option<Secret>,
    /// Lifetime of the access token.
    pub expires_in: Duration,
    pub scopes: Scopes,
}

/// The receiver of a token, and its rights.
#[derive(Clone, Copy)]
pub(super) struct TokenHolder<'a> {
    pub(super) subject: &'a str,
    pub(super) client: &'a str,
    pub(super) scopes: Scopes,
    /// The only project that it is for.
    pub(super) project: Option<&'a str>,
}

/// A refresh request.
#[derive(Clone, Copy)]
pub struct RefreshRequest<'a> {
    pub token: &'a str,
    /// Requested subset of the granted scopes.
    pub scopes: Option<Scopes>,
    pub target: ResourceTarget<'a>,
}

impl std::fmt::Debug for RefreshRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RefreshRequest")
            .field("scopes", &self.scopes)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// Extracts the part of a grant that requests need.
pub(super) fn summary(grant: &GrantRow) -> GrantSummary {
    let own = grant.subject.is_none().then(|| read_scopes(&grant.scopes));
    GrantSummary { subject: subject_of(grant).into(), expires_at: grant.expires_at, own }
}

/// Returns the subject of the tokens of a grant: the user, or the client that acts for itself.
fn subject_of(grant: &GrantRow) -> String {
    grant.subject.clone().unwrap_or_else(|| format!("{OF_CLIENT}{}", grant.client))
}

/// Creates a grant and its first token pair.
pub(super) fn begin(
    keys: &IdentityKeys,
    terms: &TokenTerms,
    holder: TokenHolder<'_>,
) -> Result<(GrantRow, TokenPair), TokenError> {
    let TokenHolder { subject, client, scopes, project } = holder;
    let (id, now) = (id(GRANT_ID)?, now_ms());
    let WrappedKey { key_id, sealed } = keys.ring.wrap(&id, &DataKey::random().map_err(failed)?).map_err(failed)?;
    let access = access(keys, terms, &id, holder, now)?;
    let grant = GrantRow {
        id,
        subject: Some(subject.to_owned()),
        client: client.to_owned(),
        scopes: words(scopes),
        project: project.map(str::to_owned),
        generation: 1,
        rotated_at: now,
        key_id,
        sealed_key: sealed.text().to_owned(),
        last: None,
        version: 0,
        created_at: now,
        expires_at: now + milliseconds(terms.refresh),
    };
    let refresh = Some(refresh_token(keys, &grant));
    let pair = TokenPair { access, refresh, expires_in: terms.access, scopes };
    Ok((grant, pair))
}

/// Creates the grant of a client that acts for itself; it ends with the client.
pub(super) fn of_client(client: &str, scopes: Scopes) -> Result<GrantRow, Error> {
    Ok(GrantRow {
        id: id(GRANT_ID)?,
        subject: None,
        client: client.to_owned(),
        scopes: words(scopes),
        project: None,
        generation: 0,
        rotated_at: 0,
        key_id: String::new(),
        sealed_key: String::new(),
        last: None,
        version: 0,
        created_at: now_ms(),
        expires_at: 0,
    })
}

/// Codes, grants and access tokens.
#[derive(Clone, Copy, Debug)]
pub struct TokenIssuer<'a>(pub(super) &'a Identity);

impl TokenIssuer<'_> {
    /// Returns the next pair for a refresh token, limited to what the user consented to.
    pub async fn refresh(
        self,
        terms: &TokenTerms,
        client: &ClientRecord,
        wanted: RefreshRequest<'_>,
    ) -> Result<TokenPair, TokenError> {
        self.refresh_at(terms, client, wanted, now_ms()).await
    }

    pub(super) async fn refresh_at(
        self,
        terms: &TokenTerms,
        client: &ClientRecord,
        wanted: RefreshRequest<'_>,
        now: u64,
    ) -> Result<TokenPair, TokenError> {
        let keys = &*self.0.keys().current().await?;
        let shown = read_refresh_token(keys, wanted.token);
        let RefreshTokenClaims { id, generation, project } =
            shown.ok_or(TokenError::Grant("The refresh token was not issued by this server."))?;
        loop {
            let grant = self.0.store.grants().get(&id, now).await?;
            let grant = grant.ok_or(TokenError::Grant("The grant has ended."))?;
            if grant.client != client.id || grant.project != project {
                return Err(TokenError::Grant("The refresh token was issued to another client."));
            }
            let subject = subject_of(&grant);
            if self.0.logins().active_user(&subject).await?.is_none() {
                return Err(TokenError::Grant("The user no longer exists."));
            }
            if generation + 1 == grant.generation && now <= grant.rotated_at + milliseconds(GRACE) {
                return again(keys, &grant, wanted.target, now);
            }
            if generation != grant.generation {
                tracing::warn!(grant = id, "a used refresh token was sent again; its grant is revoked");
                self.end_grant(&id).await?;
                return Err(TokenError::Replay(Replay {
                    action: "refresh.replay",
                    subject,
                    grant: id,
                    why: "The refresh token was used before. Log in again.",
                }));
            }
            let (next, pair) = rotate(keys, terms, grant, wanted, now)?;
            if self.0.store.grants().change(&next).await? {
                self.0.update_snapshot(|snapshot| snapshot.put_grant(&next)).await;
                return Ok(pair);
            }
            // Another request rotated the token first; the next iteration returns its pair.
        }
    }

    /// Issues a token for the client credentials grant.
    pub async fn client_credentials_token(
        self,
        terms: &TokenTerms,
        client: &ClientRecord,
        wanted: Option<Scopes>,
        target: ResourceTarget<'_>,
    ) -> Result<TokenPair, TokenError> {
        let id = client
            .grant
            .as_deref()
            .ok_or(TokenError::Client("This client may not use the client credentials grant."))?;
        let grant = self.0.store.grants().get(id, now_ms()).await?.ok_or(TokenError::Grant("The grant has ended."))?;
        let all = read_scopes(&grant.scopes);
        let scopes = wanted.unwrap_or(all);
        if !all.contains(scopes) {
            return Err(TokenError::Scope("The client is not allowed all of these scopes."));
        }
        let keys = &*self.0.keys().current().await?;
        let project = target.within(None)?;
        let holder = TokenHolder { subject: &subject_of(&grant), client: &client.id, scopes, project };
        let access = access(keys, terms, id, holder, now_ms())?;
        Ok(TokenPair { access, refresh: None, expires_in: terms.access, scopes })
    }

    /// Revokes the grant of a token, if it belongs to this client. Returns its subject and id for the audit; the client
    /// must not learn whether anything was revoked (RFC 7009).
    pub async fn revoke(self, client: &ClientRecord, token: &str) -> Result<Option<(String, String)>, Error> {
        let keys = &*self.0.keys().current().await?;
        let of_access = || {
            let claims = keys.public.verify_own(&UnverifiedToken::read(token)?).ok()?;
            claims["gid"].as_str().map(str::to_owned)
        };
        let Some(id) = read_refresh_token(keys, token).map(|shown| shown.id).or_else(of_access) else {
            return Ok(None);
        };
        let grant = self.0.store.grants().get(&id, now_ms()).await?.filter(|grant| grant.client == client.id);
        let Some(subject) = grant.and_then(|grant| grant.subject) else { return Ok(None) };
        self.end_grant(&id).await?;
        Ok(Some((subject, id)))
    }

    pub(super) async fn end_grant(self, id: &str) -> Result<(), Error> {
        self.0.store.grants().take(id, now_ms()).await?;
        self.0.update_snapshot(|snapshot| snapshot.remove_grants(&[id.to_owned()])).await;
        Ok(())
    }
}

/// Rotates the refresh token. The new access token is stored in the grant for repeated requests.
fn rotate(
    keys: &IdentityKeys,
    terms: &TokenTerms,
    grant: GrantRow,
    wanted: RefreshRequest<'_>,
    now: u64,
) -> Result<(GrantRow, TokenPair), TokenError> {
    let all = read_scopes(&grant.scopes);
    let scopes = wanted.scopes.unwrap_or(all);
    if !all.contains(scopes) {
        return Err(TokenError::Scope("The user did not allow all of these scopes."));
    }
    let project = wanted.target.within(grant.project.as_deref())?;
    let generation = grant.generation + 1;
    let holder = TokenHolder { subject: &subject_of(&grant), client: &grant.client, scopes, project };
    let access = access(keys, terms, &grant.id, holder, now)?;
    let sealed = own_key(keys, &grant)?.seal(place(&grant.id, generation), &access);
    let last = GrantRotation {
        access: sealed.map_err(failed)?.text().to_owned(),
        scopes: words(scopes),
        expires_at: now + milliseconds(terms.access),
        project: project.map(str::to_owned),
    };
    let expires_at = now + milliseconds(terms.refresh);
    let next = GrantRow { generation, rotated_at: now, last: Some(last), expires_at, ..grant };
    let refresh = Some(refresh_token(keys, &next));
    let pair = TokenPair { access, refresh, expires_in: terms.access, scopes };
    Ok((next, pair))
}

/// Returns the pair of the last rotation, if it is for the same resource.
fn again(keys: &IdentityKeys, grant: &GrantRow, target: ResourceTarget<'_>, now: u64) -> Result<TokenPair, TokenError> {
    let last = grant.last.as_ref().ok_or(TokenError::Grant("The refresh token was used before."))?;
    if target.within(grant.project.as_deref())? != last.project.as_deref() {
        return Err(TokenError::Target("The refresh token was just used for another resource."));
    }
    let key = own_key(keys, grant)?;
    let sealed = SealedText::from_text(last.access.as_str());
    let access = key.open(place(&grant.id, grant.generation), &sealed).map_err(failed)?;
    Ok(TokenPair {
        access,
        refresh: Some(refresh_token(keys, grant)),
        expires_in: Duration::from_millis(last.expires_at.saturating_sub(now)),
        scopes: read_scopes(&last.scopes),
    })
}

fn own_key(keys: &IdentityKeys, grant: &GrantRow) -> Result<DataKey, Error> {
    let sealed = SealedText::from_text(grant.sealed_key.as_str());
    keys.ring.unwrap(&grant.id, &WrappedKey { key_id: grant.key_id.clone(), sealed }).map_err(failed)
}

fn place(id: &str, generation: u64) -> SecretContext<'_> {
    SecretContext { account: id, provider: "grant", field: "access", version: generation }
}

/// Derives the refresh token from the grant, its generation and its project alone, so that it can be derived again. A
/// version without projects cannot read the token of one, and so cannot widen it.
fn refresh_token(keys: &IdentityKeys, grant: &GrantRow) -> Secret {
    let project = grant.project.as_ref().map(|project| format!(" {project}")).unwrap_or_default();
    let payload = format!("{} {}{project}", grant.id, grant.generation);
    Secret::hidden(format!("{REFRESH}{}", keys.refresh.put(payload.as_bytes(), &[])))
}

/// Contents of a refresh token.
struct RefreshTokenClaims {
    id: String,
    generation: u64,
    project: Option<String>,
}

fn read_refresh_token(keys: &IdentityKeys, token: &str) -> Option<RefreshTokenClaims> {
    let payload = keys.refresh.open(token.strip_prefix(REFRESH)?, &[])?;
    let payload = String::from_utf8(payload).ok()?;
    let mut words = payload.splitn(3, ' ');
    Some(RefreshTokenClaims {
        id: words.next()?.to_owned(),
        generation: words.next()?.parse().ok()?,
        project: words.next().map(str::to_owned),
    })
}

fn access(
    keys: &IdentityKeys,
    terms: &TokenTerms,
    grant: &str,
    holder: TokenHolder<'_>,
    now: u64,
) -> Result<Secret, Error> {
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
    signed.map(Secret::hidden).map_err(|_| Error::new(ErrorKind::Internal, "A token could not be signed."))
}

fn words(scopes: Scopes) -> Vec<String> {
    scopes.names().map(str::to_owned).collect()
}

/// Validates the id of a grant and returns it in shared form.
pub(super) fn shared(id: &str) -> Option<Arc<str>> {
    id.starts_with(GRANT_ID).then(|| id.into())
}
