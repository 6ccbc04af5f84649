//! HMAC-signed text that a client sends back later. It is readable by anyone but cannot be forged. The signature also
//! covers a context (owner, purpose), so the text is invalid in any other context.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// A secret HMAC-SHA-256 key.
#[derive(Clone)]
pub struct HmacSigner(Hmac<Sha256>);

impl std::fmt::Debug for HmacSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(…)")
    }
}

/// Signature length. Half of the hash, 128 bits, cannot be guessed.
const BYTES: usize = 16;

impl HmacSigner {
    /// Creates a signer. `key` must be random and secret.
    pub fn new(key: [u8; 32]) -> Self {
        Self(Hmac::new_from_slice(&key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length")))
    }

    /// Signs `payload` together with the context `bound`.
    pub fn put(&self, payload: &[u8], bound: &[&[u8]]) -> String {
        let seal = self.mac(payload, bound).finalize().into_bytes();
        format!("{}.{}", URL_SAFE_NO_PAD.encode(payload), URL_SAFE_NO_PAD.encode(&seal[..BYTES]))
    }

    /// Returns the payload if the signature is valid for the same context.
    pub fn open(&self, text: &str, bound: &[&[u8]]) -> Option<Vec<u8>> {
        let (payload, seal) = text.split_once('.')?;
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let seal = URL_SAFE_NO_PAD.decode(seal).ok()?;
        // A shorter signature would be easier to guess.
        let whole = seal.len() == BYTES;
        (whole && self.mac(&payload, bound).verify_truncated_left(&seal).is_ok()).then_some(payload)
    }

    fn mac(&self, payload: &[u8], bound: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for part in std::iter::once(&payload).chain(bound) {
            // Length prefixes keep different lists of parts from signing alike.
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
        let seal = HmacSigner::new([7; 32]);
        let text = seal.put(b"call 5", &[b"owner", b"tools/call"]);
        assert_eq!(seal.open(&text, &[b"owner", b"tools/call"]).as_deref(), Some(&b"call 5"[..]));
        assert_eq!(seal.open(&text, &[b"stranger", b"tools/call"]), None);
        assert_eq!(seal.open(&text, &[b"ownertools", b"/call"]), None);
        assert_eq!(seal.open(&text, &[b"owner"]), None);
        assert_eq!(HmacSigner::new([8; 32]).open(&text, &[b"owner", b"tools/call"]), None);
    }

    #[test]
    fn tampered_and_shortened_texts_do_not_open() {
        let seal = HmacSigner::new([7; 32]);
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
