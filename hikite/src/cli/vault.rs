//! `hikite vault`: manages the encrypted secrets in the store and their master key. Secrets are never printed.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use hikite_core::caller::Caller;
use hikite_core::time::rfc3339;
use hikite_gateway::{ACCOUNT_KINDS, record_admin};
use hikite_identity::RotationReason;
use hikite_identity::{Identity, RetiredKey, RotationSummary, SecretStore, VaultFinding};
use hikite_store::Store;
use hikite_vault::{KeyRing, MasterKey, Password};
use serde_json::{Value, json};

use super::store_session::at_terminal;
use super::{GlobalArgs, InvalidSetup, note, print};
use crate::master_key::MasterKeyLocations;
use crate::progress;

/// Minimum length of a passphrase; shorter ones can be brute-forced.
const PASSPHRASE_CHARS: usize = 12;
/// Time after which every process that wrapped a key with the old master key has read the new one.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, Subcommand)]
pub(crate) enum VaultCommand {
    /// Show the location of the key and the number of secrets
    Status(VaultOutputArgs),
    /// Re-encrypt everything with a new key, also while hikite runs; the old key is kept for backups
    Rotate(VaultOutputArgs),
    /// Delete a retired key forever; backups that need it can no longer be restored
    ForgetKey(ForgetKey),
    /// Sign access tokens with a new key; existing tokens stay valid until they expire
    RotateSigningKey(RotateSigningKeyArgs),
    /// Export all secrets to a file protected by a passphrase
    Export(VaultExportArgs),
    /// Import secrets from such a file
    Import(VaultImportArgs),
    /// Decrypt all secrets and report failures
    Check(VaultOutputArgs),
}

#[derive(Debug, Args)]
pub(crate) struct VaultOutputArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetKey {
    /// The id of the key from `hikite vault status`
    #[arg(required_unless_present = "all")]
    key: Option<String>,
    /// All retired keys
    #[arg(long, conflicts_with = "key")]
    all: bool,
    /// Confirm that no needed backup depends on them
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RotateSigningKeyArgs {
    /// Reject tokens signed with the old keys, for example after a leak; clients refresh their tokens
    #[arg(long)]
    lost: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VaultExportArgs {
    /// The file to create; it must not exist yet
    file: PathBuf,
    #[command(flatten)]
    passphrase: PassphraseArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VaultImportArgs {
    /// A file made with `hikite vault export`
    file: PathBuf,
    /// Replace existing secrets
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    passphrase: PassphraseArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where the passphrase is; never among the arguments, where others could read it.
#[derive(Debug, Args)]
struct PassphraseArgs {
    /// A file that holds the passphrase [default: stdin]
    #[arg(long, value_name = "FILE", env = "HIKITE_VAULT_PASSPHRASE_FILE")]
    passphrase_file: Option<PathBuf>,
}

impl VaultCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let config = common.load()?;
        if config.store.is_none() {
            crate::token::make_folder(&config.data)?;
        }
        let store = Store::open_with_backup(&config.store_url(), &config.data).await?;
        let places = MasterKeyLocations::of(&config);
        let session = VaultSession { secret_store: secret_store(&store, &places).await?, places };
        let outcome = match self {
            Self::Status(plain) => session.status(&plain).await,
            Self::Rotate(plain) => session.rotate(&plain, &store).await,
            Self::ForgetKey(forget) => forget.run(&session.secret_store, config.audit.enabled).await,
            Self::RotateSigningKey(signing) => signing.run(session.secret_store, config.audit.enabled).await,
            Self::Export(export) => export.run(&session.secret_store).await,
            Self::Import(import) => import.run(&session.secret_store).await,
            Self::Check(plain) => session.check(&plain).await,
        };
        store.close().await;
        outcome
    }
}

async fn secret_store(store: &Store, places: &MasterKeyLocations) -> Result<SecretStore> {
    Ok(SecretStore::new(store.clone(), places.open(store).await?))
}

struct VaultSession {
    secret_store: SecretStore,
    places: MasterKeyLocations,
}

impl VaultSession {
    async fn status(&self, plain: &VaultOutputArgs) -> Result<ExitCode> {
        let vault_status = self.secret_store.vault_status().await?;
        let place = self.places.to_string();
        let retired = self.secret_store.retired_keys().await?;
        if plain.json {
            let report = json!({
                "key": vault_status.key,
                "place": place,
                "older": vault_status.older,
                "retired": retired.iter().map(shown).collect::<Vec<_>>(),
                "accounts": vault_status.accounts,
                "secrets": vault_status.secrets,
            });
            print(&report.to_string());
            return Ok(ExitCode::SUCCESS);
        }
        print(&format!("key {} in {place}", vault_status.key));
        print(&format!(
            "{} secrets of {} accounts",
            vault_status.secrets,
            vault_status.accounts.values().sum::<usize>()
        ));
        for (key, count) in vault_status.accounts.iter().filter(|(key, _)| **key != vault_status.key) {
            let known = if vault_status.older.contains(key) { "an older key" } else { "a key that is not available" };
            print(&format!("{count} accounts are encrypted with {key}, {known}"));
        }
        for key in &retired {
            let (id, until) = (key.key.id(), rfc3339(key.retired_at));
            print(&format!("key {id} is kept, encrypted with it, for backups made before {until}"));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Writes a new key, re-encrypts everything under it, then retires the old one. At every step the stored keys
    /// open all secrets.
    async fn rotate(&self, plain: &VaultOutputArgs, store: &Store) -> Result<ExitCode> {
        let before = self.places.ring().await?;
        let old = before.current().id().to_owned();
        if !self.places.can_create_key() {
            if before.ids().count() < 2 {
                let message = "The key is stored in a place that hikite cannot write.\nhint: Put the new key there, and set the \
                 old one with `vault.previous_key_file` or `vault.previous_key_command` in every hikite on this \
                 store. Then run this command again.";
                return Err(InvalidSetup(message.into()).into());
            }
            let rotated = self.secret_store.rotate().await?;
            store_older_keys(&self.secret_store).await?;
            return Ok(print_rotation(plain, &rotated, (&old, &self.places.to_string())));
        }
        let fresh = MasterKey::random()?;
        let (new, text) = (fresh.id().to_owned(), fresh.text());
        let both = KeyRing::new(fresh, Vec::new()).and(before);
        self.places.replace(&both).await?;
        let secret_store = SecretStore::new(store.clone(), both);
        let mut rotated = secret_store.rotate().await?;
        progress::with_spinner("waiting for other processes", async {
            tokio::time::sleep(GRACE).await;
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        let again = secret_store.rotate().await?;
        rotated = RotationSummary { rewrapped: rotated.rewrapped + again.rewrapped, left: again.left };
        store_older_keys(&secret_store).await?;
        if rotated.left.is_empty() {
            self.places.replace(&KeyRing::parse(text.expose())?).await?;
        } else {
            note("The old key is kept because it is still in use.");
        }
        Ok(print_rotation(plain, &rotated, (&new, &self.places.to_string())))
    }

    async fn check(&self, plain: &VaultOutputArgs) -> Result<ExitCode> {
        let findings = progress::with_spinner("decrypting all secrets", self.secret_store.check()).await?;
        let vault_status = self.secret_store.vault_status().await?;
        if plain.json {
            print(&json!({ "secrets": vault_status.secrets, "findings": listed(&findings) }).to_string());
        } else if findings.is_empty() {
            print(&format!("All {} secrets can be decrypted.", vault_status.secrets));
        } else {
            tell_findings(&findings);
        }
        Ok(ExitCode::from(u8::from(!findings.is_empty())))
    }
}

/// Stores the older keys encrypted, so that the next backup contains them.
async fn store_older_keys(secret_store: &SecretStore) -> Result<()> {
    if secret_store.retire_older_keys().await? > 0 {
        note(
            "The old key is kept in the store, encrypted with the new one, so that `hikite store restore` can read \
             earlier backups.\nhint: Make a backup now; it contains the old key as well.",
        );
    }
    Ok(())
}

fn shown(retired: &RetiredKey) -> Value {
    json!({ "key": retired.key.id(), "retiredAt": rfc3339(retired.retired_at) })
}

impl ForgetKey {
    async fn run(self, secret_store: &SecretStore, is_audited: bool) -> Result<ExitCode> {
        let kept = secret_store.retired_keys().await?;
        let is_selected = |key: &&RetiredKey| self.all || self.key.as_deref() == Some(key.key.id());
        let selected: Vec<&RetiredKey> = kept.iter().filter(is_selected).collect();
        if let (Some(key), true) = (&self.key, selected.is_empty()) {
            bail!("There is no retired key `{key}`.\nhint: Run `hikite vault status` to see the retired keys.");
        }
        if !self.yes && !selected.is_empty() {
            let ids: Vec<&str> = selected.iter().map(|key| key.key.id()).collect();
            let message = format!(
                "Without the key {} the secrets in backups that need it are lost forever.\nhint: `hikite store \
                 check FILE` shows which key a backup needs. Use `--yes` if none is needed.",
                ids.join(", ")
            );
            return Err(InvalidSetup(message).into());
        }
        for key in &selected {
            let work = secret_store.delete_retired_key(key.key.id());
            if is_audited {
                let origin = at_terminal("hikite vault");
                let by = (&Caller::owner(), &origin);
                record_admin(secret_store.store(), by, "vault.forget-key", key.key.id(), work).await?;
            } else {
                work.await?;
            }
        }
        if self.json {
            print(&json!({ "forgotten": selected.iter().map(|key| shown(key)).collect::<Vec<_>>() }).to_string());
        } else {
            print(&format!("{} retired keys are removed.", selected.len()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl RotateSigningKeyArgs {
    async fn run(self, secret_store: SecretStore, is_audited: bool) -> Result<ExitCode> {
        let store = secret_store.store().clone();
        let identity = Identity::new(Arc::new(secret_store));
        let why = if self.lost { RotationReason::Compromised } else { RotationReason::Requested };
        let work = identity.keys().rotate(why);
        let kid = if is_audited {
            let origin = at_terminal("hikite vault");
            record_admin(&store, (&Caller::owner(), &origin), "signing-key.rotate", "", work).await?
        } else {
            work.await?
        };
        print(&if self.json { json!({ "key": kid }).to_string() } else { format!("key {kid} signs from now on") });
        Ok(ExitCode::SUCCESS)
    }
}

impl VaultExportArgs {
    async fn run(self, secret_store: &SecretStore) -> Result<ExitCode> {
        let passphrase = self.passphrase.read()?;
        let copy =
            progress::with_spinner("encrypting the backup", secret_store.export(passphrase, &ACCOUNT_KINDS)).await?;
        let mut options = std::fs::OpenOptions::new();
        let shown = self.file.display();
        let file = options.write(true).create_new(true).mode(0o600).open(&self.file);
        let mut file =
            file.with_context(|| format!("cannot create `{shown}`\nhint: Choose a file that does not exist yet."))?;
        std::io::Write::write_all(&mut file, format!("{copy}\n").as_bytes())
            .and_then(|()| file.sync_all())
            .with_context(|| format!("cannot write `{shown}`"))?;
        let secrets = secret_store.vault_status().await?.secrets;
        if self.json {
            print(&json!({ "file": self.file, "secrets": secrets }).to_string());
        } else {
            print(&format!("{shown}: {secrets} secrets; only its passphrase decrypts it"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl VaultImportArgs {
    async fn run(self, secret_store: &SecretStore) -> Result<ExitCode> {
        let copy =
            std::fs::read_to_string(&self.file).with_context(|| format!("cannot read `{}`", self.file.display()))?;
        let passphrase = self.passphrase.read()?;
        let work = secret_store.import(copy, passphrase, (&ACCOUNT_KINDS, self.replace));
        let restored = progress::with_spinner("decrypting the backup", work).await?;
        if self.json {
            let report = json!({ "secrets": restored.secrets, "forms": restored.forms, "kept": restored.kept });
            print(&report.to_string());
        } else {
            print(&format!(
                "{} secrets are restored; {} were already there and are unchanged",
                restored.secrets, restored.kept
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl PassphraseArgs {
    fn read(&self) -> Result<Password> {
        let mut text = String::new();
        match &self.passphrase_file {
            Some(file) => {
                text = std::fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
            }
            None => {
                note("Enter the passphrase on one line:");
                std::io::stdin().take(4096).read_to_string(&mut text).context("cannot read stdin")?;
            }
        }
        let passphrase = Password::new(text.lines().next().unwrap_or_default());
        if passphrase.chars() < PASSPHRASE_CHARS {
            bail!("The passphrase is too short.\nhint: Use at least {PASSPHRASE_CHARS} characters.");
        }
        Ok(passphrase)
    }
}

fn print_rotation(plain: &VaultOutputArgs, rotated: &RotationSummary, (key, place): (&str, &str)) -> ExitCode {
    if plain.json {
        let report = json!({ "key": key, "rewrapped": rotated.rewrapped, "left": listed(&rotated.left) });
        print(&report.to_string());
    } else {
        print(&format!("key {key} in {place}: {} accounts are now encrypted with it", rotated.rewrapped));
        tell_findings(&rotated.left);
    }
    ExitCode::from(u8::from(!rotated.left.is_empty()))
}

fn tell_findings(findings: &[VaultFinding]) {
    for finding in findings {
        print(&format!("{}: {}", finding.record, finding.reason));
    }
}

fn listed(findings: &[VaultFinding]) -> Vec<Value> {
    findings.iter().map(|finding| json!({ "record": finding.record, "reason": finding.reason })).collect()
}
