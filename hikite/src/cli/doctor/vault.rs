//! Vault and account checks of `hikite doctor`. Every secret is decrypted as a test; none is shown.

use hikite_api::Account;
use hikite_core::caller::Caller;

use super::{DoctorFinding, FindingLevel};
use crate::cli::GlobalArgs;
use crate::cli::account::AccountSession;
use crate::progress;

pub(super) async fn findings(common: &GlobalArgs) -> Vec<DoctorFinding> {
    let session = match AccountSession::open(common).await {
        Ok(session) => session,
        Err(error) => return vec![DoctorFinding::bad("vault", format!("{error:#}"), None)],
    };
    let mut findings = vec![vault(&session).await];
    let accounts = session.accounts.objects(&Caller::owner(), true);
    findings.extend(accounts.iter().filter_map(lost));
    session.close().await;
    findings
}

async fn vault(session: &AccountSession) -> DoctorFinding {
    let secret_store = session.accounts.secret_store();
    let wrong = match progress::with_spinner("checking the vault", secret_store.check()).await {
        Ok(wrong) => wrong,
        Err(error) => return DoctorFinding::bad("vault", error.message, None),
    };
    let secrets = secret_store.vault_status().await.map(|vault_status| vault_status.secrets).unwrap_or_default();
    if wrong.is_empty() {
        return DoctorFinding::good(
            "vault",
            format!("the key is in {}, and all {secrets} secrets can be decrypted", session.place()),
        );
    }
    let messages: Vec<String> = wrong.iter().map(|found| format!("{}: {}", found.record, found.reason)).collect();
    let hint = "Give hikite its previous key (`vault` in the config), restore a backup with `hikite vault import`, or connect \
     these accounts again.";
    DoctorFinding::bad("vault", messages.join("\n  "), Some(hint.into()))
}

/// Reports an account that is unverified or must be reconnected.
fn lost(account: &Account) -> Option<DoctorFinding> {
    let (provider, name) = (&account.provider, &account.name);
    if let ("unverified", Some(problem)) = (&*account.state, &account.problem) {
        return Some(DoctorFinding {
            what: format!("account {name} with {provider}"),
            level: FindingLevel::Warning,
            text: format!("is not verified: {problem}"),
            hint: Some("Run `hikite account verify`.".into()),
        });
    }
    if account.state != "reconnect" {
        return None;
    }
    Some(DoctorFinding {
        what: format!("account {name} with {provider}"),
        level: FindingLevel::Warning,
        text: "must be connected again because its provider no longer accepts its token".into(),
        hint: Some(format!("Run `hikite account connect {provider} --name {name}`.")),
    })
}
