//! Credential verification: sends the module's verification request with one given credential.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::credential::{Credential, CredentialVerdict};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::source::CallContext;

use super::Service;
use super::call::ServiceCall;
use super::request::RequestTemplate;
use crate::scope::VariableScope;

/// Timeout. A person waits for the result in a browser.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(10);

impl Service {
    /// Returns `true` if the file has a verification request.
    pub fn can_verify(&self) -> bool {
        self.probe.is_some()
    }

    #[cfg(test)]
    pub(crate) fn verification_path(&self) -> Option<String> {
        self.probe.as_ref()?.path(&VariableScope::default()).ok()
    }

    /// Sends the verification request with this credential. Error messages are the vendor's.
    pub async fn verify(&self, credential: Arc<Credential>) -> CredentialVerdict {
        let Some(probe) = &self.probe else { return CredentialVerdict::Unsupported };
        let context = CallContext::unattended();
        let call = ServiceCall { any_site: true, ..ServiceCall::new(self, &context, false, None) };
        match tokio::time::timeout(VERIFY_TIMEOUT, call.send_verification(credential, probe)).await {
            Ok(Ok(())) => CredentialVerdict::Accepted,
            Ok(Err(error)) => verdict_of(&error),
            Err(_) => {
                let seconds = VERIFY_TIMEOUT.as_secs();
                CredentialVerdict::Unclear(format!("{} did not respond within {seconds} s", self.title))
            }
        }
    }
}

impl ServiceCall<'_> {
    async fn send_verification(&self, credential: Arc<Credential>, probe: &RequestTemplate) -> Result<(), Error> {
        let account = self.with(Some(credential)).await?;
        self.send_as(&account, &probe.fill(&VariableScope::default())?, probe).await.map(drop)
    }
}

/// Converts an error. Only a refused credential counts as invalid.
fn verdict_of(error: &Error) -> CredentialVerdict {
    let words = error.message.to_string();
    match error.kind {
        ErrorKind::AccountRequired | ErrorKind::Authorization => CredentialVerdict::Refused(words),
        _ => CredentialVerdict::Unclear(words),
    }
}
