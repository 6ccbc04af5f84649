//! Tests with responses of a simulated authenticator, tampered with in every way that must fail, and with responses of
//! real ones (`vectors.py`).

use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::data::sha256;
use super::*;

const ID: &[u8] = b"a credential";

/// A simulated authenticator with one key and configurable faults.
#[derive(Clone)]
struct Authenticator {
    pair: Arc<EcdsaKeyPair>,
    site: &'static str,
    flags: u8,
    counter: u32,
    client: Value,
}

impl Authenticator {
    fn new() -> Self {
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref()).expect("a key");
        Self { pair: Arc::new(pair), site: "hikite.example", flags: 0x05, counter: 1, client: json!({}) }
    }

    fn client_data(&self, kind: &str, challenge: &PasskeyChallenge) -> Base64UrlBytes {
        let mut data = json!({ "type": kind, "challenge": challenge.text(), "origin": "https://hikite.example" });
        for (name, value) in self.client.as_object().expect("members") {
            data[name] = value.clone();
        }
        Base64UrlBytes(data.to_string().into_bytes())
    }

    fn data(&self, more: &[u8]) -> Vec<u8> {
        let flags = if more.is_empty() { self.flags } else { self.flags | 0x40 };
        [&sha256(self.site.as_bytes())[..], &[flags], &self.counter.to_be_bytes(), more].concat()
    }

    fn key(&self) -> Vec<u8> {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        [&[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32][..], x, &[0x22, 0x58, 32], y].concat()
    }

    fn create(&self, challenge: &PasskeyChallenge) -> PasskeyRegistration {
        let length = u16::try_from(ID.len()).expect("short").to_be_bytes();
        let data = self.data(&[&[0; 16], &length[..], ID, &self.key()].concat());
        PasskeyRegistration {
            raw_id: Base64UrlBytes(ID.to_vec()),
            kind: "public-key".into(),
            response: AttestationResponse {
                client_data: self.client_data("webauthn.create", challenge),
                object: Base64UrlBytes(attestation(&data)),
            },
        }
    }

    fn get(&self, challenge: &PasskeyChallenge) -> PasskeyAssertion {
        let client_data = self.client_data("webauthn.get", challenge);
        let authenticator_data = self.data(&[]);
        let message = [&authenticator_data[..], &sha256(&client_data.0)].concat();
        let signature = self.pair.sign(&SystemRandom::new(), &message).expect("signed").as_ref().to_vec();
        PasskeyAssertion {
            raw_id: Base64UrlBytes(ID.to_vec()),
            kind: "public-key".into(),
            response: AssertionResponse {
                client_data,
                authenticator_data: Base64UrlBytes(authenticator_data),
                signature: Base64UrlBytes(signature),
                user_handle: None,
            },
        }
    }
}

/// Encodes `{"fmt": "none", "attStmt": {}, "authData": …}`.
fn attestation(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("short").to_be_bytes();
    let head = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59";
    [&head[..], &length, data].concat()
}

fn site() -> RelyingParty {
    RelyingParty::of("https://hikite.example/").expect("a site")
}

fn made(authenticator: &Authenticator) -> Result<Passkey, PasskeyError> {
    let challenge = PasskeyChallenge::random().expect("random");
    site().verify_registration(&challenge, &authenticator.create(&challenge), UserVerification::Required)
}

fn used(authenticator: &Authenticator, passkey: &Passkey) -> Result<u32, PasskeyError> {
    let challenge = PasskeyChallenge::random().expect("random");
    site().verify_assertion(&challenge, passkey, &authenticator.get(&challenge), UserVerification::Required)
}

#[test]
fn a_key_that_was_made_here_proves_its_user_here() {
    let authenticator = Authenticator::new();
    let passkey = made(&authenticator).expect("a key");
    assert_eq!((passkey.id.0.as_slice(), passkey.counter), (ID, 1));
    let kept: Passkey = serde_json::from_value(serde_json::to_value(&passkey).expect("JSON")).expect("a key");
    assert_eq!(kept, passkey);
    let authenticator = Authenticator { counter: 2, ..authenticator };
    assert_eq!(used(&authenticator, &passkey), Ok(2));
    let other = Authenticator { counter: 2, ..Authenticator::new() };
    assert_eq!(used(&other, &passkey), Err(PasskeyError::Signature));
}

#[test]
fn what_was_asked_for_otherwise_is_refused() {
    let whole = Authenticator::new();
    let passkey = Passkey { counter: 0, ..made(&whole).expect("a key") };
    let check = |change: fn(&mut Authenticator), expected: PasskeyError| {
        let mut changed = whole.clone();
        change(&mut changed);
        assert_eq!(made(&changed), Err(expected), "made");
        assert_eq!(used(&changed, &passkey), Err(expected), "used");
    };
    check(|it| it.client = json!({ "origin": "https://evil.example" }), PasskeyError::Origin);
    check(|it| it.client = json!({ "origin": "http://hikite.example" }), PasskeyError::Origin);
    check(|it| it.client = json!({ "origin": "https://hikite.example:8443" }), PasskeyError::Origin);
    check(|it| it.client = json!({ "crossOrigin": true }), PasskeyError::Origin);
    check(|it| it.client = json!({ "challenge": "AAAA" }), PasskeyError::Challenge);
    check(|it| it.client = json!({ "type": "payment.get" }), PasskeyError::Malformed);
    check(|it| it.client = json!({ "origin": null }), PasskeyError::Malformed);
    check(|it| it.site = "evil.example", PasskeyError::RelyingParty);
    check(|it| it.flags = 0x04, PasskeyError::Presence);
    check(|it| it.flags = 0x01, PasskeyError::Verification);
    check(|it| it.flags = 0x15, PasskeyError::Malformed);
    check(|it| it.flags = 0x85, PasskeyError::Malformed);
}

#[test]
fn an_answer_of_one_kind_is_not_one_of_the_other() {
    let authenticator = Authenticator::new();
    let passkey = made(&authenticator).expect("a key");
    let challenge = PasskeyChallenge::random().expect("random");
    let mut answer = Authenticator { counter: 9, ..authenticator }.get(&challenge);
    let verify =
        |answer: &PasskeyAssertion| site().verify_assertion(&challenge, &passkey, answer, UserVerification::Required);
    assert_eq!(verify(&answer), Ok(9));
    answer.kind = "password".into();
    assert_eq!(verify(&answer), Err(PasskeyError::Malformed));
    answer.kind = "public-key".into();
    answer.raw_id = Base64UrlBytes(b"another".to_vec());
    assert_eq!(verify(&answer), Err(PasskeyError::Credential));
}

#[test]
fn a_count_that_does_not_grow_is_that_of_a_copy() {
    let authenticator = Authenticator::new();
    let passkey = made(&authenticator).expect("a key");
    for (kept, said, expected) in [
        (0, 0, Ok(0)),
        (0, 1, Ok(1)),
        (5, 6, Ok(6)),
        (5, 5, Err(PasskeyError::Counter)),
        (5, 4, Err(PasskeyError::Counter)),
        (5, 0, Err(PasskeyError::Counter)),
    ] {
        let authenticator = Authenticator { counter: said, ..authenticator.clone() };
        assert_eq!(used(&authenticator, &Passkey { counter: kept, ..passkey.clone() }), expected, "{kept} {said}");
    }
}

#[test]
fn a_key_with_another_id_than_the_answer_says_is_refused() {
    let challenge = PasskeyChallenge::random().expect("random");
    let mut answer = Authenticator::new().create(&challenge);
    answer.raw_id = Base64UrlBytes(b"another".to_vec());
    let made = site().verify_registration(&challenge, &answer, UserVerification::Required);
    assert_eq!(made, Err(PasskeyError::Credential));
}

#[test]
fn only_keys_of_known_kinds_are_kept() {
    let good = Authenticator::new().key();
    assert!(CosePublicKey::read(&good).is_some());
    // Another type, another algorithm, another curve, and coordinates of other lengths.
    for (at, byte) in [(2, 1), (4, 0x27), (6, 2), (9, 31)] {
        let mut changed = good.clone();
        changed[at] = byte;
        assert_eq!(CosePublicKey::read(&changed), None, "{at}");
    }
    let twice = [&[0xa6][..], &good[1..], &[1, 2]].concat();
    assert_eq!(CosePublicKey::read(&twice), None, "a label that is there twice");
    let endless = [&[0xbf][..], &good[1..], &[0xff]].concat();
    assert_eq!(CosePublicKey::read(&endless), None, "a map without a length");
    assert_eq!(CosePublicKey::read(&[&good[..], &[0]].concat()), None, "something after the key");
    assert_eq!(CosePublicKey::read(&[&[0x81][..], &good].concat()), None, "a list with the key");
    let short = [&[0xa4, 1, 3, 3, 0x39, 1, 0, 0x20, 0x43, 1, 2, 3, 0x21, 0x43, 1, 0, 1][..]].concat();
    assert_eq!(CosePublicKey::read(&short), None, "an RSA key that is too short");
}

#[test]
fn sites_are_names() {
    for (url, expected) in [
        ("https://hikite.example", Some(("hikite.example", "https://hikite.example"))),
        ("https://Hikite.Example:443/x", Some(("hikite.example", "https://hikite.example"))),
        ("https://hikite.example:8443", Some(("hikite.example", "https://hikite.example:8443"))),
        ("http://127.0.0.1:7300", Some(("localhost", "http://localhost:7300"))),
        ("http://[::1]:7300", Some(("localhost", "http://localhost:7300"))),
        ("http://localhost", Some(("localhost", "http://localhost"))),
        ("https://日本.example", Some(("xn--wgv71a.example", "https://xn--wgv71a.example"))),
        ("https://user:password@hikite.example/", Some(("hikite.example", "https://hikite.example"))),
        ("https://192.0.2.1", None),
        ("https://3221225985", None),
        ("https://0xc0.0.2.1", None),
        ("ftp://hikite.example", None),
        ("file:///etc/passwd", None),
        ("https://", None),
        ("https://[2001:db8::1]", None),
        ("hikite.example", None),
    ] {
        let site = RelyingParty::of(url);
        let site = site.as_ref().map(|site| (site.id.as_str(), site.origin.as_str()));
        assert_eq!(site, expected, "{url}");
    }
}

#[test]
fn browsers_are_asked_for_what_is_checked() {
    let challenge = PasskeyChallenge::random().expect("random");
    let known = [Base64UrlBytes(ID.to_vec())];
    let asked = site().creation_options(&challenge, (b"handle", "alice"), &known);
    assert_eq!((&asked["rp"]["id"], &asked["challenge"]), (&json!("hikite.example"), &json!(challenge.text())));
    assert_eq!((&asked["attestation"], &asked["user"]["id"]), (&json!("none"), &json!("aGFuZGxl")));
    assert_eq!(asked["authenticatorSelection"]["userVerification"], "required");
    assert_eq!(asked["excludeCredentials"][0]["id"], known[0].text());
    let asked = site().request_options(&challenge, &known);
    assert_eq!((&asked["rpId"], &asked["userVerification"]), (&json!("hikite.example"), &json!("required")));
}

#[test]
fn answers_of_other_authenticators_are_understood() {
    let vectors: Value = serde_json::from_str(include_str!("tests/vectors.json")).expect("JSON");
    let vectors = vectors.as_array().expect("vectors");
    assert_eq!(vectors.len(), 4);
    for vector in vectors {
        let challenge = |name: &str| {
            PasskeyChallenge::of(Base64UrlBytes::parse(vector[name].as_str().expect("text")).expect("bytes").0)
        };
        let answer = PasskeyRegistration::read(&vector["made"]).expect("an answer");
        assert_eq!(answer.challenge(), Some(challenge("made_for")));
        let name = &vector["name"];
        let verify = |verification| site().verify_registration(&challenge("made_for"), &answer, verification);
        let passkey = verify(UserVerification::Preferred).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let verified = vector["verified"] == true;
        assert_eq!(verify(UserVerification::Required).is_ok(), verified, "{name}");
        let answer = PasskeyAssertion::read(&vector["used"]).expect("an answer");
        assert_eq!(answer.handle(), Some(&sha256(b"alice")[..]), "{name}");
        let verify = |passkey: &Passkey| {
            site().verify_assertion(&challenge("used_for"), passkey, &answer, UserVerification::Preferred)
        };
        assert!(verify(&passkey).is_ok_and(|counter| counter > passkey.counter), "{name}");
        let other = vectors.iter().find(|other| other["name"] != *name).expect("another");
        let foreign = PasskeyRegistration::read(&other["made"]).expect("an answer");
        let object = cbor::read_all(&foreign.response.object.0).expect("an object");
        let data = AuthenticatorData::read(object.get("authData").and_then(cbor::CborValue::bytes).expect("bytes"));
        let public_key = Base64UrlBytes(data.expect("data").credential.expect("a key").public_key.to_vec());
        assert_eq!(verify(&Passkey { public_key, ..passkey }), Err(PasskeyError::Signature), "{name}");
    }
}

proptest! {
    #[test]
    fn no_bytes_of_a_browser_do_harm(
        client in proptest::collection::vec(any::<u8>(), 0..200),
        object in proptest::collection::vec(any::<u8>(), 0..400),
        signature in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let challenge = PasskeyChallenge::of(vec![1; 32]);
        let answer = PasskeyRegistration {
            raw_id: Base64UrlBytes(ID.to_vec()),
            kind: "public-key".into(),
            response: AttestationResponse {
                client_data: Authenticator::new().client_data("webauthn.create", &challenge),
                object: Base64UrlBytes(object.clone()),
            },
        };
        prop_assert!(site().verify_registration(&challenge, &answer, UserVerification::Preferred).is_err());
        let passkey = Passkey { id: Base64UrlBytes(ID.to_vec()), public_key: Base64UrlBytes(object.clone()), counter: 0 };
        let answer = PasskeyAssertion {
            raw_id: Base64UrlBytes(ID.to_vec()),
            kind: "public-key".into(),
            response: AssertionResponse {
                client_data: Base64UrlBytes(client),
                authenticator_data: Base64UrlBytes(object),
                signature: Base64UrlBytes(signature),
                user_handle: None,
            },
        };
        prop_assert!(site().verify_assertion(&challenge, &passkey, &answer, UserVerification::Preferred).is_err());
    }

    /// Changes one bit of the signed data or the signature, which must invalidate the response.
    #[test]
    fn no_changed_byte_passes(at in any::<prop::sample::Index>(), bit in 0_u8..8, part in 0..3) {
        let authenticator = Authenticator::new();
        let passkey = made(&authenticator).expect("a key");
        let challenge = PasskeyChallenge::of(vec![2; 32]);
        let mut answer = Authenticator { counter: 2, ..authenticator }.get(&challenge);
        let bytes = match part {
            0 => &mut answer.response.client_data.0,
            1 => &mut answer.response.authenticator_data.0,
            _ => &mut answer.response.signature.0,
        };
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(site().verify_assertion(&challenge, &passkey, &answer, UserVerification::Required).is_err());
    }

    #[test]
    fn a_changed_registration_is_read_without_harm(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let challenge = PasskeyChallenge::of(vec![3; 32]);
        let mut answer = Authenticator::new().create(&challenge);
        let object = &mut answer.response.object.0;
        let at = at.index(object.len());
        object[at] = byte;
        let _ = site().verify_registration(&challenge, &answer, UserVerification::Required);
        let cut = cut.index(answer.response.object.0.len());
        answer.response.object.0.truncate(cut);
        let refused = site().verify_registration(&challenge, &answer, UserVerification::Required);
        prop_assert!(refused.is_err());
    }
}
