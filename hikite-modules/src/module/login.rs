//! Credential and base URL of a call. Resolved once per call; a credential that the service refuses is renewed once.

use std::sync::Arc;

use hikite_core::compact::parse;
use hikite_core::credential::Credential;
use hikite_core::error::{Error, Kind};
use serde_json::Value;

use super::account::{Account, chosen, filled, moved};
use super::call::Call;
use super::parameter::SITE;
use super::request::Request;
use super::send::Answer;
use crate::file::AnswerWord;
use crate::scope::Scope;

impl Call<'_> {
    pub(crate) async fn account(&self) -> Result<Account, Error> {
        let mut held = self.account.lock().await;
        if let Some(account) = &*held {
            return Ok(account.clone());
        }
        let credential = match &self.service.provider {
            None => None,
            Some(provider) => {
                let found = self.service.exchanger.credential(provider, self.context).await?;
                Some(found.ok_or_else(|| self.service.no_account())?)
            }
        };
        let account = match (self.with(credential.clone()).await, &credential) {
            // The site lookup itself may be refused.
            (Err(error), Some(credential)) if error.kind == Kind::AccountRequired => {
                let newer = self.newer(credential).await?.ok_or(error)?;
                self.with(Some(newer)).await?
            }
            (outcome, _) => outcome?,
        };
        *held = Some(account.clone());
        Ok(account)
    }

    /// Returns the account with a renewed credential, if there is one.
    pub(crate) async fn renewed(&self, refused: &Account) -> Result<Option<Account>, Error> {
        let mut held = self.account.lock().await;
        let Some(credential) = &refused.credential else { return Ok(None) };
        // A concurrent request of this call may have renewed it.
        if let Some(other) = held.as_ref().filter(|other| other.credential.as_ref() != Some(credential)) {
            return Ok(Some(other.clone()));
        }
        let Some(newer) = self.newer(credential).await? else { return Ok(None) };
        let account = self.with(Some(newer)).await?;
        *held = Some(account.clone());
        Ok(Some(account))
    }

    async fn newer(&self, refused: &Credential) -> Result<Option<Arc<Credential>>, Error> {
        let Some(provider) = &self.service.provider else { return Ok(None) };
        self.service.exchanger.renewed(provider, refused, self.context).await
    }

    pub(super) async fn with(&self, credential: Option<Arc<Credential>>) -> Result<Account, Error> {
        let api = credential.as_ref().and_then(|credential| credential.api.as_deref());
        let written = self.service.addresses.base(credential.as_deref())?;
        let hidden = credential.iter().map(|credential| credential.secret.expose().into()).collect();
        let owner =
            credential.as_ref().map_or_else(Arc::default, |credential| Arc::clone(&credential.account));
        let pace = self.service.paces.of(&owner);
        let mut account = Account { base: String::new(), hidden, credential: credential.clone(), pace };
        let mut found: Vec<(&str, String)> = Vec::new();
        for lookup in &self.service.addresses.lookups {
            let Some(credential) = &credential else { continue };
            let written_as = format!("{{{}}}", lookup.name);
            if !written.contains(&written_as) || credential.details.contains_key(&lookup.name) {
                continue;
            }
            account.base = moved(&lookup.at, api);
            let sites = match lookup.known(credential) {
                Some(sites) => sites,
                None => lookup.read(credential, &self.look_up(&account, &lookup.path).await?)?,
            };
            let wanted = self.site.as_ref().or_else(|| credential.details.get(SITE));
            let any = sites.first().map(|site| site.label.as_str()).filter(|_| self.any_site);
            let wanted = wanted.map(String::as_str).or(any);
            found.push((&lookup.name, chosen(&sites, wanted)?.to_owned()));
        }
        let find = |name: &str| {
            let looked_up = found.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone());
            looked_up.or_else(|| credential.as_ref()?.details.get(name).cloned())
        };
        account.base = moved(&filled(written, find)?, api);
        Ok(account)
    }

    async fn look_up(&self, account: &Account, path: &str) -> Result<Value, Error> {
        let rule = Request::get(path, AnswerWord::Json).map_err(|wrong| Error::new(Kind::Internal, wrong))?;
        let Answer { body, .. } = self.send_as(account, &rule.fill(&Scope::default())?, &rule).await?;
        Ok(parse(&body))
    }
}
