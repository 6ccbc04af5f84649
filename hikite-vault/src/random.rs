//! Random bytes from the operating system.

use crate::seal::VaultError;

/// Returns random bytes, or an error: there is no weaker fallback.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], VaultError> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).map_err(|_| VaultError::NoRandomness)?;
    Ok(bytes)
}
