//! Text that a client is given to bring back: readable by anybody, made by nobody but us. A seal also covers what
//! it is bound to (whose it is, what it was given for), so that it is worth nothing elsewhere.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// A secret key.
#[derive(Clone)]
pub struct Seal(Hmac<Sha256>);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(…)")
    }
}

/// Half of the hash is as much as anybody needs to guess in vain.
const BYTES: usize = 16;

impl Seal {
    /// `key` is random and kept secret.
    pub fn new(key: [u8; 32]) -> Self {
        Self(Hmac::new_from_slice(&key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length")))
    }

    /// `payload` with a seal that also covers `bound`.
    pub fn put(&self, payload: &[u8], bound: &[&[u8]]) -> String {
        let seal = self.mac(payload, bound).finalize().into_bytes();
        format!("{}.{}", URL_SAFE_NO_PAD.encode(payload), URL_SAFE_NO_PAD.encode(&seal[..BYTES]))
    }

    /// The payload, if the text is ours and was bound to the same.
    pub fn open(&self, text: &str, bound: &[&[u8]]) -> Option<Vec<u8>> {
        let (payload, seal) = text.split_once('.')?;
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let seal = URL_SAFE_NO_PAD.decode(seal).ok()?;
        // A shorter seal would be a seal that is easier to guess.
        let whole = seal.len() == BYTES;
        (whole && self.mac(&payload, bound).verify_truncated_left(&seal).is_ok()).then_some(payload)
    }

    fn mac(&self, payload: &[u8], bound: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for part in std::iter::once(&payload).chain(bound) {
            // With its length, so that no two lists of parts read the same.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_only_with_the_same_key_for_the_same_purpose() {
        let seal = Seal::new([7; 32]);
        let text = seal.put(b"call 5", &[b"owner", b"tools/call"]);
        assert_eq!(seal.open(&text, &[b"owner", b"tools/call"]).as_deref(), Some(&b"call 5"[..]));
        assert_eq!(seal.open(&text, &[b"stranger", b"tools/call"]), None);
        assert_eq!(seal.open(&text, &[b"ownertools", b"/call"]), None);
        assert_eq!(seal.open(&text, &[b"owner"]), None);
        assert_eq!(Seal::new([8; 32]).open(&text, &[b"owner", b"tools/call"]), None);
    }

    #[test]
    fn tampered_and_shortened_texts_do_not_open() {
        let seal = Seal::new([7; 32]);
        let text = seal.put(b"x", &[]);
        for at in 0..text.len() {
            assert_eq!(seal.open(&text[..at], &[]), None, "{at}");
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(seal.open(&String::from_utf8_lossy(&bytes), &[]), None, "{at}");
        }
        assert_eq!(seal.open(&format!("{text}-TAMPERED"), &[]), None);
        assert_eq!(seal.open("", &[]), None);
    }
}
