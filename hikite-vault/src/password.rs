//! Passwords, hashed with argon2id, slowly on purpose. Callers must limit concurrency and run this off the async worker
//! threads.

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hikite_core::secret::Secret;

use crate::random::random_bytes;
use crate::seal::VaultError;

/// Argon2 memory in KiB, passes and lanes: OWASP's first recommendation for argon2id.
const MEMORY: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// A password as typed.
#[derive(Clone, Debug)]
pub struct Password(Secret);

impl Password {
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(Secret::hidden(text))
    }

    pub fn chars(&self) -> usize {
        self.0.expose().chars().count()
    }

    pub fn hash(&self) -> Result<PasswordHash, VaultError> {
        let salt: [u8; SALT_BYTES] = random_bytes()?;
        let hash = self.derive(&salt, [MEMORY, PASSES, LANES])?;
        let encode = |bytes: &[u8]| STANDARD_NO_PAD.encode(bytes);
        let (salt, hash) = (encode(&salt), encode(&hash));
        Ok(PasswordHash(format!("$argon2id$v=19$m={MEMORY},t={PASSES},p={LANES}${salt}${hash}")))
    }

    /// Returns `true` if the password matches the hash. Takes the same time either way.
    pub fn matches(&self, kept: &PasswordHash) -> bool {
        let Some((costs, salt, hash)) = kept.parts() else { return false };
        let made = self.derive(&salt, costs);
        made.is_ok_and(|made| verify_slices_are_equal(&made, &hash).is_ok())
    }

    pub(crate) fn derive(
        &self,
        salt: &[u8],
        [memory, passes, lanes]: [u32; 3],
    ) -> Result<[u8; HASH_BYTES], VaultError> {
        let costs = Params::new(memory, passes, lanes, Some(HASH_BYTES)).map_err(|_| VaultError::Hash)?;
        let mut hash = [0_u8; HASH_BYTES];
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, costs);
        argon.hash_password_into(self.0.expose().as_bytes(), salt, &mut hash).map_err(|_| VaultError::Hash)?;
        Ok(hash)
    }
}

/// A password hash in PHC string format.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns a hash that no password matches. Checking it for unknown users keeps the response time the same.
    pub fn unmatchable() -> Self {
        let (salt, hash) = ("A".repeat(22), "A".repeat(43));
        Self(format!("$argon2id$v=19$m={MEMORY},t={PASSES},p={LANES}${salt}${hash}"))
    }

    fn parts(&self) -> Option<([u32; 3], Vec<u8>, Vec<u8>)> {
        let rest = self.0.strip_prefix("$argon2id$v=19$")?;
        let mut parts = rest.split('$');
        let (costs, salt, hash) = (parts.next()?, parts.next()?, parts.next()?);
        let mut costs = costs.split(',');
        let mut cost = |name: &str| costs.next()?.strip_prefix(name)?.parse().ok();
        let costs = [cost("m=")?, cost("t=")?, cost("p=")?];
        let decode = |text: &str| STANDARD_NO_PAD.decode(text).ok();
        Some((costs, decode(salt)?, decode(hash)?))
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_password_alone_is_right() {
        let right = Password::new("正しい馬 battery");
        let kept = right.hash().expect("hashed");
        assert!(right.matches(&kept) && right.matches(&PasswordHash::from_text(kept.text())));
        assert_ne!(kept, right.hash().expect("hashed"), "salted");
        for wrong in ["", "正しい馬 batterY", "正しい馬 battery "] {
            assert!(!Password::new(wrong).matches(&kept), "{wrong}");
            assert!(!Password::new(wrong).matches(&PasswordHash::unmatchable()));
        }
        assert!(!right.matches(&PasswordHash::from_text("$argon2id$v=19$m=1$x$y")));
        assert_eq!(format!("{right:?} {kept:?}"), "Password(\"***\") PasswordHash(…)");
    }

    #[test]
    fn a_hash_made_elsewhere_is_known_again() {
        // Made with the reference program: `echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1`.
        let kept = PasswordHash::from_text(
            "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
        );
        assert!(Password::new("password").matches(&kept));
    }
}
