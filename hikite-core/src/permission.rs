//! Permissions: which tools a caller may see and call, as `{"allow": […], "deny": […]}`. Denials override allowances;
//! without `allow`, everything that is not denied is allowed. The key `module:*` covers a module's resources and
//! prompts.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use crate::json::{Object, Raw};
use crate::key::ToolKey;
use crate::risk::Risk;
use crate::suggestion;
use crate::violation::{self, Violation};

mod entry;
use entry::PermissionEntry;

const MEMBERS: [&str; 3] = ["allow", "deny", "tools"];
/// Most entries of one list. Nobody can review a longer one.
const ENTRIES: usize = 1000;
/// Tool name that stands for the module itself in a key.
const MODULE_WILDCARD: &str = "*";

#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// `None` allows everything.
    allow: Option<Vec<PermissionEntry>>,
    deny: Vec<PermissionEntry>,
    form: Option<Raw>,
    /// Further permissions that must also allow the tool.
    all_of: Vec<Arc<Permissions>>,
    /// Permissions of the accounts per module; at least one account must allow the tool.
    accounts: AccountPermissions,
    fingerprint: OnceLock<PermissionFingerprint>,
}

/// Hash of permissions. Equal hashes mean equal permissions.
pub type PermissionFingerprint = [u8; 32];

/// Permissions of each usable account, by module.
pub type AccountPermissions = HashMap<Arc<str>, Vec<Arc<Permissions>>>;

impl Permissions {
    /// Parses permissions. Reports all violations at once.
    pub fn read(form: &Raw) -> Result<Self, Vec<Violation>> {
        let mut reader = PermissionReader { faults: Vec::new() };
        let permissions = reader.permissions(form);
        if reader.faults.is_empty() { Ok(permissions) } else { Err(reader.faults) }
    }

    /// Returns the JSON that the permissions were read from.
    pub fn form(&self) -> Raw {
        self.form.clone().unwrap_or_else(Raw::empty_object)
    }

    /// Returns the intersection of all permissions, where each module with accounts needs at least one account that
    /// allows the tool.
    pub fn intersection(all: impl IntoIterator<Item = Arc<Self>>, accounts: AccountPermissions) -> Arc<Self> {
        let mut all_of: Vec<Arc<Self>> = all.into_iter().filter(|permissions| !permissions.is_unrestricted()).collect();
        // One unrestricted account already allows the whole module.
        let narrow = |of: &Vec<Arc<Self>>| !of.is_empty() && !of.iter().any(|one| one.is_unrestricted());
        let accounts: AccountPermissions = accounts.into_iter().filter(|(_, of)| narrow(of)).collect();
        if all_of.len() == 1 && accounts.is_empty() {
            return all_of.swap_remove(0);
        }
        Arc::new(Self { all_of, accounts, ..Self::default() })
    }

    pub fn allows(&self, key: &ToolKey, risk: Risk) -> bool {
        let named = |entries: &[PermissionEntry]| entries.iter().any(|entry| entry.matches(key, risk));
        !named(&self.deny)
            && self.allow.as_deref().is_none_or(named)
            && self.all_hold(&key.module, |permissions| permissions.allows(key, risk))
    }

    /// Returns `true` if a tool is allowed whatever its risk, which is unknown before it is listed.
    pub fn allows_unlisted(&self, key: &ToolKey) -> bool {
        Risk::ALL.into_iter().all(|risk| self.allows(key, risk))
    }

    /// Returns `true` if the module's resources, prompts and other non-tool items may be used. This counts as reading.
    pub fn allows_module(&self, module: &str) -> bool {
        self.allows(&ToolKey::new(module, MODULE_WILDCARD), Risk::Read)
    }

    /// Returns `true` if some tool of a module that is not listed yet could be allowed.
    pub fn may_reach(&self, module: &str) -> bool {
        let whole = ToolKey::new(module, MODULE_WILDCARD);
        let allowed = |entries: &[PermissionEntry]| entries.iter().any(|entry| entry.may_match_in(module));
        !self.deny.iter().any(|entry| entry.covers_module(&whole))
            && self.allow.as_deref().is_none_or(allowed)
            && self.all_hold(module, |permissions| permissions.may_reach(module))
    }

    /// Returns `true` if nothing is restricted.
    pub fn is_unrestricted(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty() && self.all_of.is_empty() && self.accounts.is_empty()
    }

    /// Returns the hash, computed once. Equivalent permissions that are written differently may have different hashes.
    pub fn fingerprint(&self) -> PermissionFingerprint {
        *self.fingerprint.get_or_init(|| {
            let mut hash = Sha256::new();
            // Length prefixes keep different lists of parts from hashing alike.
            let mut add = |part: &[u8]| {
                hash.update(part.len().to_be_bytes());
                hash.update(part);
            };
            match &self.form {
                Some(form) => add(form.bytes()),
                None => add(if self.allow.is_some() { b"nothing" } else { b"" }),
            }
            self.all_of.iter().for_each(|all_of| add(&all_of.fingerprint()));
            let mut accounts: Vec<_> = self.accounts.iter().collect();
            accounts.sort_unstable_by_key(|(module, _)| *module);
            for (module, allowed) in accounts {
                add(module.as_bytes());
                for one in allowed {
                    add(&one.fingerprint());
                }
            }
            hash.finalize().into()
        })
    }

    fn all_hold(&self, module: &str, holds: impl Fn(&Self) -> bool) -> bool {
        self.all_of.iter().all(|permissions| holds(permissions))
            && self.accounts.get(module).is_none_or(|accounts| accounts.iter().any(|account| holds(account)))
    }
}

struct PermissionReader {
    faults: Vec<Violation>,
}

impl PermissionReader {
    fn permissions(&mut self, form: &Raw) -> Permissions {
        if form.is_null() {
            return Permissions::default();
        }
        let Some(members) = form.object() else {
            self.faults.push(Violation::new("", "Permissions must be an object with `allow` and `deny`."));
            return Permissions::default();
        };
        for name in members.unknown(&MEMBERS) {
            let near = suggestion::did_you_mean(name, MEMBERS);
            let hint = near.map(|near| format!(" {near}")).unwrap_or_default();
            self.faults.push(Violation::new(violation::step(name), format!("Unknown member `{name}`.{hint}")));
        }
        let mut allow = self.entries(&members, "allow");
        let mut deny = self.entries(&members, "deny").unwrap_or_default();
        for (entry, allowed) in self.switches(&members) {
            match &mut allow {
                Some(allow) if allowed => allow.push(entry),
                None if allowed => {}
                _ => deny.push(entry),
            }
        }
        Permissions { allow, deny, form: Some(form.copied()), ..Permissions::default() }
    }

    /// Reads a list of entries. `null` counts as absent; an empty list allows or denies nothing.
    fn entries(&mut self, members: &Object, member: &str) -> Option<Vec<PermissionEntry>> {
        let value = members.get(member).filter(|value| !value.is_null())?;
        let items = value.items().filter(|items| items.len() <= ENTRIES);
        let Some(items) = items else {
            let message = format!("`{member}` must be a list of at most {ENTRIES} entries.");
            self.faults.push(Violation::new(violation::step(member), message));
            return Some(Vec::new());
        };
        let read = items.iter().enumerate().filter_map(|(at, item)| {
            self.take(PermissionEntry::read(item), || format!("{}/{at}", violation::step(member)))
        });
        Some(read.collect())
    }

    /// Reads per-tool switches: `{"module:tool": false}`.
    fn switches(&mut self, members: &Object) -> Vec<(PermissionEntry, bool)> {
        let Some(value) = members.get("tools").filter(|value| !value.is_null()) else { return Vec::new() };
        let Some(tools) = value.object().filter(|tools| tools.len() <= ENTRIES) else {
            let message = format!("`tools` must be an object of at most {ENTRIES} tools with true or false.");
            self.faults.push(Violation::new("/tools", message));
            return Vec::new();
        };
        let mut switches = Vec::new();
        for (name, on) in tools.iter() {
            let pointer = || format!("/tools{}", violation::step(name));
            let entry = self.take(PermissionEntry::of_tool(name), pointer);
            match (entry, on.decode::<bool>()) {
                (Some(entry), Ok(on)) => switches.push((entry, on)),
                (_, Err(_)) => {
                    self.faults.push(Violation::new(pointer(), format!("`{name}` must be true or false.")));
                }
                (None, Ok(_)) => {}
            }
        }
        switches
    }

    fn take(
        &mut self,
        read: Result<PermissionEntry, Vec<Violation>>,
        pointer: impl Fn() -> String,
    ) -> Option<PermissionEntry> {
        match read {
            Ok(entry) => Some(entry),
            Err(faults) => {
                let inside = |fault: Violation| Violation::new(pointer() + &fault.pointer, fault.message);
                self.faults.extend(faults.into_iter().map(inside));
                None
            }
        }
    }
}

/// Returns permissions that allow nothing.
pub fn nothing() -> Arc<Permissions> {
    Arc::new(Permissions { allow: Some(Vec::new()), ..Permissions::default() })
}

#[cfg(test)]
mod tests;
