//! Random secrets and their hashes: 256 random bits need neither a salt nor a slow hash.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::hex::hex;
use hikite_core::secret::Secret;
use hikite_vault::{VaultError, random_bytes};
use sha2::{Digest, Sha256};

const ID_BYTES: usize = 12;

/// Generates a secret with a prefix.
pub fn secret(prefix: &str) -> Result<Secret, Error> {
    let bytes: [u8; 32] = random_bytes().map_err(failed)?;
    Ok(Secret::hidden(format!("{prefix}{}", hex(&bytes))))
}

/// Returns the hash of a secret, for storage.
pub fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret))
}

/// Generates a unique id.
pub(super) fn id(prefix: &str) -> Result<String, Error> {
    let bytes: [u8; ID_BYTES] = random_bytes().map_err(failed)?;
    Ok(format!("{prefix}{}", hex(&bytes)))
}

/// Hashes several texts with their lengths, so that different lists never collide.
pub(super) fn hash_of(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    hex(&digest.finalize())
}

/// Converts a vault failure, which is never the caller's fault, to an internal error.
pub(super) fn failed(why: VaultError) -> Error {
    Error::new(ErrorKind::Internal, format!("The server's keys cannot be used: {why}."))
}
