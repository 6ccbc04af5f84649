//! Authenticated encryption of one secret: AES-256-GCM with a random nonce. The ciphertext is bound to its context;
//! moving it elsewhere, replaying an older version, or changing a bit makes it undecryptable.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hikite_core::secret::Secret;
use zeroize::Zeroizing;

use crate::random::random_bytes;

/// Format version that every ciphertext begins with.
const FORM: &str = "v1.";

/// Context that a secret is bound to: its account, provider, field and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretContext<'a> {
    pub account: &'a str,
    pub provider: &'a str,
    pub field: &'a str,
    pub version: u64,
}

/// An encrypted secret, safe to store anywhere.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedText(String);

impl SealedText {
    /// Wraps a stored ciphertext.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SealedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed(…)")
    }
}

/// Reason why a secret, token or password operation failed. Reveals nothing about the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("it was modified, moved or replaced by an older version, or the key is wrong")]
    Sealed,
    #[error("it is not a key: use 64 hexadecimal digits, or 32 bytes in base64")]
    NoKey,
    #[error("it was encrypted with a key that is not available")]
    UnknownKey,
    #[error("the operating system returned no random bytes")]
    NoRandomness,
    #[error("the token is not signed with an accepted key")]
    Signature,
    #[error("the password cannot be hashed")]
    Hash,
}

/// AES-256-GCM with its key set up.
pub(crate) struct Cipher(LessSafeKey);

impl Cipher {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, key);
        Self(LessSafeKey::new(key.unwrap_or_else(|_| unreachable!("32 bytes are a key"))))
    }

    pub(crate) fn seal(&self, place: SecretContext<'_>, plain: &[u8]) -> Result<SealedText, VaultError> {
        let nonce: [u8; NONCE_LEN] = random_bytes()?;
        let mut bytes = Zeroizing::new(plain.to_vec());
        let sealed =
            self.0.seal_in_place_append_tag(Nonce::from(&nonce), Aad::from(place.associated_data()), &mut *bytes);
        sealed.map_err(|_| VaultError::Sealed)?;
        let whole = [&nonce[..], &bytes[..]].concat();
        Ok(SealedText(format!("{FORM}{}", URL_SAFE_NO_PAD.encode(whole))))
    }

    pub(crate) fn open(&self, place: SecretContext<'_>, sealed: &SealedText) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let text = sealed.0.strip_prefix(FORM).ok_or(VaultError::Sealed)?;
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| VaultError::Sealed)?;
        let (nonce, rest) = bytes.split_first_chunk::<NONCE_LEN>().ok_or(VaultError::Sealed)?;
        let mut rest = Zeroizing::new(rest.to_vec());
        let opened = self.0.open_in_place(Nonce::from(nonce), Aad::from(place.associated_data()), &mut rest);
        let length = opened.map_err(|_| VaultError::Sealed)?.len();
        rest.truncate(length);
        Ok(rest)
    }
}

impl SecretContext<'_> {
    /// Encodes the context as associated data; length prefixes keep different contexts from encoding alike.
    fn associated_data(&self) -> Vec<u8> {
        let mut associated_data = Vec::new();
        for part in [self.account.as_bytes(), self.provider.as_bytes(), self.field.as_bytes()] {
            associated_data.extend((part.len() as u64).to_be_bytes());
            associated_data.extend(part);
        }
        associated_data.extend(self.version.to_be_bytes());
        associated_data
    }
}

/// Converts a decrypted value to a `Secret`; every encrypted value is UTF-8.
pub(crate) fn secret(bytes: &[u8]) -> Result<Secret, VaultError> {
    std::str::from_utf8(bytes).map(Secret::hidden).map_err(|_| VaultError::Sealed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLACE: SecretContext<'_> =
        SecretContext { account: "work", provider: "notion", field: "refresh", version: 3 };

    fn cipher(byte: u8) -> Cipher {
        Cipher::new(&[byte; 32])
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_as_it_was(plain: Vec<u8>, account: String, version: u64) {
            let place = SecretContext { account: &account, version, ..PLACE };
            let sealed = cipher(1).seal(place, &plain).expect("sealed");
            prop_assert_eq!(&*cipher(1).open(place, &sealed).expect("opened"), &plain);
            prop_assert!(cipher(2).open(place, &sealed).is_err(), "another key");
        }
    }

    #[test]
    fn no_bit_can_be_changed() {
        let sealed = cipher(1).seal(PLACE, b"a refresh token").expect("sealed");
        let bytes = URL_SAFE_NO_PAD.decode(&sealed.0[FORM.len()..]).expect("base64");
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let changed = SealedText(format!("{FORM}{}", URL_SAFE_NO_PAD.encode(changed)));
            assert_eq!(cipher(1).open(PLACE, &changed), Err(VaultError::Sealed), "bit {bit}");
        }
        for at in 0..sealed.0.len() {
            let cut = SealedText::from_text(&sealed.0[..at]);
            assert_eq!(cipher(1).open(PLACE, &cut), Err(VaultError::Sealed), "cut at {at}");
        }
    }

    #[test]
    fn it_is_good_for_its_place_alone() {
        let sealed = cipher(1).seal(PLACE, b"x").expect("sealed");
        for other in [
            SecretContext { account: "home", ..PLACE },
            SecretContext { provider: "github", ..PLACE },
            SecretContext { field: "access", ..PLACE },
            SecretContext { version: 2, ..PLACE },
            SecretContext { version: 4, ..PLACE },
            SecretContext { account: "workn", provider: "otion", ..PLACE },
        ] {
            assert_eq!(cipher(1).open(other, &sealed), Err(VaultError::Sealed), "{other:?}");
        }
        assert!(cipher(1).open(PLACE, &sealed).is_ok());
    }

    #[test]
    fn the_same_is_never_sealed_the_same_and_nothing_shows() {
        let (one, two) = (cipher(1).seal(PLACE, b"x").expect("one"), cipher(1).seal(PLACE, b"x").expect("two"));
        assert_ne!(one, two);
        assert_eq!(format!("{one:?}"), "Sealed(…)");
    }
}
