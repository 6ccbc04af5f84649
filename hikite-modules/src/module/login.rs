//! Credential and base URL of a call. Resolved once per call; a credential that the service refuses is renewed once.

use std::sync::Arc;

use hikite_core::compact::parse;
use hikite_core::credential::Credential;
use hikite_core::error::{Error, ErrorKind};
use serde_json::Value;

use super::account::{CallAccount, fill_base, select_site, with_api_host};
use super::call::ServiceCall;
use super::parameter::SITE;
use super::request::RequestTemplate;
use super::send::ServiceResponse;
use crate::file::ResponseFormat;
use crate::scope::VariableScope;

impl ServiceCall<'_> {
    pub(crate) async fn account(&self) -> Result<CallAccount, Error> {
        let mut held = self.account.lock().await;
        if let Some(account) = &*held {
            return Ok(account.clone());
        }
        let credential = match &self.service.provider {
            None => None,
            Some(provider) => {
                let found = self.service.credential_provider.credential(provider, self.context).await?;
                Some(found.ok_or_else(|| self.service.no_account())?)
            }
        };
        let account = match (self.with(credential.clone()).await, &credential) {
            // The site lookup itself may be refused.
            (Err(error), Some(credential)) if error.kind == ErrorKind::AccountRequired => {
                let renewed_credential = self.renewed_credential(credential).await?.ok_or(error)?;
                self.with(Some(renewed_credential)).await?
            }
            (outcome, _) => outcome?,
        };
        *held = Some(account.clone());
        Ok(account)
    }

    /// Returns the account with a renewed credential, if there is one.
    pub(crate) async fn renewed(&self, refused: &CallAccount) -> Result<Option<CallAccount>, Error> {
        let mut held = self.account.lock().await;
        let Some(credential) = &refused.credential else { return Ok(None) };
        // A concurrent request of this call may have renewed it.
        if let Some(other) = held.as_ref().filter(|other| other.credential.as_ref() != Some(credential)) {
            return Ok(Some(other.clone()));
        }
        let Some(renewed_credential) = self.renewed_credential(credential).await? else { return Ok(None) };
        let account = self.with(Some(renewed_credential)).await?;
        *held = Some(account.clone());
        Ok(Some(account))
    }

    async fn renewed_credential(&self, refused: &Credential) -> Result<Option<Arc<Credential>>, Error> {
        let Some(provider) = &self.service.provider else { return Ok(None) };
        self.service.credential_provider.renewed(provider, refused, self.context).await
    }

    pub(super) async fn with(&self, credential: Option<Arc<Credential>>) -> Result<CallAccount, Error> {
        let api = credential.as_ref().and_then(|credential| credential.api.as_deref());
        let written = self.service.addresses.base(credential.as_deref())?;
        let secrets = credential.iter().map(|credential| credential.secret.expose().into()).collect();
        let owner = credential.as_ref().map_or_else(Arc::default, |credential| Arc::clone(&credential.account));
        let rate_limiter = self.service.rate_limiters.of(&owner);
        let mut account = CallAccount { base: String::new(), secrets, credential: credential.clone(), rate_limiter };
        let mut found: Vec<(&str, String)> = Vec::new();
        for lookup in &self.service.addresses.lookups {
            let Some(credential) = &credential else { continue };
            let written_as = format!("{{{}}}", lookup.name);
            if !written.contains(&written_as) || credential.details.contains_key(&lookup.name) {
                continue;
            }
            account.base = with_api_host(&lookup.at, api);
            let sites = match lookup.known(credential) {
                Some(sites) => sites,
                None => lookup.read(credential, &self.look_up(&account, &lookup.path).await?)?,
            };
            let wanted = self.site.as_ref().or_else(|| credential.details.get(SITE));
            let any = sites.first().map(|site| site.label.as_str()).filter(|_| self.any_site);
            let wanted = wanted.map(String::as_str).or(any);
            found.push((&lookup.name, select_site(&sites, wanted)?.to_owned()));
        }
        let find = |name: &str| {
            let looked_up = found.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone());
            looked_up.or_else(|| credential.as_ref()?.details.get(name).cloned())
        };
        account.base = with_api_host(&fill_base(written, find)?, api);
        Ok(account)
    }

    async fn look_up(&self, account: &CallAccount, path: &str) -> Result<Value, Error> {
        let rule =
            RequestTemplate::get(path, ResponseFormat::Json).map_err(|wrong| Error::new(ErrorKind::Internal, wrong))?;
        let ServiceResponse { body, .. } = self.send_as(account, &rule.fill(&VariableScope::default())?, &rule).await?;
        Ok(parse(&body))
    }
}
