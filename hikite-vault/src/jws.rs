//! Signed tokens (JWS). hikite signs with ES256 only; it verifies ES256, `EdDSA` and RSA tokens of other issuers, each
//! only with a key of that type: the token's `alg` never overrides the key.
//!
//! An ECDSA signature `(r, s)` has a twin `(r, n - s)` that also verifies. Our own tokens use the lower `s`, and only
//! that one is accepted for them, so that each token has one spelling; other issuers may use either (RFC 7518).
//!
//! The table of algorithms is ours, on top of `aws-lc-rs`: `jsonwebtoken` makes a secret of an `oct` key, ignores the
//! curve of a key and the `crit` of a header, so all checks would stay here and only that table would go.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair, KeyPair,
    RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hikite_core::secret::Secret;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::seal::VaultError;

mod low_s;

/// Longest token, in bytes.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Most keys read from a key set.
const KEYS_MAX: usize = 100;
/// Shortest RSA modulus: 2048 bits.
const RSA_BYTES_MIN: usize = 256;

/// A private signing key with its key id.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    kid: String,
    pkcs8: Secret,
}

impl SigningKey {
    pub fn random() -> Result<Self, VaultError> {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let made = made.map_err(|_| VaultError::NoRandomness)?;
        Self::parse(&Secret::hidden(URL_SAFE_NO_PAD.encode(made.as_ref())))
    }

    /// Parses a key as returned by `secret`.
    pub fn parse(stored: &Secret) -> Result<Self, VaultError> {
        let bytes = URL_SAFE_NO_PAD.decode(stored.expose()).map_err(|_| VaultError::NoKey)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &bytes);
        let pair = pair.map_err(|_| VaultError::NoKey)?;
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, pair.public_key().as_ref());
        let kid = URL_SAFE_NO_PAD.encode(&digest.as_ref()[..12]);
        Ok(Self { pair, kid, pkcs8: stored.clone() })
    }

    /// Parses a PKCS #8 key in PEM, as other programs write it.
    pub fn from_pem(pem: &Secret) -> Result<Self, VaultError> {
        let inner = pem.expose().trim().strip_prefix("-----BEGIN PRIVATE KEY-----");
        let inner = inner.and_then(|rest| rest.strip_suffix("-----END PRIVATE KEY-----"));
        let text: String = inner.ok_or(VaultError::NoKey)?.split_ascii_whitespace().collect();
        let bytes = STANDARD.decode(text).map_err(|_| VaultError::NoKey)?;
        Self::parse(&Secret::hidden(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns the private key, to be stored in the vault.
    pub fn secret(&self) -> &Secret {
        &self.pkcs8
    }

    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Signs a token. `typ` states its purpose, such as `at+jwt` for access tokens.
    pub fn sign(&self, typ: &str, claims: &Value) -> Result<String, VaultError> {
        let header = json!({ "alg": "ES256", "typ": typ, "kid": self.kid });
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let input = format!("{}.{}", encode(&header), encode(claims));
        let signed = self.pair.sign(&SystemRandom::new(), input.as_bytes());
        let mut signed = signed.map_err(|_| VaultError::Signature)?.as_ref().to_vec();
        if !low_s::is_low(&signed) {
            low_s::flip(&mut signed);
        }
        Ok(format!("{input}.{}", URL_SAFE_NO_PAD.encode(signed)))
    }

    /// Returns the public key as a JWK.
    pub fn jwk(&self) -> Value {
        // An uncompressed point: one byte, then both coordinates.
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({ "kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y), "use": "sig", "alg": "ES256", "kid": self.kid })
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.kid)
    }
}

/// Public keys of one issuer.
#[derive(Clone, Debug, Default)]
pub struct Jwks {
    keys: Vec<Jwk>,
}

/// A public key that verifies signatures.
#[derive(Clone, Debug)]
pub struct Jwk {
    kid: Option<String>,
    alg: Option<String>,
    kind: JwkMaterial,
}

#[derive(Clone, Debug)]
enum JwkMaterial {
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
}

#[derive(Deserialize)]
struct JwkDocument {
    kty: String,
    #[serde(default)]
    crv: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

impl Jwks {
    /// Reads `{"keys": […]}`. Skips keys that are not for signatures or of an unsupported type.
    pub fn read(document: &Value) -> Self {
        let keys = document["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
        Self { keys: keys.iter().take(KEYS_MAX).filter_map(Jwk::read).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns `true` if a key has this id.
    pub fn has(&self, kid: &str) -> bool {
        self.keys.iter().any(|key| key.kid.as_deref() == Some(kid))
    }

    /// Returns the claims if one of the keys signed the token. Audience and expiry are not checked.
    pub fn verify(&self, token: &UnverifiedToken<'_>) -> Result<Value, VaultError> {
        let fits = |key: &&Jwk| match (&token.kid, &key.kid) {
            (Some(wanted), Some(kid)) => wanted == kid,
            (Some(_), None) | (None, _) => true,
        };
        let signed = self.keys.iter().filter(fits).any(|key| key.signed(token));
        if signed { Ok(token.claims.clone()) } else { Err(VaultError::Signature) }
    }
}

impl Jwks {
    /// Verifies a token that hikite issued itself: only the signature with the lower `s` is accepted.
    pub fn verify_own(&self, token: &UnverifiedToken<'_>) -> Result<Value, VaultError> {
        if low_s::is_low(&token.signature) { self.verify(token) } else { Err(VaultError::Signature) }
    }
}

impl Jwk {
    fn read(value: &Value) -> Option<Self> {
        let JwkDocument { kty, crv, kid, alg, usage, x, y, n, e } = JwkDocument::deserialize(value).ok()?;
        if usage.is_some_and(|usage| usage != "sig") {
            return None;
        }
        let decode = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?).ok();
        let kind = match (kty.as_str(), crv.as_str()) {
            ("EC", "P-256") => {
                let (x, y) = (decode(x)?, decode(y)?);
                (x.len() == 32 && y.len() == 32).then(|| JwkMaterial::P256([&[4], &x[..], &y[..]].concat()))?
            }
            ("OKP", "Ed25519") => JwkMaterial::Ed25519(decode(x)?),
            ("RSA", _) => {
                let (modulus, exponent) = (decode(n)?, decode(e)?);
                (modulus.len() >= RSA_BYTES_MIN).then_some(JwkMaterial::Rsa { modulus, exponent })?
            }
            _ => return None,
        };
        Some(Self { kid, alg, kind })
    }

    fn signed(&self, token: &UnverifiedToken<'_>) -> bool {
        if self.alg.as_ref().is_some_and(|alg| *alg != token.alg) {
            return false;
        }
        let (message, signature) = (token.signed.as_bytes(), token.signature.as_slice());
        let plain = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
        };
        match (&self.kind, token.alg.as_str()) {
            (JwkMaterial::P256(key), "ES256") => plain(&ECDSA_P256_SHA256_FIXED, key),
            (JwkMaterial::Ed25519(key), "EdDSA") => plain(&ED25519, key),
            (JwkMaterial::Rsa { modulus, exponent }, alg) => {
                let algorithm = match alg {
                    "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
                    "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
                    "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
                    "PS256" => &signature::RSA_PSS_2048_8192_SHA256,
                    "PS384" => &signature::RSA_PSS_2048_8192_SHA384,
                    "PS512" => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => return false,
                };
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(algorithm, message, signature).is_ok()
            }
            _ => false,
        }
    }
}

/// A parsed token whose signature has not been verified.
#[derive(Clone)]
pub struct UnverifiedToken<'a> {
    pub alg: String,
    pub kid: Option<String>,
    /// Lower case, without `application/`.
    pub typ: Option<String>,
    /// Used before verification only to find the issuer's keys.
    claims: Value,
    signed: &'a str,
    signature: Vec<u8>,
}

impl fmt::Debug for UnverifiedToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnverifiedToken").field("alg", &self.alg).field("kid", &self.kid).finish_non_exhaustive()
    }
}

impl<'a> UnverifiedToken<'a> {
    /// Parses a token; `None` if it is no JWS or has a `crit` or `b64` header parameter.
    pub fn read(token: &'a str) -> Option<Self> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
        let parse = |text: &str| serde_json::from_slice::<Value>(&decode(text)?).ok();
        let (header, claims) = (parse(header)?, parse(claims)?);
        if !claims.is_object() || header.get("crit").is_some() || header.get("b64").is_some() {
            return None;
        }
        let text = |member: &str| header[member].as_str().map(str::to_owned);
        let typ = text("typ").map(|typ| typ.to_ascii_lowercase().trim_start_matches("application/").to_owned());
        Some(Self { alg: text("alg")?, kid: text("kid"), typ, claims, signed, signature: decode(signature)? })
    }

    /// Returns the claimed issuer.
    pub fn issuer(&self) -> Option<&str> {
        self.claims["iss"].as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(key: &SigningKey) -> Jwks {
        Jwks::read(&json!({ "keys": [key.jwk()] }))
    }

    #[track_caller]
    fn refused(keys: &Jwks, token: &str) {
        let read = UnverifiedToken::read(token);
        assert!(read.is_none_or(|token| keys.verify(&token) == Err(VaultError::Signature)), "{token}");
    }

    #[test]
    fn what_we_sign_is_known_by_our_public_half_alone() {
        let key = SigningKey::random().expect("random");
        let claims = json!({ "iss": "https://h.example", "sub": "owner" });
        let token = key.sign("at+jwt", &claims).expect("signed");
        let read = UnverifiedToken::read(&token).expect("a token");
        assert_eq!((read.issuer(), read.typ.as_deref()), (Some("https://h.example"), Some("at+jwt")));
        let again = SigningKey::parse(key.secret()).expect("a key");
        assert_eq!(keys(&again).verify(&read), Ok(claims));
        refused(&keys(&SigningKey::random().expect("random")), &token);
        assert!(key.jwk().get("d").is_none() && !format!("{key:?}").contains(key.secret().expose()));
    }

    #[test]
    fn no_other_algorithm_passes_for_a_key() {
        let key = SigningKey::random().expect("random");
        let keys = keys(&key);
        let token = key.sign("at+jwt", &json!({ "sub": "owner" })).expect("signed");
        let parts: Vec<&str> = token.split('.').collect();
        for alg in ["none", "None", "HS256", "RS256", "ES384", "EdDSA", ""] {
            let header = URL_SAFE_NO_PAD.encode(json!({ "alg": alg, "kid": key.kid() }).to_string());
            refused(&keys, &format!("{header}.{}.{}", parts[1], parts[2]));
            refused(&keys, &format!("{header}.{}.", parts[1]));
        }
        let other = URL_SAFE_NO_PAD.encode(json!({ "sub": "mallory" }).to_string());
        refused(&keys, &format!("{}.{other}.{}", parts[0], parts[2]));
        for wrong in ["", "a.b", "a.b.c", "..", &token[..token.len() - 2]] {
            refused(&keys, wrong);
        }
        for wrong in [format!("{token}."), format!("{token}.x"), format!("{token}="), format!(" {token}")] {
            refused(&keys, &wrong);
        }
        let long = key.sign("at+jwt", &json!({ "x": "x".repeat(TOKEN_BYTES_MAX) })).expect("signed");
        refused(&keys, &long);
    }

    #[test]
    fn a_header_that_must_be_understood_is_refused() {
        let key = SigningKey::random().expect("random");
        for more in [json!({ "crit": ["exp"] }), json!({ "crit": [] }), json!({ "b64": false }), json!({ "b64": true })]
        {
            let mut header = json!({ "alg": "ES256", "kid": key.kid() });
            header.as_object_mut().expect("members").extend(more.as_object().expect("members").clone());
            let input = format!("{}.e30", URL_SAFE_NO_PAD.encode(header.to_string()));
            let signature = key.pair.sign(&SystemRandom::new(), input.as_bytes()).expect("signed");
            refused(&keys(&key), &format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref())));
        }
    }

    /// Signs with a public key, or with a secret of the key set, as if it were the key of an HMAC.
    #[test]
    fn no_key_of_a_set_is_a_secret() {
        let key = SigningKey::random().expect("random");
        let secret = key.pair.public_key().as_ref();
        let encoded = URL_SAFE_NO_PAD.encode(secret);
        let input = format!("{}.e30", URL_SAFE_NO_PAD.encode(json!({ "alg": "HS256" }).to_string()));
        let tag =
            aws_lc_rs::hmac::sign(&aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret), input.as_bytes());
        let token = format!("{input}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()));
        let set = json!({ "keys": [key.jwk(), { "kty": "oct", "k": encoded, "alg": "HS256" }] });
        refused(&Jwks::read(&set), &token);
    }

    #[test]
    fn a_key_for_another_purpose_verifies_nothing() {
        let key = SigningKey::random().expect("random");
        let token = key.sign("at+jwt", &json!({ "sub": "owner" })).expect("signed");
        for (member, value) in
            [("use", "enc"), ("crv", "P-384"), ("kty", "OKP"), ("alg", "ES384"), ("alg", "EdDSA"), ("kid", "other")]
        {
            let mut jwk = key.jwk();
            jwk[member] = value.into();
            refused(&Jwks::read(&json!({ "keys": [jwk] })), &token);
        }
        let agreement = json!({ "kty": "OKP", "crv": "X25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
        assert!(Jwks::read(&json!({ "keys": [agreement] })).is_empty(), "a key of another curve is no key");
    }

    #[test]
    fn our_own_tokens_have_one_signature_and_those_of_others_either() {
        let key = SigningKey::random().expect("random");
        let keys = keys(&key);
        for number in 0..32 {
            let token = key.sign("at+jwt", &json!({ "jti": number })).expect("signed");
            let (signed, signature) = token.rsplit_once('.').expect("parts");
            let mut twin = URL_SAFE_NO_PAD.decode(signature).expect("base64");
            low_s::flip(&mut twin);
            let twin = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(twin));
            let (token, twin) = (UnverifiedToken::read(&token), UnverifiedToken::read(&twin));
            let (token, twin) = (token.expect("a token"), twin.expect("a token"));
            assert!(keys.verify(&token).is_ok() && keys.verify(&twin).is_ok(), "both hold");
            assert!(keys.verify_own(&token).is_ok());
            assert_eq!(keys.verify_own(&twin), Err(VaultError::Signature));
        }
    }

    /// Uses tokens and keys of other issuers, from the examples of RFC 7515 (A.2) and RFC 8037 (A.4).
    #[test]
    fn tokens_of_other_kinds_are_verified() {
        let ed =
            json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }] });
        let signed = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
        let token = UnverifiedToken {
            alg: "EdDSA".into(),
            kid: None,
            typ: None,
            claims: json!({}),
            signed,
            signature: URL_SAFE_NO_PAD.decode(signature).expect("base64"),
        };
        assert!(Jwks::read(&ed).verify(&token).is_ok());
        let short = json!({ "keys": [{ "kty": "RSA", "n": "AQAB", "e": "AQAB" }, { "kty": "oct", "k": "AAAA" }] });
        assert!(Jwks::read(&short).is_empty(), "short and symmetric keys are no keys");
    }
}
