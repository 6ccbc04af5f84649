//! Tokens and their binding to issuer, client and resource. They are stored as one encrypted text and sent only to the
//! server they were issued for.

use hikite_core::secret::Secret;
use http::Uri;
use serde::Deserialize;
use serde_json::{Value, json};

use super::address;
use super::challenge::scopes;

/// Margin in milliseconds before expiry at which a token is renewed.
const RENEWAL_MARGIN_MS: u64 = 30_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenSet {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    /// Milliseconds since 1970.
    pub(super) expires_at: Option<u64>,
    /// Requested scopes. The server may have granted fewer.
    pub(super) scopes: Vec<String>,
    pub(super) bound: TokenOrigin,
}

/// Binding of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenOrigin {
    pub(super) issuer: String,
    pub(super) client_id: String,
    pub(super) resource: String,
    /// Redirect URI of the login, which identifies the client registration.
    pub(super) redirect: String,
}

#[derive(Deserialize)]
struct StoredTokens {
    access_token: String,
    refresh_token: Option<String>,
    expires_at: Option<u64>,
    scopes: Vec<String>,
    issuer: String,
    client_id: String,
    resource: String,
    redirect: String,
}

impl TokenSet {
    /// Parses the response of a token endpoint.
    pub(super) fn from_response(
        answer: &Value,
        asked: &[String],
        bound: TokenOrigin,
        now: u64,
    ) -> Result<Self, &'static str> {
        let text = |name: &str| answer[name].as_str().filter(|text| !text.is_empty());
        let access = text("access_token").ok_or("its response has no token")?;
        if !text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
            return Err("its token has an unsupported type");
        }
        if !access.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("its token cannot be sent in a header");
        }
        let seconds = answer["expires_in"].as_u64().or_else(|| text("expires_in")?.parse().ok());
        let mut all = asked.to_vec();
        // Scopes granted without a request count too.
        all.extend(text("scope").map(scopes).unwrap_or_default());
        let mut known = Vec::new();
        all.retain(|scope| {
            !known.contains(scope) && {
                known.push(scope.clone());
                true
            }
        });
        Ok(Self {
            access: Secret::hidden(access),
            refresh: text("refresh_token").map(Secret::hidden),
            expires_at: seconds.map(|seconds| now.saturating_add(seconds.saturating_mul(1000))),
            scopes: all,
            bound,
        })
    }

    pub(super) fn expires_soon(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| end < now.saturating_add(RENEWAL_MARGIN_MS))
    }

    pub(super) fn is_expired(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Serializes the tokens for storage.
    pub(super) fn to_stored(&self) -> Secret {
        let TokenOrigin { issuer, client_id, resource, redirect } = &self.bound;
        let form = json!({
            "access_token": self.access.expose(),
            "refresh_token": self.refresh.as_ref().map(Secret::expose),
            "expires_at": self.expires_at,
            "scopes": self.scopes,
            "issuer": issuer,
            "client_id": client_id,
            "resource": resource,
            "redirect": redirect,
        });
        Secret::hidden(form.to_string())
    }

    /// Parses stored tokens. Returns `None` if they are not for the server at `home`.
    pub(super) fn of(stored: &Secret, home: &Uri) -> Option<Self> {
        let form: StoredTokens = serde_json::from_str(stored.expose()).ok()?;
        let resource: Uri = form.resource.parse().ok()?;
        address::covers(&resource, home).then(|| Self {
            access: Secret::hidden(form.access_token),
            refresh: form.refresh_token.map(Secret::hidden),
            expires_at: form.expires_at,
            scopes: form.scopes,
            bound: TokenOrigin {
                issuer: form.issuer,
                client_id: form.client_id,
                resource: form.resource,
                redirect: form.redirect,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound() -> TokenOrigin {
        TokenOrigin {
            issuer: "https://as.example".into(),
            client_id: "c".into(),
            resource: "https://a.example/mcp".into(),
            redirect: "https://hikite.example/connect/callback".into(),
        }
    }

    fn from_response(answer: &Value) -> Result<TokenSet, &'static str> {
        TokenSet::from_response(answer, &["read".to_owned()], bound(), 1_000)
    }

    #[test]
    fn only_a_bearer_token_is_a_token() {
        let good = json!({"access_token": "t", "token_type": "bearer", "expires_in": 60, "scope": "read x"});
        let tokens = from_response(&good).expect("a token");
        assert_eq!((tokens.expires_at, tokens.scopes.join(" ").as_str()), (Some(61_000), "read x"));
        for bad in [
            json!({}),
            json!({"access_token": "t"}),
            json!({"access_token": "t", "token_type": "DPoP"}),
            json!({"access_token": "", "token_type": "bearer"}),
            json!({"access_token": "a\r\nb: c", "token_type": "bearer"}),
        ] {
            from_response(&bad).expect_err("no token");
        }
    }

    #[test]
    fn a_token_is_kept_for_its_own_server_alone() {
        let good = json!({"access_token": "t", "token_type": "Bearer", "refresh_token": "r"});
        let tokens = from_response(&good).expect("a token");
        let of = |home: &str| TokenSet::of(&tokens.to_stored(), &home.parse().expect("a URL"));
        assert_eq!(of("https://a.example/mcp"), Some(tokens.clone()));
        assert_eq!(of("https://b.example/mcp"), None);
        assert_eq!(of("https://a.example/other"), None);
        assert!(!format!("{tokens:?}").contains("\"t\"") && !format!("{tokens:?}").contains("\"r\""));
    }

    #[test]
    fn a_token_is_renewed_a_little_early() {
        let good = json!({"access_token": "t", "token_type": "Bearer", "expires_in": 100});
        let tokens = from_response(&good).expect("a token");
        assert!(!tokens.expires_soon(71_000) && tokens.expires_soon(71_001));
        assert!(!tokens.is_expired(100_999) && tokens.is_expired(101_000));
    }
}
