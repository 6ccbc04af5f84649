//! Accounts as JSON in a backup of the vault.

use hikite_core::json::{Object, Raw};
use hikite_store::AccountRow;

pub(super) fn document(account: &AccountRow) -> Raw {
    let mut document = Object::default()
        .with("provider", account.provider.as_str())
        .with("name", account.name.as_str())
        .with("state", account.status.as_str())
        .with("default", Raw::of(&account.is_default))
        .with("shared", Raw::of(&account.shared))
        .with("scopes", Raw::of(&account.scopes))
        .with("details", Raw::of(&account.details))
        .with("expires_at", Raw::of(&account.token_expires_at))
        .with("last_refresh", Raw::of(&account.last_refresh))
        .with("verified_at", Raw::of(&account.verified_at))
        .with("permissions", account.permissions.clone());
    for (name, value) in [("email", &account.email), ("api", &account.api), ("problem", &account.problem)] {
        if let Some(value) = value {
            document.set(name, value.as_str());
        }
    }
    document.raw()
}

/// Reads an account; `None` without a provider or a name.
pub(super) fn read(id: String, subject: String, document: &Object, created_at: u64) -> Option<AccountRow> {
    let number = |name: &str| document.get(name).and_then(|at| at.decode().ok()).unwrap_or_default();
    let flag = |name: &str| document.get(name).and_then(|flag| flag.decode().ok()).unwrap_or_default();
    Some(AccountRow {
        id,
        subject,
        provider: document.text("provider")?,
        name: document.text("name")?,
        status: document.text("state").unwrap_or_else(|| "connected".into()),
        problem: document.text("problem"),
        verified_at: number("verified_at"),
        is_default: flag("default"),
        shared: flag("shared"),
        scopes: document.get("scopes").and_then(|list| list.decode().ok()).unwrap_or_default(),
        email: document.text("email"),
        details: document.get("details").and_then(|map| map.decode().ok()).unwrap_or_default(),
        api: document.text("api"),
        token_expires_at: number("expires_at"),
        last_refresh: number("last_refresh"),
        permissions: document.get("permissions").map_or_else(Raw::empty_object, Raw::copied),
        version: 1,
        created_at,
    })
}
