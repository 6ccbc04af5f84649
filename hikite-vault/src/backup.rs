//! Passphrase-encrypted backups. The key derivation costs are stored in the backup and authenticated with it, so that
//! nobody can lower them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hikite_core::secret::Secret;
use zeroize::Zeroizing;

use crate::password::Password;
use crate::random::random_bytes;
use crate::seal::{Cipher, SealedText, SecretContext, VaultError, secret};

/// Prefix of every backup.
const FORM: &str = "hikite-backup-1";
/// Argon2 memory in KiB, passes and lanes: more than for a login, because a backup can be attacked offline.
const COSTS: [u32; 3] = [65_536, 3, 1];
/// Highest costs that are accepted when a backup is opened.
const COSTS_MAX: [u32; 3] = [1_048_576, 16, 16];
const SALT_BYTES: usize = 16;

/// Encrypts a backup. Slow on purpose, like `open_backup`.
pub fn seal_backup(plain: &Secret, passphrase: &Password) -> Result<String, VaultError> {
    let salt: [u8; SALT_BYTES] = random_bytes()?;
    let head = head(COSTS, &salt);
    let key = Zeroizing::new(passphrase.derive(&salt, COSTS)?);
    let sealed = Cipher::new(&key).seal(place(&head), plain.expose().as_bytes())?;
    Ok(format!("{head}:{}", sealed.text()))
}

pub fn open_backup(text: &str, passphrase: &Password) -> Result<Secret, VaultError> {
    let (head, sealed) = text.trim().rsplit_once(':').ok_or(VaultError::Sealed)?;
    let (costs, salt) = read_head(head).ok_or(VaultError::Sealed)?;
    let key = Zeroizing::new(passphrase.derive(&salt, costs)?);
    secret(&Cipher::new(&key).open(place(head), &SealedText::from_text(sealed))?)
}

fn head([memory, passes, lanes]: [u32; 3], salt: &[u8]) -> String {
    format!("{FORM}:{memory}:{passes}:{lanes}:{}", URL_SAFE_NO_PAD.encode(salt))
}

fn read_head(head: &str) -> Option<([u32; 3], Vec<u8>)> {
    let parts: Vec<&str> = head.split(':').collect();
    let [FORM, memory, passes, lanes, salt] = parts[..] else { return None };
    let costs = [memory.parse().ok()?, passes.parse().ok()?, lanes.parse().ok()?];
    let acceptable = costs.iter().zip(COSTS_MAX).all(|(cost, most)| *cost <= most);
    let salt = URL_SAFE_NO_PAD.decode(salt).ok()?;
    (acceptable && salt.len() >= SALT_BYTES).then_some((costs, salt))
}

fn place(head: &str) -> SecretContext<'_> {
    SecretContext { account: "", provider: "", field: head, version: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_opens_with_its_passphrase_alone() {
        let passphrase = Password::new("correct horse");
        let copy = seal_backup(&Secret::hidden("canary"), &passphrase).expect("sealed");
        assert!(!copy.contains("canary"));
        assert_eq!(open_backup(&format!("{copy}\n"), &passphrase).expect("opened").expose(), "canary");
        assert_eq!(open_backup(&copy, &Password::new("correct horsf")), Err(VaultError::Sealed));
    }

    #[test]
    fn nothing_of_a_copy_can_be_changed() {
        let passphrase = Password::new("correct horse");
        let copy = seal_backup(&Secret::hidden("canary"), &passphrase).expect("sealed");
        for (from, to) in [(":65536:", ":8192:"), (":3:", ":1:"), (":65536:", ":4194304:"), (FORM, "hikite")] {
            let changed = copy.replacen(from, to, 1);
            assert_eq!(open_backup(&changed, &passphrase), Err(VaultError::Sealed), "{to}");
        }
        for cut in ["", "hikite-backup-1", &copy[..copy.len() - 1]] {
            assert_eq!(open_backup(cut, &passphrase), Err(VaultError::Sealed));
        }
    }
}
