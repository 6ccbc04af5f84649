//! Random bytes of the operating system.

use crate::seal::Refused;

/// As many as wanted, or a clear word: nothing here goes on with bytes that are not random.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], Refused> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).map_err(|_| Refused::NoRandomness)?;
    Ok(bytes)
}
