//! COSE public keys (RFC 9052 and 9053) of authenticators: ES256, `EdDSA` and RS256, each with one curve or a range of
//! sizes.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};

use super::cbor::{self, CborValue};

const ES256: i64 = -7;
const EDDSA: i64 = -8;
const RS256: i64 = -257;
/// Supported algorithms, in order of preference.
pub(crate) const ALGORITHMS: [i64; 3] = [ES256, EDDSA, RS256];

/// RSA modulus from 2048 to 8192 bits.
const MODULUS: std::ops::RangeInclusive<usize> = 256..=1024;
const EXPONENT: std::ops::RangeInclusive<usize> = 1..=8;

// Labels of a COSE key: key type, algorithm, and parameters whose meaning depends on the key type.
const KEY_TYPE: i64 = 1;
const ALGORITHM: i64 = 3;
const FIRST: i64 = -1;
const SECOND: i64 = -2;
const THIRD: i64 = -3;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CosePublicKey {
    P256([u8; 65]),
    Ed25519([u8; 32]),
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
}

impl CosePublicKey {
    /// Parses a key; `None` if it is malformed or of an unsupported type.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let map = cbor::read_all(bytes)?;
        let number = |label| map.at(label).and_then(CborValue::integer);
        let part = |label| map.at(label).and_then(CborValue::bytes);
        match (number(KEY_TYPE)?, number(ALGORITHM)?) {
            (2, ES256) if number(FIRST)? == 1 => {
                let (x, y) = (part(SECOND)?, part(THIRD)?);
                (x.len() == 32).then_some(())?;
                Some(Self::P256([&[4], x, y].concat().try_into().ok()?))
            }
            (1, EDDSA) if number(FIRST)? == 6 => Some(Self::Ed25519(part(SECOND)?.try_into().ok()?)),
            (3, RS256) => {
                let (modulus, exponent) = (part(FIRST)?, part(SECOND)?);
                let fits = MODULUS.contains(&modulus.len()) && EXPONENT.contains(&exponent.len());
                fits.then(|| Self::Rsa { modulus: modulus.to_vec(), exponent: exponent.to_vec() })
            }
            _ => None,
        }
    }

    pub(crate) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(message, signature).is_ok()
            }
            Self::Ed25519(point) => UnparsedPublicKey::new(&ED25519, point).verify(message, signature).is_ok(),
            Self::Rsa { modulus, exponent } => RsaPublicKeyComponents { n: modulus, e: exponent }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
        }
    }
}
