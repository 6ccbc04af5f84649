//! Authorization codes: valid for one minute, once, for one client and redirect URI, with PKCE. A code used twice was
//! seen by two parties: the grant of the first use is revoked.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hikite_core::caller::Scopes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::secret::Secret;
use hikite_store::clock::now_ms;
use hikite_store::{DocumentRow, OwnerCheck as Owner};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::grant::{self, TokenHolder, TokenIssuer, TokenPair};
use super::{CODE, Replay, ResourceTarget, TokenError, TokenTerms, USED_CODE, hash, milliseconds, read_scopes, secret};

const LIFETIME: Duration = Duration::from_secs(60);
/// Time for which a used code is remembered.
const REMEMBER_USED_FOR: Duration = Duration::from_secs(3600);
/// Length of a verifier (RFC 7636).
const VERIFIER_CHARS: std::ops::RangeInclusive<usize> = 43..=128;

/// An authorization request that the user approved.
#[derive(Clone, Copy, Debug)]
pub struct ApprovedRequest<'a> {
    pub subject: &'a str,
    pub client: &'a str,
    pub redirect: &'a str,
    /// SHA-256 of the verifier, in base64url.
    pub challenge: &'a str,
    pub scopes: Scopes,
    /// The only project that it is for.
    pub project: Option<&'a str>,
}

/// An authorization code in a token request.
#[derive(Clone, Copy)]
pub struct CodeExchange<'a> {
    pub code: &'a str,
    pub client: &'a str,
    /// OAuth 2.1 omits it; if present it must match.
    pub redirect: Option<&'a str>,
    pub verifier: &'a str,
    /// Resource that the token is requested for.
    pub target: ResourceTarget<'a>,
}

impl std::fmt::Debug for CodeExchange<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeExchange").field("client", &self.client).finish_non_exhaustive()
    }
}

#[derive(Serialize, Deserialize)]
struct StoredCode {
    client: String,
    redirect: String,
    challenge: String,
    scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<String>,
}

impl TokenIssuer<'_> {
    pub async fn issue_code(self, ask: ApprovedRequest<'_>) -> Result<Secret, Error> {
        let (code, now) = (secret("")?, now_ms());
        let kept = StoredCode {
            client: ask.client.to_owned(),
            redirect: ask.redirect.to_owned(),
            challenge: ask.challenge.to_owned(),
            scopes: ask.scopes.names().map(str::to_owned).collect(),
            project: ask.project.map(str::to_owned),
        };
        let entry = DocumentRow {
            kind: CODE,
            id: hash(code.expose()),
            owner: ask.subject.to_owned(),
            document: Raw::of(&kept),
            version: 0,
            created_at: now,
            expires_at: now + milliseconds(LIFETIME),
        };
        if !self.0.store.documents().put_owned(&entry, Owner::User).await? {
            let error = Error::new(ErrorKind::Authentication, "This user is not allowed to log in.");
            return Err(error.hint("Ask the administrator of this server."));
        }
        self.0.clients().mark_used(ask.client).await?;
        Ok(code)
    }

    /// Exchanges a code for tokens.
    pub async fn redeem_code(self, terms: &TokenTerms, code: CodeExchange<'_>) -> Result<TokenPair, TokenError> {
        let id = hash(code.code);
        let Some(entry) = self.0.store.documents().get(CODE, &id, now_ms()).await? else {
            return self.reject_replayed_code(&id).await;
        };
        let kept: StoredCode =
            entry.document.decode().map_err(|_| TokenError::Grant("The authorization code is not valid."))?;
        if kept.client != code.client {
            return Err(TokenError::Grant("The authorization code was issued to another client."));
        }
        if code.redirect.is_some_and(|redirect| redirect != kept.redirect) {
            return Err(TokenError::Grant("The redirect_uri is not the one that the code was issued for."));
        }
        if !verifier_matches(&kept.challenge, code.verifier) {
            return Err(TokenError::Grant("The code_verifier does not match the code_challenge."));
        }
        if self.0.logins().active_user(&entry.owner).await?.is_none() {
            return Err(TokenError::Grant("The user no longer exists."));
        }
        let scopes = read_scopes(&kept.scopes);
        let project = code.target.within(kept.project.as_deref())?;
        let holder = TokenHolder { subject: &entry.owner, client: code.client, scopes, project };
        let (grant, pair) = grant::begin(&*self.0.keys().current().await?, terms, holder)?;
        let used_code = DocumentRow {
            kind: USED_CODE,
            id: id.clone(),
            owner: entry.owner.clone(),
            document: Raw::from(grant.id.as_str()),
            version: 0,
            created_at: now_ms(),
            expires_at: now_ms() + milliseconds(REMEMBER_USED_FOR),
        };
        if !self.0.store.grants().redeem((CODE, &id), &grant, &used_code).await? {
            return self.reject_replayed_code(&id).await;
        }
        self.0.update_snapshot(|snapshot| snapshot.put_grant(&grant)).await;
        Ok(pair)
    }

    async fn reject_replayed_code(self, id: &str) -> Result<TokenPair, TokenError> {
        let why = "The authorization code is unknown, used or expired.";
        let Some(used_code) = self.0.store.documents().get(USED_CODE, id, now_ms()).await? else {
            return Err(TokenError::Grant(why));
        };
        let Some(grant) = used_code.document.text() else { return Err(TokenError::Grant(why)) };
        tracing::warn!(grant, "an authorization code was used twice; its grant is revoked");
        self.end_grant(&grant).await?;
        Err(TokenError::Replay(Replay { action: "code.replay", subject: used_code.owner, grant, why }))
    }
}

fn verifier_matches(challenge: &str, verifier: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    VERIFIER_CHARS.contains(&verifier.len())
        && verifier.bytes().all(plain)
        && URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)).as_bytes().ct_eq(challenge.as_bytes()).into()
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_verifier_fits_its_own_challenge_alone() {
        // From RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        assert!(verifier_matches(challenge, verifier));
        for wrong in ["", verifier.to_uppercase().as_str(), &verifier[1..], challenge, &"a".repeat(129)] {
            assert!(!verifier_matches(challenge, wrong), "{wrong}");
        }
        assert!(!verifier_matches(verifier, verifier), "the plain way is none of ours");
    }
}
