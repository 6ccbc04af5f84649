//! Authorization codes: valid for one minute, once, for one client and redirect URI, with PKCE. A code used twice was
//! seen by two parties: the grant of the first use is revoked.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hikite_core::caller::Scopes;
use hikite_core::error::{Error, Kind};
use hikite_core::json::Raw;
use hikite_core::secret::Secret;
use hikite_store::{Entry, Holder as Owner};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::grant::{self, Holder, Pair};
use super::login::milliseconds;
use super::{Again, CODE, Denied, Identity, SPENT, Target, Terms, hash, secret};
use crate::clock::now_ms;

const GOOD_FOR: Duration = Duration::from_secs(60);
/// Time for which a used code is remembered.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// Length of a verifier (RFC 7636).
const VERIFIER_CHARS: std::ops::RangeInclusive<usize> = 43..=128;

/// An authorization request that the user approved.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
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
pub struct Code<'a> {
    pub code: &'a str,
    pub client: &'a str,
    /// OAuth 2.1 omits it; if present it must match.
    pub redirect: Option<&'a str>,
    pub verifier: &'a str,
    /// Resource that the token is requested for.
    pub target: Target<'a>,
}

impl std::fmt::Debug for Code<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Code").field("client", &self.client).finish_non_exhaustive()
    }
}

#[derive(Serialize, Deserialize)]
struct Kept {
    client: String,
    redirect: String,
    challenge: String,
    scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<String>,
}

impl Identity {
    pub async fn make_code(&self, ask: Ask<'_>) -> Result<Secret, Error> {
        let (code, now) = (secret("")?, now_ms());
        let kept = Kept {
            client: ask.client.to_owned(),
            redirect: ask.redirect.to_owned(),
            challenge: ask.challenge.to_owned(),
            scopes: ask.scopes.names().map(str::to_owned).collect(),
            project: ask.project.map(str::to_owned),
        };
        let entry = Entry {
            kind: CODE,
            id: hash(code.expose()),
            owner: ask.subject.to_owned(),
            form: Raw::of(&kept),
            version: 0,
            created_at: now,
            expires_at: now + milliseconds(GOOD_FOR),
        };
        if !self.store.put_entry_of(&entry, Owner::User).await? {
            let error = Error::new(Kind::Authentication, "this user may not log in");
            return Err(error.hint("ask whoever runs this hikite"));
        }
        self.client_was_used(ask.client).await?;
        Ok(code)
    }

    /// Exchanges a code for tokens.
    pub async fn use_code(&self, terms: &Terms, code: Code<'_>) -> Result<Pair, Denied> {
        let id = hash(code.code);
        let Some(entry) = self.store.entry(CODE, &id, now_ms()).await? else {
            return self.code_came_twice(&id).await;
        };
        let kept: Kept =
            entry.form.decode().map_err(|_| Denied::Grant("the code is not one that can be used"))?;
        if kept.client != code.client {
            return Err(Denied::Grant("the code was made for another client"));
        }
        if code.redirect.is_some_and(|redirect| redirect != kept.redirect) {
            return Err(Denied::Grant("the redirect_uri is not the one that the code was made for"));
        }
        if !fits(&kept.challenge, code.verifier) {
            return Err(Denied::Grant("the code_verifier does not fit the code_challenge"));
        }
        if self.active_user(&entry.owner).await?.is_none() {
            return Err(Denied::Grant("there is no such user any more"));
        }
        let scopes =
            kept.scopes.iter().filter_map(|word| Scopes::parse(word)).fold(Scopes::NONE, Scopes::with);
        let project = code.target.within(kept.project.as_deref())?;
        let holder = Holder { subject: &entry.owner, client: code.client, scopes, project };
        let (grant, pair) = grant::begin(&*self.keys().await?, terms, holder)?;
        let spent = Entry {
            kind: SPENT,
            id: id.clone(),
            owner: entry.owner.clone(),
            form: Raw::from(grant.id.as_str()),
            version: 0,
            created_at: now_ms(),
            expires_at: now_ms() + milliseconds(REMEMBERED),
        };
        let mark = grant::mark(&grant);
        let grant_id = grant.id.clone();
        if !self.store.exchange_entry((CODE, &id), &[grant, spent], Owner::User).await? {
            return self.code_came_twice(&id).await;
        }
        if let Some(mark) = mark {
            self.learn(|book| book.put_grant(&grant_id, mark)).await;
        }
        Ok(pair)
    }

    async fn code_came_twice(&self, id: &str) -> Result<Pair, Denied> {
        let why = "the code is unknown, used or too old";
        let Some(spent) = self.store.entry(SPENT, id, now_ms()).await? else {
            return Err(Denied::Grant(why));
        };
        let Some(grant) = spent.form.text() else { return Err(Denied::Grant(why)) };
        tracing::warn!(grant, "an authorization code came twice; what it gave is taken back");
        self.end_grant(&grant).await?;
        Err(Denied::Again(Again { action: "code.replay", subject: spent.owner, grant, why }))
    }
}

fn fits(challenge: &str, verifier: &str) -> bool {
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
        assert!(fits(challenge, verifier));
        for wrong in ["", verifier.to_uppercase().as_str(), &verifier[1..], challenge, &"a".repeat(129)] {
            assert!(!fits(challenge, wrong), "{wrong}");
        }
        assert!(!fits(verifier, verifier), "the plain way is none of ours");
    }
}
