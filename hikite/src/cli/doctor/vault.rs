//! Vault and account checks of `hikite doctor`. Every secret is decrypted as a test; none is shown.

use hikite_core::caller::Caller;
use hikite_core::json::{Object, Raw};

use super::{Finding, Level};
use crate::cli::Common;
use crate::cli::account::Desk;
use crate::progress;

pub(super) async fn findings(common: &Common) -> Vec<Finding> {
    let desk = match Desk::open(common).await {
        Ok(desk) => desk,
        Err(error) => return vec![Finding::bad("vault", format!("{error:#}"), None)],
    };
    let mut findings = vec![vault(&desk).await];
    let accounts = desk.accounts.objects(&Caller::owner(), true);
    findings.extend(accounts.iter().filter_map(Raw::object).filter_map(|account| lost(&account)));
    desk.close().await;
    findings
}

async fn vault(desk: &Desk) -> Finding {
    let safe = desk.accounts.safe();
    let wrong = match progress::tell_if_long("opening the vault", safe.check()).await {
        Ok(wrong) => wrong,
        Err(error) => return Finding::bad("vault", error.message, None),
    };
    let secrets = safe.standing().await.map(|standing| standing.secrets).unwrap_or_default();
    if wrong.is_empty() {
        return Finding::good(
            "vault",
            format!("the key is in {}, and all {secrets} secrets open", desk.place()),
        );
    }
    let told: Vec<String> = wrong.iter().map(|found| format!("{}: {}", found.record, found.reason)).collect();
    let hint = "give hikite the key that it had before (`vault` in the config), put back a copy with `hikite vault \
                import`, or connect these accounts again";
    Finding::bad("vault", told.join("\n  "), Some(hint.into()))
}

/// Reports an account that is unverified or must be reconnected.
fn lost(account: &Object) -> Option<Finding> {
    let text = |name: &str| account.text(name).unwrap_or_default();
    let (provider, name) = (text("provider"), text("name"));
    if text("state") == "unverified" && account.text("problem").is_some() {
        return Some(Finding {
            what: format!("account {name} with {provider}"),
            level: Level::Warning,
            text: format!("is not verified: {}", text("problem")),
            hint: Some("`hikite account verify`".into()),
        });
    }
    if text("state") != "reconnect" {
        return None;
    }
    Some(Finding {
        what: format!("account {name} with {provider}"),
        level: Level::Warning,
        text: "must be connected again: its provider takes its token no more".into(),
        hint: Some(format!("`hikite account connect {provider} --name {name}`")),
    })
}
