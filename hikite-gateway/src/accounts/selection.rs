//! Account selection per call: the account named in `_meta`, the one place where every surface puts it, and the
//! restrictions of that account.

use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::catalog::Module;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::permission::{self, Permissions};
use hikite_core::view::View;

use super::SelectedAccount;
use crate::gateway::Gateway;
use crate::snapshot::Snapshot;

/// Member of `_meta` that names an account.
pub(crate) const META: &str = "hikite/account";

/// Adds the requested account to the params.
pub fn with_account(mut params: Object, account: Option<&str>) -> Object {
    if let Some(account) = account {
        let meta = params.get("_meta").and_then(Raw::object).unwrap_or_default();
        params.set("_meta", meta.with(META, account));
    }
    params
}

/// Removes the requested account from the params. It is not forwarded.
pub(crate) fn requested(params: &mut Object) -> Result<Option<String>, Error> {
    let Some(meta) = params.get("_meta").filter(|meta| meta.bytes().len() > META.len()) else {
        return Ok(None);
    };
    let Some(mut meta) = meta.object() else { return Ok(None) };
    let Some(account) = meta.remove(META) else { return Ok(None) };
    if meta.is_empty() {
        params.remove("_meta");
    } else {
        params.set("_meta", meta);
    }
    if account.is_null() {
        return Ok(None);
    }
    let account = account.text().filter(|name| !name.is_empty());
    account.map(Some).ok_or_else(|| {
        Error::new(ErrorKind::Validation, format!("`_meta[\"{META}\"]` must be the name of an account."))
    })
}

impl Gateway {
    /// Returns the account that serves a call of a module, or `None` if the module needs none or nobody has one.
    pub(crate) fn account_for(
        &self,
        caller: &Caller,
        module: &Module,
        requested: Option<&str>,
    ) -> Result<Option<SelectedAccount>, Error> {
        match (self.accounts(), module.source.provider()) {
            (Some(accounts), Some(provider)) => accounts.choose(caller, provider, requested),
            _ => Ok(None),
        }
    }

    /// Returns the caller's view restricted to this account, if the account does not allow the request. A lookup in
    /// that view fails exactly like one of an absent tool.
    pub(crate) fn restricted_view(
        snapshot: &Snapshot,
        (caller, module): (&Caller, &Module),
        chosen: Option<&SelectedAccount>,
        allows: impl FnOnce(&Permissions) -> bool,
    ) -> Option<View> {
        let allowed = chosen?.permissions();
        if allows(allowed) {
            return None;
        }
        let alone = permission::AccountPermissions::from([(Arc::clone(&module.name), vec![Arc::clone(allowed)])]);
        let permissions = Permissions::intersection(snapshot.permissions_of(caller), alone);
        Some(View::restricted(&snapshot.catalog, &permissions))
    }
}

impl SelectedAccount {
    /// Returns the tools that may be called with this account.
    pub(crate) fn permissions(&self) -> &Arc<Permissions> {
        match self {
            Self::Account(account) => &account.permissions,
            Self::Configured(allowed) => allowed,
        }
    }

    /// Returns the display name.
    pub(crate) fn words(&self, module: &Module) -> String {
        let provider = module.source.provider().unwrap_or_default();
        match self {
            Self::Account(account) => format!("{provider}/{}", account.name),
            Self::Configured(_) => format!("{provider}/{}", super::DEFAULT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::raw;

    #[test]
    fn an_account_is_put_in_and_taken_out_and_nothing_else_changes() {
        let params = raw(r#"{"name":"x","_meta":{"a":1}}"#).object().expect("an object");
        let mut with = with_account(params.clone(), Some("work"));
        assert_eq!(requested(&mut with).expect("right").as_deref(), Some("work"));
        assert_eq!(with.raw().value(), params.raw().value());
        let mut alone = with_account(raw(r#"{"name":"x"}"#).object().expect("an object"), Some("work"));
        requested(&mut alone).expect("right");
        assert_eq!(alone.raw().as_str(), r#"{"name":"x"}"#);
        let mut wrong = raw(r#"{"_meta":{"hikite/account":5}}"#).object().expect("an object");
        assert_eq!(requested(&mut wrong).expect_err("refused").kind, ErrorKind::Validation);
    }
}
