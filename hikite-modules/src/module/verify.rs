//! Credential verification: sends the module's verification request with one given credential.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::credential::{Credential, Proof};
use hikite_core::error::{Error, Kind};
use hikite_core::source::CallContext;

use super::Service;
use super::call::Call;
use super::request::Request;
use crate::scope::Scope;

/// Timeout. A person waits for the result in a browser.
const PATIENCE: Duration = Duration::from_secs(10);

impl Service {
    /// Returns `true` if the file has a verification request.
    pub fn can_verify(&self) -> bool {
        self.probe.is_some()
    }

    #[cfg(test)]
    pub(crate) fn probe_path(&self) -> Option<String> {
        self.probe.as_ref()?.path(&Scope::default()).ok()
    }

    /// Sends the verification request with this credential. Error messages are the vendor's.
    pub async fn verify(&self, credential: Arc<Credential>) -> Proof {
        let Some(probe) = &self.probe else { return Proof::NoProbe };
        let context = CallContext::unattended();
        let call = Call { any_site: true, ..Call::new(self, &context, false, None) };
        match tokio::time::timeout(PATIENCE, call.prove(credential, probe)).await {
            Ok(Ok(())) => Proof::Accepted,
            Ok(Err(error)) => judged(&error),
            Err(_) => {
                let seconds = PATIENCE.as_secs();
                Proof::Unclear(format!("{} did not answer within {seconds} s", self.title))
            }
        }
    }
}

impl Call<'_> {
    async fn prove(&self, credential: Arc<Credential>, probe: &Request) -> Result<(), Error> {
        let account = self.with(Some(credential)).await?;
        self.send_as(&account, &probe.fill(&Scope::default())?, probe).await.map(drop)
    }
}

/// Converts an error. Only a refused credential counts as invalid.
fn judged(error: &Error) -> Proof {
    let words = error.message.to_string();
    match error.kind {
        Kind::AccountRequired | Kind::Authorization => Proof::Refused(words),
        _ => Proof::Unclear(words),
    }
}
