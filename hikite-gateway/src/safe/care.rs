//! Looking after the vault as a whole: under which keys everything is, whether it opens, and putting it under another
//! master key while others use it.

use std::collections::BTreeMap;

use hikite_core::error::Error;
use hikite_store::VaultKeyRow;
use hikite_vault::{Place, Sealed};

use super::{RETIRED_KEYS, Safe};

/// How things stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The master key that seals.
    pub key: String,
    /// Those that only open.
    pub older: Vec<String>,
    /// How many accounts are under which master key.
    pub accounts: BTreeMap<String, usize>,
    pub secrets: usize,
}

/// A record that does not open, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `account`, or `account/provider/field`.
    pub record: String,
    pub reason: String,
}

/// What a change of the master key did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rotated {
    pub rewrapped: usize,
    /// What stays under another key, because it does not open.
    pub left: Vec<Finding>,
}

impl Safe {
    pub async fn standing(&self) -> Result<Standing, Error> {
        let ring = self.ring.load_full();
        let mut accounts = BTreeMap::new();
        let is_own = |account: &str| account == RETIRED_KEYS;
        for row in self.store.vault_keys().await?.into_iter().filter(|row| !is_own(&row.account)) {
            *accounts.entry(row.key_id).or_insert(0) += 1;
        }
        Ok(Standing {
            key: ring.current().id().to_owned(),
            older: ring.ids().skip(1).map(str::to_owned).collect(),
            accounts,
            secrets: self.store.vault_secrets().await?.iter().filter(|row| !is_own(&row.account)).count(),
        })
    }

    /// Opens everything there is, and tells what does not open.
    pub async fn check(&self) -> Result<Vec<Finding>, Error> {
        let (mut findings, mut keys) = (Vec::new(), BTreeMap::new());
        for row in self.store.vault_keys().await? {
            match self.unwrap(&row).await {
                Ok(key) => drop(keys.insert(row.account, key)),
                Err(error) => findings.push(Finding { record: row.account, reason: error.message.into() }),
            }
        }
        let is_told = |account: &str, findings: &[Finding]| findings.iter().any(|f| f.record == account);
        for row in self.store.vault_secrets().await? {
            let record = format!("{}/{}/{}", row.account, row.provider, row.field);
            let place = Place {
                account: &row.account,
                provider: &row.provider,
                field: &row.field,
                version: row.version,
            };
            match keys.get(&row.account) {
                Some(key) => {
                    let opened = key.open(place, &Sealed::from_text(row.sealed.clone()));
                    let finding = |why: hikite_vault::Refused| Finding { record, reason: why.to_string() };
                    findings.extend(opened.err().map(finding));
                }
                None if is_told(&row.account, &findings) => {}
                None => findings.push(Finding { record, reason: "its account has no key".into() }),
            }
        }
        Ok(findings)
    }

    /// Puts the keys of all accounts under the current master key. Whoever has both keys goes on meanwhile.
    pub async fn rotate(&self) -> Result<Rotated, Error> {
        self.read_keys().await?;
        let current = self.ring.load().current().id().to_owned();
        let mut rotated = Rotated::default();
        for row in self.store.vault_keys().await?.into_iter().filter(|row| row.key_id != current) {
            match self.rewrap(&row).await {
                Ok(changed) => rotated.rewrapped += usize::from(changed),
                Err(error) => {
                    rotated.left.push(Finding { record: row.account, reason: error.message.into() });
                }
            }
        }
        Ok(rotated)
    }

    /// `false` if another did it just now.
    async fn rewrap(&self, row: &VaultKeyRow) -> Result<bool, Error> {
        let key = self.unwrap(row).await?;
        let again = self.wrap(&row.account, &key)?;
        Ok(self.store.rewrap_vault_key(&again, &row.key_id).await?)
    }
}
