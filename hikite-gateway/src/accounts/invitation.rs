//! Invitation to connect a missing account: a URL elicitation where the client supports it, else a URL in the error.

use std::time::Duration;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, InputRequest, InputRequestKind};

use super::connection::{AccountConnections, ConnectionLink};
use super::{AccountStatus, AccountStore, DEFAULT, connect_at};
use hikite_store::clock::now_ms;

/// Remaining lifetime, in milliseconds, that a reused link must have.
const LINK_LIFETIME_MIN_MS: u64 = 5 * 60_000;
/// Longest wait of a call for a user who accepted.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Tells how a caller connects an account: at an address if a link can be made, else as the error says.
pub(crate) async fn how_to_connect(accounts: &AccountStore, caller: &Caller, provider: &str) -> Option<String> {
    match accounts.connections().link_for(caller, provider).await {
        Ok(link) => link.map(|link| connect_at(&link)),
        Err(error) => error.hint.map(Into::into),
    }
}

impl AccountConnections<'_> {
    /// Returns the link where a caller connects an account, `None` if it may not. A recent link is reused.
    pub(super) async fn link_for(self, caller: &Caller, provider: &str) -> Result<Option<ConnectionLink>, Error> {
        if !caller.scopes.contains(Scopes::CALL) {
            return Ok(None);
        }
        let key = (caller.subject.clone(), provider.to_owned());
        let known = self.0.links.lock().get(&key).cloned();
        if let Some(link) = known.filter(|link| link.expires_at > now_ms() + LINK_LIFETIME_MIN_MS)
            && self.progress(&caller.subject, &link.id).await.is_ok_and(|at| at.state == "waiting")
        {
            return Ok(Some(link));
        }
        let name = self.reconnect_name(&caller.subject, provider);
        let link = self.begin(&caller.subject, provider, name.as_deref()).await?;
        let mut links = self.0.links.lock();
        links.retain(|_, link| link.expires_at > now_ms());
        links.insert(key, link.clone());
        Ok(Some(link))
    }

    /// Adds to the error the link where the account is connected again.
    pub(super) async fn with_link(self, error: Error, provider: &str, context: &CallContext) -> Error {
        match self.link_for(&context.session.caller, provider).await {
            Ok(Some(link)) => {
                error.hint(format!("Ask the user to connect the account again at this address: {}", link.url.expose()))
            }
            _ => error,
        }
    }

    /// Asks the user to connect an account now. Returns `true` if one is connected afterwards.
    pub(super) async fn invite(self, provider: &str, context: &CallContext) -> Result<bool, Error> {
        if !supports_url_elicitation(context) {
            return Ok(false);
        }
        let Ok(Some(link)) = self.link_for(&context.session.caller, provider).await else { return Ok(false) };
        let title = self.0.providers().get(provider).map_or_else(|| provider.to_owned(), |provider| provider.title);
        let params = Object::default()
            .with("mode", "url")
            .with("message", format!("Connect an account with {title} to continue."))
            .with("url", link.url.expose())
            .with("elicitationId", link.id.as_str());
        let question = InputRequest { kind: InputRequestKind::Elicitation, params: params.raw(), key: None };
        let answer = context.back.ask(question).await;
        let action = answer.ok().and_then(|raw| raw.object()).and_then(|answer| answer.text("action"));
        if action.as_deref() != Some("accept") {
            return Ok(false);
        }
        let waited =
            tokio::time::timeout(CONNECT_WAIT_MAX, self.until_connected(&context.session.caller.subject, &link.id));
        waited.await.unwrap_or(Ok(false))
    }

    async fn until_connected(self, subject: &str, id: &str) -> Result<bool, Error> {
        loop {
            let state = match self.progress(subject, id).await {
                Ok(at) => at.state,
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            };
            match state.as_str() {
                "connected" => return self.0.read_store().await.map(|()| true),
                "failed" => return Ok(false),
                _ => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Returns the name of the account that must be connected again.
    fn reconnect_name(self, subject: &str, provider: &str) -> Option<String> {
        let known = self.0.known.load();
        let lost = known.own(subject, provider).find(|a| a.status == AccountStatus::Reconnect);
        lost.map(|account| account.name.clone()).or_else(|| Some(DEFAULT.to_owned()))
    }
}

/// Returns `true` if the client supports URL elicitation.
fn supports_url_elicitation(context: &CallContext) -> bool {
    let elicitation = context.session.client_capabilities.elicitation.as_ref().and_then(Raw::object);
    elicitation.is_some_and(|ability| ability.get("url").is_some())
}
