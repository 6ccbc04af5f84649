//! Vault backups under a passphrase, independent of the master keys: every secret, and the documents of the accounts
//! they belong to. A backup can be restored into any store.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;
use hikite_store::clock::now_ms;
use hikite_store::{AccountRow, DocumentRow, Record};
use hikite_vault::{Password, VaultError, open_backup, seal_backup};

use super::{SecretStore, account, refused};

/// Counts of restored secrets and documents, and of existing ones that were left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreSummary {
    pub secrets: usize,
    pub forms: usize,
    pub kept: usize,
}

impl SecretStore {
    /// Exports all secrets, the accounts and the documents of these kinds under a passphrase. The key derivation is
    /// deliberately slow.
    pub async fn export(&self, passphrase: Password, kinds: &[&'static str]) -> Result<String, Error> {
        let mut secrets = Vec::new();
        for row in self.store.vault().secrets().await? {
            let Some(kept) = self.get(&row.account, &row.provider, &row.field).await? else { continue };
            let place = [&*row.account, &*row.provider, &*row.field, kept.secret.expose()];
            secrets.push(Raw::of(&place));
        }
        let mut forms = Vec::new();
        let form = |kind: &str, (id, owner): (&str, &str), created_at: u64, document: Raw| {
            Object::default()
                .with("kind", kind)
                .with("id", id)
                .with("owner", owner)
                .with("created_at", Raw::of(&created_at))
                .with("form", document)
                .raw()
        };
        for row in self.store.accounts().all(now_ms()).await? {
            forms.push(form(AccountRow::KIND, (&row.id, &row.subject), row.created_at, account::document(&row)));
        }
        for kind in kinds {
            for entry in self.store.documents().all(kind, None, now_ms()).await? {
                forms.push(form(entry.kind, (&entry.id, &entry.owner), entry.created_at, entry.document));
            }
        }
        let whole = Object::default().with("secrets", Raw::array(&secrets)).with("forms", Raw::array(&forms));
        let plain = Secret::hidden(whole.raw().as_str());
        run_blocking(move || seal_backup(&plain, &passphrase)).await
    }

    /// Restores a backup. Existing records stay unless `replace` is set.
    pub async fn import(
        &self,
        copy: String,
        passphrase: Password,
        (kinds, replace): (&[&'static str], bool),
    ) -> Result<RestoreSummary, Error> {
        let plain = run_blocking(move || open_backup(&copy, &passphrase)).await?;
        let whole = Raw::parse(plain.expose().to_owned()).ok().and_then(|raw| raw.object());
        let whole = whole.ok_or_else(|| invalid_backup(VaultError::Sealed))?;
        let items = |name: &str| whole.get(name).and_then(Raw::items).unwrap_or_default();
        let mut restored = RestoreSummary::default();
        for secret in items("secrets") {
            let Ok([account, provider, field, text]) = secret.decode::<[String; 4]>() else { continue };
            let at = (&*account, &*provider, &*field);
            let there = self.store.vault().secret(at.0, at.1, at.2).await?.is_some();
            if there && !replace {
                restored.kept += 1;
                continue;
            }
            self.set(at, &Secret::hidden(text)).await?;
            restored.secrets += 1;
        }
        for form in items("forms").iter().filter_map(Raw::object) {
            let (Some(id), Some(body)) = (form.text("id"), form.get("form")) else { continue };
            let owner = form.text("owner").unwrap_or_default();
            let created_at = form.get("created_at").and_then(|at| at.decode().ok()).unwrap_or_default();
            let kind = form.text("kind").unwrap_or_default();
            let is_new = if kind == AccountRow::KIND {
                let account = body.object().and_then(|body| account::read(id, owner, &body, created_at));
                let Some(account) = account else { continue };
                self.restore_account(account, replace).await?
            } else {
                let Some(kind) = kinds.iter().find(|known| **known == kind) else { continue };
                let document = body.copied();
                let entry = DocumentRow { kind, id, owner, document, version: 1, created_at, expires_at: 0 };
                self.restore_document(entry, replace).await?
            };
            if is_new {
                restored.forms += 1;
            } else {
                restored.kept += 1;
            }
        }
        Ok(restored)
    }

    async fn restore_account(&self, account: AccountRow, replace: bool) -> Result<bool, Error> {
        loop {
            if self.store.accounts().put(&account).await? {
                return Ok(true);
            }
            let there = self.store.accounts().get(&account.id, now_ms()).await?;
            if there.is_some() && !replace {
                return Ok(false);
            }
            if let Some(there) = there {
                let changed = AccountRow { version: there.version, ..account.clone() };
                if self.store.accounts().change(&changed).await? {
                    return Ok(true);
                }
            }
        }
    }

    async fn restore_document(&self, entry: DocumentRow, replace: bool) -> Result<bool, Error> {
        let now = self.store.clock().now_ms().await?;
        loop {
            if self.store.documents().put(&entry).await? {
                return Ok(true);
            }
            match self.store.documents().get(entry.kind, &entry.id, now).await? {
                Some(_) if !replace => return Ok(false),
                Some(there) => {
                    let changed = DocumentRow { version: there.version, ..entry.clone() };
                    if self.store.documents().change(&changed).await? {
                        return Ok(true);
                    }
                }
                None => drop(self.store.delete_expired(now).await?),
            }
        }
    }
}

/// Runs the slow key derivation on a blocking thread.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, VaultError> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| refused("the copy", VaultError::Hash))?.map_err(invalid_backup)
}

fn invalid_backup(why: VaultError) -> Error {
    let error = Error::new(ErrorKind::Validation, "The backup cannot be decrypted.");
    match why {
        VaultError::Sealed => error.hint("The passphrase is wrong, or the file was modified."),
        _ => Error::new(ErrorKind::Internal, why.to_string()),
    }
}
