//! Tokens of an account as stored in the secret store: one record, so that they change atomically.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hikite_core::credential::{AuthScheme, Credential, TokenResponse};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;

use super::account::Account;
use super::provider::AccountProvider;

/// Time before expiry, in milliseconds, at which a token is renewed; a quarter of the lifetime if that is shorter.
const MARGIN_MS: u64 = 60_000;

#[derive(Clone, Debug)]
pub(super) struct AccountTokens {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    /// Milliseconds since the Unix epoch; zero for never.
    pub(super) expires_at: u64,
    pub(super) got_at: u64,
    /// Start of the last refresh that is not known to have ended.
    pub(super) attempt: Option<u64>,
    /// Time at which the provider refused the refresh token for good; it is not sent again.
    pub(super) over: Option<u64>,
    /// Version of the record in the secret store.
    pub(super) version: u64,
}

/// A token endpoint's answer.
#[derive(Debug)]
pub(super) enum TokenOutcome {
    Tokens(AccountTokens, TokenDetails),
    /// The grant has ended.
    GrantEnded,
    /// Our client credentials or our request were refused.
    Refused(String),
    /// A transient failure.
    Transient(String),
}

/// Further members of a token response.
#[derive(Debug, Default)]
pub(super) struct TokenDetails {
    pub(super) scopes: Option<Vec<String>>,
    pub(super) details: BTreeMap<String, String>,
}

impl AccountTokens {
    /// Builds the record of a manual token, which does not expire as far as we know.
    pub(super) fn fixed(access: Secret, version: u64) -> Self {
        Self { access, refresh: None, expires_at: 0, got_at: 0, attempt: None, over: None, version }
    }

    pub(super) fn read(text: &Secret, version: u64) -> Option<Self> {
        let form = Raw::parse(text.expose().to_owned()).ok()?.object()?;
        let number = |name: &str| form.get(name).and_then(|at| at.decode::<u64>().ok());
        Some(Self {
            access: Secret::hidden(form.text("access")?),
            refresh: form.text("refresh").map(Secret::hidden),
            expires_at: number("expires_at").unwrap_or_default(),
            got_at: number("got_at").unwrap_or_default(),
            attempt: number("attempt"),
            over: number("over"),
            version,
        })
    }

    pub(super) fn text(&self) -> Secret {
        let mut form = Object::default()
            .with("access", self.access.expose())
            .with("expires_at", Raw::of(&self.expires_at))
            .with("got_at", Raw::of(&self.got_at));
        if let Some(refresh) = &self.refresh {
            form.set("refresh", refresh.expose());
        }
        for (name, at) in [("attempt", self.attempt), ("over", self.over)] {
            if let Some(at) = at {
                form.set(name, Raw::of(&at));
            }
        }
        Secret::hidden(form.raw().as_str())
    }

    /// Returns `true` if the token is valid, not due for renewal and not the one just refused.
    pub(super) fn serves(&self, now: u64, refused: Option<&Secret>) -> bool {
        let life = self.expires_at.saturating_sub(self.got_at);
        let margin = MARGIN_MS.min(life / 4);
        let is_good = self.expires_at == 0 || now + margin < self.expires_at;
        is_good && !self.is(refused)
    }

    /// Returns `true` if the token has not expired, even if it soon will.
    pub(super) fn lives(&self, now: u64) -> bool {
        self.expires_at == 0 || now < self.expires_at
    }

    /// Returns `true` if this is the refused token.
    pub(super) fn is(&self, refused: Option<&Secret>) -> bool {
        refused.is_some_and(|refused| *refused == self.access)
    }

    pub(super) fn credential(&self, account: &Account) -> Credential {
        let (scheme, secret) = match &account.email {
            Some(email) => {
                let pair = format!("{email}:{}", self.access.expose());
                (AuthScheme::Basic, Secret::hidden(BASE64_STANDARD.encode(pair)))
            }
            None => (AuthScheme::Bearer, self.access.clone()),
        };
        Credential {
            account: Arc::clone(&account.id),
            scheme,
            secret,
            details: account.details.clone(),
            api: account.api.clone(),
        }
    }
}

impl TokenOutcome {
    /// Reads a token response. `before` supplies the refresh token if the provider returns no new one.
    pub(super) fn read(
        provider: &AccountProvider,
        answer: &TokenResponse,
        before: Option<&AccountTokens>,
        now: u64,
    ) -> Self {
        let body = Raw::parse(answer.body.expose().to_owned()).ok().and_then(|raw| raw.object());
        let Some(body) = body else {
            return Self::Transient(format!("it returned {} without JSON", answer.status));
        };
        // Some providers send errors with a success status.
        if let Some(error) = body.text("error") {
            return Self::refusal(&error, answer.status);
        }
        let Some(access) = body.text("access_token").filter(|_| (200..300).contains(&answer.status)) else {
            return Self::Transient(format!("it returned {} without a token", answer.status));
        };
        let seconds = body
            .get("expires_in")
            .and_then(|raw| raw.decode::<f64>().ok().or_else(|| raw.text().and_then(|text| text.parse().ok())));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded to a hundred years")]
        let life = seconds.map(|seconds| (seconds.clamp(0.0, 3.2e9) * 1000.0) as u64);
        let refresh = body.text("refresh_token").map(Secret::hidden);
        let tokens = AccountTokens {
            access: Secret::hidden(access),
            refresh: refresh.or_else(|| before.and_then(|before| before.refresh.clone())),
            expires_at: life.map_or(0, |life| now + life),
            got_at: now,
            attempt: None,
            over: None,
            version: 0,
        };
        let scopes = body
            .text("scope")
            .map(|scopes| scopes.split([' ', ',']).filter(|scope| !scope.is_empty()).map(str::to_owned).collect());
        let detail = |name: &String| Some((name.clone(), body.text(name)?));
        Self::Tokens(tokens, TokenDetails { scopes, details: provider.details.iter().filter_map(detail).collect() })
    }

    fn refusal(error: &str, status: u16) -> Self {
        let word: String = error.chars().filter(char::is_ascii_graphic).take(64).collect();
        match error {
            "invalid_grant" | "bad_refresh_token" | "bad_verification_code" => Self::GrantEnded,
            // One provider sends this for an expired refresh token.
            "unauthorized_client" if status == 403 => Self::GrantEnded,
            _ if status >= 500 || status == 429 => Self::Transient(word),
            "temporarily_unavailable" | "server_error" | "slow_down" => Self::Transient(word),
            _ => Self::Refused(word),
        }
    }
}

/// Builds the error for a failed token request, without secrets.
pub(super) fn failed(title: &str, said: TokenOutcome) -> Error {
    match said {
        TokenOutcome::GrantEnded => {
            Error::new(ErrorKind::AccountRequired, format!("{title} no longer accepts the account's token."))
        }
        TokenOutcome::Refused(word) => {
            Error::new(ErrorKind::AccountRequired, format!("{title} rejected the OAuth client: `{word}`.")).hint(
                "The owner checks the client id and secret of the app in `providers` of the config or with `hikite \
                 provider set`.",
            )
        }
        TokenOutcome::Transient(word) => {
            Error::new(ErrorKind::UpstreamUnavailable, format!("{title} does not issue tokens at the moment: {word}."))
                .hint("Try again in a moment.")
        }
        TokenOutcome::Tokens(..) => {
            Error::new(ErrorKind::Internal, "This response contains tokens and is not an error.")
        }
    }
}
