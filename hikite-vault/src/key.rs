//! Key hierarchy: a master key held outside the store, one data key per account wrapped by the master key, and secrets
//! encrypted with the data key. Rotating the master key rewraps the data keys; secrets are not touched.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hikite_core::hex::hex;
use hikite_core::secret::Secret;
use zeroize::Zeroizing;

use crate::random::random_bytes;
use crate::seal::{Cipher, SealedText, SecretContext, VaultError, secret};

/// Field name in the context of wrapped data keys.
const DATA_KEY: &str = "data-key";
const ID_BYTES: usize = 8;

/// Master key, the root of the key hierarchy. Never written to the store.
pub struct MasterKey {
    bytes: Zeroizing<[u8; 32]>,
    id: String,
}

impl MasterKey {
    pub fn random() -> Result<Self, VaultError> {
        Ok(Self::of(random_bytes()?))
    }

    /// Parses 64 hexadecimal digits, or 32 bytes in base64.
    pub fn parse(text: &str) -> Result<Self, VaultError> {
        let text = text.trim();
        let bytes = if text.len() == 64 { decode_hex(text) } else { BASE64_STANDARD.decode(text).ok() };
        let bytes = Zeroizing::new(bytes.ok_or(VaultError::NoKey)?);
        let bytes: [u8; 32] = bytes.as_slice().try_into().map_err(|_| VaultError::NoKey)?;
        Ok(Self::of(bytes))
    }

    fn of(bytes: [u8; 32]) -> Self {
        let mut key = Self { bytes: Zeroizing::new(bytes), id: String::new() };
        key.id = hex(&key.derive("id")[..ID_BYTES]);
        key
    }

    /// Returns an id that reveals nothing about the key.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the key in hex, as administrators store it.
    pub fn text(&self) -> Secret {
        Secret::hidden(hex(&*self.bytes))
    }

    /// Derives a key for another purpose (HKDF); it does not reveal this one.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let salt = Salt::new(HKDF_SHA256, b"hikite");
        let mut key = [0_u8; 32];
        let made = salt.extract(&*self.bytes).expand(&[purpose.as_bytes()], KeyLength).map(|out| out.fill(&mut key));
        match made {
            Ok(Ok(())) => key,
            _ => unreachable!("32 bytes are not too many"),
        }
    }

    fn cipher(&self) -> Cipher {
        Cipher::new(&self.derive("wrap"))
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.id)
    }
}

#[derive(Clone, Copy)]
struct KeyLength;

impl KeyType for KeyLength {
    fn len(&self) -> usize {
        32
    }
}

/// Master keys in use: the first encrypts, the others only decrypt until they are rotated out.
#[derive(Debug)]
pub struct KeyRing {
    keys: Vec<MasterKey>,
}

/// A wrapped data key, and the id of its master key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedKey {
    pub key_id: String,
    pub sealed: SealedText,
}

impl KeyRing {
    pub fn new(current: MasterKey, older: Vec<MasterKey>) -> Self {
        Self { keys: std::iter::once(current).chain(older).collect() }
    }

    /// Parses one or several keys separated by whitespace; the first encrypts.
    pub fn parse(text: &str) -> Result<Self, VaultError> {
        let mut keys: Vec<MasterKey> = Vec::new();
        for word in text.split_whitespace() {
            let key = MasterKey::parse(word)?;
            if !keys.iter().any(|known| known.id == key.id) {
                keys.push(key);
            }
        }
        if keys.is_empty() { Err(VaultError::NoKey) } else { Ok(Self { keys }) }
    }

    /// Appends the keys of another key ring.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for key in other.keys {
            if !self.keys.iter().any(|known| known.id == key.id) {
                self.keys.push(key);
            }
        }
        self
    }

    pub fn current(&self) -> &MasterKey {
        &self.keys[0]
    }

    /// Returns the keys that only decrypt.
    pub fn older(&self) -> &[MasterKey] {
        &self.keys[1..]
    }

    /// Returns the ids of all keys, the current one first.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(MasterKey::id)
    }

    /// Returns all keys in hex, one per line, as administrators store them.
    pub fn text(&self) -> Secret {
        Secret::hidden(self.keys.iter().map(|key| hex(&*key.bytes)).collect::<Vec<_>>().join("\n"))
    }

    /// Wraps the data key of an account with the current master key.
    pub fn wrap(&self, account: &str, key: &DataKey) -> Result<WrappedKey, VaultError> {
        let sealed = self.current().cipher().seal(wrapping(account), &*key.bytes)?;
        Ok(WrappedKey { key_id: self.current().id.clone(), sealed })
    }

    pub fn unwrap(&self, account: &str, wrapped: &WrappedKey) -> Result<DataKey, VaultError> {
        let key = self.keys.iter().find(|key| key.id == wrapped.key_id).ok_or(VaultError::UnknownKey)?;
        let opened = key.cipher().open(wrapping(account), &wrapped.sealed)?;
        let bytes: [u8; 32] = opened.as_slice().try_into().map_err(|_| VaultError::Sealed)?;
        Ok(DataKey::of(bytes))
    }
}

fn wrapping(account: &str) -> SecretContext<'_> {
    SecretContext { account, provider: "", field: DATA_KEY, version: 0 }
}

/// Data key that encrypts the secrets of one account.
pub struct DataKey {
    bytes: Zeroizing<[u8; 32]>,
    cipher: Cipher,
}

impl DataKey {
    pub fn random() -> Result<Self, VaultError> {
        Ok(Self::of(random_bytes()?))
    }

    fn of(bytes: [u8; 32]) -> Self {
        Self { cipher: Cipher::new(&bytes), bytes: Zeroizing::new(bytes) }
    }

    /// Compares two keys in constant time.
    pub fn equals(&self, other: &Self) -> bool {
        verify_slices_are_equal(&*self.bytes, &*other.bytes).is_ok()
    }

    pub fn seal(&self, place: SecretContext<'_>, plain: &Secret) -> Result<SealedText, VaultError> {
        self.cipher.seal(place, plain.expose().as_bytes())
    }

    pub fn open(&self, place: SecretContext<'_>, sealed: &SealedText) -> Result<Secret, VaultError> {
        secret(&self.cipher.open(place, sealed)?)
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey(…)")
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: SecretContext<'_> = SecretContext { account: "work", provider: "notion", field: "token", version: 1 };

    #[test]
    fn a_master_key_is_read_as_it_was_written() {
        let key = MasterKey::random().expect("random");
        let again = MasterKey::parse(&format!(" {}\n", key.text().expose())).expect("a key");
        assert_eq!((again.id(), again.derive("x")), (key.id(), key.derive("x")));
        assert_ne!(key.derive("x"), key.derive("y"));
        let base64 = MasterKey::parse("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").expect("a key");
        assert_eq!(base64.text().expose(), "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
        for wrong in ["", "00", &"zz".repeat(32), &"é".repeat(32), "AAEC"] {
            assert_eq!(MasterKey::parse(wrong).map(|_| ()), Err(VaultError::NoKey), "{wrong}");
        }
    }

    #[test]
    fn a_ring_opens_what_its_keys_wrapped_and_nothing_else() {
        let [old, new] = [1, 2].map(|_| MasterKey::random().expect("random"));
        let kept = old.text();
        let before = KeyRing::new(old, Vec::new());
        let data = DataKey::random().expect("random");
        let wrapped = before.wrap("work", &data).expect("wrapped");
        let sealed = data.seal(PLACE, &Secret::hidden("canary")).expect("sealed");
        let stranger = KeyRing::new(MasterKey::random().expect("random"), Vec::new());
        assert_eq!(stranger.unwrap("work", &wrapped).map(|_| ()), Err(VaultError::UnknownKey));
        assert_eq!(before.unwrap("home", &wrapped).map(|_| ()), Err(VaultError::Sealed), "another account");
        let both = KeyRing::new(new, vec![MasterKey::parse(kept.expose()).expect("a key")]);
        let opened = both.unwrap("work", &wrapped).expect("opened");
        let again = both.wrap("work", &opened).expect("wrapped again");
        assert_eq!(again.key_id, both.current().id());
        let opened = both.unwrap("work", &again).expect("opened");
        assert_eq!(opened.open(PLACE, &sealed).expect("the secret").expose(), "canary");
    }

    #[test]
    fn a_ring_is_read_as_it_was_written() {
        let [new, old, older] = [1, 2, 3].map(|_| MasterKey::random().expect("random"));
        let ids = [&new, &old, &older].map(|key| key.id().to_owned());
        let text = format!("{}\n{}\n", new.text().expose(), old.text().expose());
        let ring = KeyRing::parse(&text).expect("two keys");
        assert_eq!(ring.text().expose(), text.trim());
        let ring = ring.and(KeyRing::new(old, vec![older]));
        assert_eq!(ring.ids().collect::<Vec<_>>(), ids);
        for wrong in ["", " \n", "key", &format!("{text} key")] {
            assert_eq!(KeyRing::parse(wrong).map(|_| ()), Err(VaultError::NoKey));
        }
    }

    #[test]
    fn keys_do_not_show_themselves() {
        let key = MasterKey::random().expect("random");
        let shown = format!("{key:?} {:?} {:?}", key.text(), DataKey::random().expect("random"));
        assert!(!shown.contains(key.text().expose()), "{shown}");
    }
}
