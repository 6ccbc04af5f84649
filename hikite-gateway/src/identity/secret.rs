//! Random texts that somebody brings back, and what is kept of them: 256 random bits need no salt and no slow hash.

use hikite_core::error::{Error, Kind};
use hikite_core::hex::hex;
use hikite_core::secret::Secret;
use hikite_vault::{Refused, random_bytes};
use sha2::{Digest, Sha256};

const ID_BYTES: usize = 12;

/// A new secret that begins with `prefix`.
pub fn secret(prefix: &str) -> Result<Secret, Error> {
    let bytes: [u8; 32] = random_bytes().map_err(failed)?;
    Ok(Secret::hidden(format!("{prefix}{}", hex(&bytes))))
}

/// What is kept of a secret.
pub fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret))
}

/// A name that nothing else has.
pub(super) fn id(prefix: &str) -> Result<String, Error> {
    let bytes: [u8; ID_BYTES] = random_bytes().map_err(failed)?;
    Ok(format!("{prefix}{}", hex(&bytes)))
}

/// One hash over several texts, each with its length, so that no two lists read the same.
pub(super) fn hash_of(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    hex(&digest.finalize())
}

/// What the vault refuses here is no fault of whoever asks.
pub(super) fn failed(why: Refused) -> Error {
    Error::new(Kind::Internal, format!("the keys of the house cannot be used: {why}"))
}
