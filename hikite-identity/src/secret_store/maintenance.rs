//! Vault maintenance: status, integrity check, and rotation of the master key while other processes use the vault.

use std::collections::BTreeMap;

use hikite_core::error::Error;
use hikite_store::VaultKeyRow;
use hikite_vault::{SealedText, SecretContext};

use super::{RETIRED_KEYS, SecretStore};

/// Status of the vault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VaultStatus {
    /// Id of the master key that encrypts.
    pub key: String,
    /// Ids of the master keys that only decrypt.
    pub older: Vec<String>,
    /// Number of accounts per master key.
    pub accounts: BTreeMap<String, usize>,
    pub secrets: usize,
}

/// A record that cannot be decrypted, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultFinding {
    /// `account`, or `account/provider/field`.
    pub record: String,
    pub reason: String,
}

/// Result of a master key rotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RotationSummary {
    pub rewrapped: usize,
    /// Records left under another key because they cannot be decrypted.
    pub left: Vec<VaultFinding>,
}

impl SecretStore {
    pub async fn vault_status(&self) -> Result<VaultStatus, Error> {
        let ring = self.ring.load_full();
        let mut accounts = BTreeMap::new();
        let is_own = |account: &str| account == RETIRED_KEYS;
        for row in self.store.vault().keys().await?.into_iter().filter(|row| !is_own(&row.account)) {
            *accounts.entry(row.key_id).or_insert(0) += 1;
        }
        Ok(VaultStatus {
            key: ring.current().id().to_owned(),
            older: ring.ids().skip(1).map(str::to_owned).collect(),
            accounts,
            secrets: self.store.vault().secrets().await?.iter().filter(|row| !is_own(&row.account)).count(),
        })
    }

    /// Decrypts every record and returns those that fail.
    pub async fn check(&self) -> Result<Vec<VaultFinding>, Error> {
        let (mut findings, mut keys) = (Vec::new(), BTreeMap::new());
        for row in self.store.vault().keys().await? {
            match self.unwrap(&row).await {
                Ok(key) => drop(keys.insert(row.account, key)),
                Err(error) => {
                    findings.push(VaultFinding { record: row.account, reason: error.message.into() });
                }
            }
        }
        let is_reported = |account: &str, findings: &[VaultFinding]| findings.iter().any(|f| f.record == account);
        for row in self.store.vault().secrets().await? {
            let record = format!("{}/{}/{}", row.account, row.provider, row.field);
            let place = SecretContext {
                account: &row.account,
                provider: &row.provider,
                field: &row.field,
                version: row.version,
            };
            match keys.get(&row.account) {
                Some(key) => {
                    let opened = key.open(place, &SealedText::from_text(row.sealed.clone()));
                    let finding = |why: hikite_vault::VaultError| VaultFinding { record, reason: why.to_string() };
                    findings.extend(opened.err().map(finding));
                }
                None if is_reported(&row.account, &findings) => {}
                None => findings.push(VaultFinding { record, reason: "The account has no key.".into() }),
            }
        }
        Ok(findings)
    }

    /// Wraps all data keys under the current master key. Processes that have both keys keep working meanwhile.
    pub async fn rotate(&self) -> Result<RotationSummary, Error> {
        self.read_keys().await?;
        let current = self.ring.load().current().id().to_owned();
        let mut rotated = RotationSummary::default();
        for row in self.store.vault().keys().await?.into_iter().filter(|row| row.key_id != current) {
            match self.rewrap(&row).await {
                Ok(changed) => rotated.rewrapped += usize::from(changed),
                Err(error) => {
                    rotated.left.push(VaultFinding { record: row.account, reason: error.message.into() });
                }
            }
        }
        Ok(rotated)
    }

    /// Rewraps one data key. Returns `false` if another process did so first.
    async fn rewrap(&self, row: &VaultKeyRow) -> Result<bool, Error> {
        let key = self.unwrap(row).await?;
        let again = self.wrap(&row.account, &key)?;
        Ok(self.store.vault().rewrap_key(&again, &row.key_id).await?)
    }
}
