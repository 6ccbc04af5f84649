//! Permissions: which tools a caller may see and call, as `{"allow": […], "deny": […]}`. Denials override allowances;
//! without `allow`, everything that is not denied is allowed. The key `module:*` covers a module's resources and
//! prompts.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use crate::fault::{self, Fault};
use crate::json::{Object, Raw};
use crate::key::ToolKey;
use crate::risk::Risk;
use crate::suggest;

mod entry;
use entry::Entry;

const MEMBERS: [&str; 3] = ["allow", "deny", "tools"];
/// Most entries of one list. Nobody can review a longer one.
const ENTRIES: usize = 1000;
/// Tool name that stands for the module itself in a key.
const WHOLE: &str = "*";

#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// `None` allows everything.
    allow: Option<Vec<Entry>>,
    deny: Vec<Entry>,
    form: Option<Raw>,
    /// Further permissions that must also allow the tool.
    also: Vec<Arc<Permissions>>,
    /// Permissions of the accounts per module; at least one account must allow the tool.
    accounts: Accounts,
    fingerprint: OnceLock<Fingerprint>,
}

/// Hash of permissions. Equal hashes mean equal permissions.
pub type Fingerprint = [u8; 32];

/// Permissions of each usable account, by module.
pub type Accounts = HashMap<Arc<str>, Vec<Arc<Permissions>>>;

impl Permissions {
    /// Parses permissions. Reports all violations at once.
    pub fn read(form: &Raw) -> Result<Self, Vec<Fault>> {
        let mut reader = Reader { faults: Vec::new() };
        let permissions = reader.permissions(form);
        if reader.faults.is_empty() { Ok(permissions) } else { Err(reader.faults) }
    }

    /// Returns the JSON that the permissions were read from.
    pub fn form(&self) -> Raw {
        self.form.clone().unwrap_or_else(Raw::empty_object)
    }

    /// Returns the intersection of all permissions, where each module with accounts needs at least one account that
    /// allows the tool.
    pub fn together(all: impl IntoIterator<Item = Arc<Self>>, accounts: Accounts) -> Arc<Self> {
        let mut also: Vec<Arc<Self>> =
            all.into_iter().filter(|permissions| !permissions.is_everything()).collect();
        // One unrestricted account already allows the whole module.
        let narrow = |of: &Vec<Arc<Self>>| !of.is_empty() && !of.iter().any(|one| one.is_everything());
        let accounts: Accounts = accounts.into_iter().filter(|(_, of)| narrow(of)).collect();
        if also.len() == 1 && accounts.is_empty() {
            return also.swap_remove(0);
        }
        Arc::new(Self { also, accounts, ..Self::default() })
    }

    pub fn allows(&self, key: &ToolKey, risk: Risk) -> bool {
        let named = |entries: &[Entry]| entries.iter().any(|entry| entry.fits(key, risk));
        !named(&self.deny)
            && self.allow.as_deref().is_none_or(named)
            && self.also_holds(&key.module, |permissions| permissions.allows(key, risk))
    }

    /// Returns `true` if a tool is allowed whatever its risk, which is unknown before it is listed.
    pub fn allows_unseen(&self, key: &ToolKey) -> bool {
        Risk::ALL.into_iter().all(|risk| self.allows(key, risk))
    }

    /// Returns `true` if the module's resources, prompts and other non-tool items may be used. This counts as reading.
    pub fn allows_module(&self, module: &str) -> bool {
        self.allows(&ToolKey::new(module, WHOLE), Risk::Read)
    }

    /// Returns `true` if some tool of a module that is not listed yet could be allowed.
    pub fn may_reach(&self, module: &str) -> bool {
        let whole = ToolKey::new(module, WHOLE);
        let allowed = |entries: &[Entry]| entries.iter().any(|entry| entry.may_fit_in(module));
        !self.deny.iter().any(|entry| entry.covers(&whole))
            && self.allow.as_deref().is_none_or(allowed)
            && self.also_holds(module, |permissions| permissions.may_reach(module))
    }

    /// Returns `true` if nothing is restricted.
    pub fn is_everything(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty() && self.also.is_empty() && self.accounts.is_empty()
    }

    /// Returns the hash, computed once. Equivalent permissions that are written differently may have different hashes.
    pub fn fingerprint(&self) -> Fingerprint {
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
            self.also.iter().for_each(|also| add(&also.fingerprint()));
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

    fn also_holds(&self, module: &str, holds: impl Fn(&Self) -> bool) -> bool {
        self.also.iter().all(|permissions| holds(permissions))
            && self.accounts.get(module).is_none_or(|accounts| accounts.iter().any(|account| holds(account)))
    }
}

struct Reader {
    faults: Vec<Fault>,
}

impl Reader {
    fn permissions(&mut self, form: &Raw) -> Permissions {
        if form.is_null() {
            return Permissions::default();
        }
        let Some(members) = form.object() else {
            self.faults.push(Fault::new("", "permissions must be an object with `allow` and `deny`"));
            return Permissions::default();
        };
        for name in members.unknown(&MEMBERS) {
            let near = suggest::did_you_mean(name, MEMBERS);
            let hint = near.map(|near| format!(": {near}")).unwrap_or_default();
            self.faults.push(Fault::new(fault::step(name), format!("Unknown member `{name}`{hint}")));
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
    fn entries(&mut self, members: &Object, member: &str) -> Option<Vec<Entry>> {
        let given = members.get(member).filter(|value| !value.is_null())?;
        let items = given.items().filter(|items| items.len() <= ENTRIES);
        let Some(items) = items else {
            let message = format!("`{member}` must be a list of at most {ENTRIES} entries");
            self.faults.push(Fault::new(fault::step(member), message));
            return Some(Vec::new());
        };
        let read = items.iter().enumerate().filter_map(|(at, item)| {
            self.take(Entry::read(item), || format!("{}/{at}", fault::step(member)))
        });
        Some(read.collect())
    }

    /// Reads per-tool switches: `{"module:tool": false}`.
    fn switches(&mut self, members: &Object) -> Vec<(Entry, bool)> {
        let Some(given) = members.get("tools").filter(|value| !value.is_null()) else { return Vec::new() };
        let Some(tools) = given.object().filter(|tools| tools.len() <= ENTRIES) else {
            let message = format!("`tools` must be an object of at most {ENTRIES} tools with true or false");
            self.faults.push(Fault::new("/tools", message));
            return Vec::new();
        };
        let mut switches = Vec::new();
        for (name, on) in tools.iter() {
            let pointer = || format!("/tools{}", fault::step(name));
            let entry = self.take(Entry::of_tool(name), pointer);
            match (entry, on.decode::<bool>()) {
                (Some(entry), Ok(on)) => switches.push((entry, on)),
                (_, Err(_)) => {
                    self.faults.push(Fault::new(pointer(), format!("`{name}` must be true or false")));
                }
                (None, Ok(_)) => {}
            }
        }
        switches
    }

    fn take(&mut self, read: Result<Entry, Vec<Fault>>, pointer: impl Fn() -> String) -> Option<Entry> {
        match read {
            Ok(entry) => Some(entry),
            Err(faults) => {
                let inside = |fault: Fault| Fault::new(pointer() + &fault.pointer, fault.message);
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
