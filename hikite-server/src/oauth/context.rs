//! The context that all OAuth endpoints extract from a request: settings, identities, public name, client address and
//! login.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::response::Response;
use hikite_core::error::Error;
use hikite_core::language::Language;
use hikite_core::share::Allowance;
use hikite_gateway::AuthEvent;
use hikite_identity::Identity;
use hikite_identity::{ClientQuota, LoginSession, User};
use http::HeaderMap;
use http::request::Parts;

use super::text::{PageLanguage, PageText};
use super::{PublicUrl, cookie};
use crate::app::App;
use crate::connection::ClientAddress;
use crate::settings::OauthSettings;
use crate::{health, login_throttle};

pub(crate) struct OauthContext {
    pub(crate) app: Arc<App>,
    pub(crate) oauth: Arc<OauthSettings>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) place: PublicUrl,
    pub(crate) headers: HeaderMap,
    /// The client address; for IPv6 its /64 network.
    pub(crate) peer: Option<IpAddr>,
    pub(crate) language: Language,
}

impl OauthContext {
    /// Returns a text in the language of the browser.
    pub(crate) fn say(&self, words: PageText) -> &'static str {
        self.language.say(words)
    }

    /// Returns the login of the browser.
    pub(crate) async fn login(&self) -> Result<Option<LoginSession>, Error> {
        match cookie::read(&self.headers, cookie::LOGIN, self.place.is_https()) {
            Some(secret) => self.identity.logins().get(&secret).await,
            None => Ok(None),
        }
    }

    /// Logs a user in at this browser. A user whom another process has just created is loaded first, with permissions
    /// and memberships; otherwise their first requests would be refused.
    pub(crate) async fn begin_login(&self, user: &Arc<User>) -> Result<LoginSession, Error> {
        self.load_user(user).await?;
        self.identity.logins().begin(user).await
    }

    /// Logs in a user by password; `None` if the password was changed or the user locked out in the meantime.
    pub(crate) async fn begin_password_login(&self, user: &Arc<User>) -> Result<Option<LoginSession>, Error> {
        self.load_user(user).await?;
        self.identity.logins().begin_by_password(user).await
    }

    async fn load_user(&self, user: &User) -> Result<(), Error> {
        if self.app.gateway.people().name_of(&user.subject).is_none() {
            self.identity.read_store().await?;
            self.app.gateway.admin().access.refresh_users().await?;
        }
        Ok(())
    }

    /// Returns the allowance of this address for clients without a login.
    pub(crate) fn client_room(&self) -> ClientQuota {
        let limits = &self.app.limits;
        let from = self.peer.map(login_throttle::network_of).unwrap_or_default();
        ClientQuota { from, allowance: Allowance::of(limits.unused_clients, limits.caller_share).without_reserve() }
    }

    /// Writes an event to the audit log. An action that cannot be recorded must not be performed.
    pub(crate) async fn note(&self, event: AuthEvent<'_>) -> Result<(), Error> {
        self.app.gateway.auditor().record_auth_event(event).await
    }
}

impl FromRequestParts<Arc<App>> for OauthContext {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        let oauth = app.settings.load().oauth.clone();
        let identity = app.gateway.people().identity().cloned();
        let Some((oauth, identity)) = oauth.zip(identity) else { return Err(health::not_found().await) };
        Ok(Self {
            app: Arc::clone(app),
            place: PublicUrl::of(&oauth, &parts.headers),
            oauth,
            identity,
            language: Language::of(&parts.headers),
            peer: parts.extensions.get::<ClientAddress>().map(|peer| login_throttle::place(peer.address)),
            headers: parts.headers.clone(),
        })
    }
}
