//! The two parts of every `WebAuthn` response: client data from the browser, and authenticator data.

use serde::Deserialize;

use super::{Base64UrlBytes, PasskeyChallenge, PasskeyError, UserVerification, cbor};

const PRESENT: u8 = 0x01;
const VERIFIED: u8 = 0x04;
const BACKUP_ELIGIBLE: u8 = 0x08;
const BACKED_UP: u8 = 0x10;
const HAS_CREDENTIAL: u8 = 0x40;
const HAS_EXTENSIONS: u8 = 0x80;

/// Longest credential id (`WebAuthn`, 4 "Credential ID").
const ID_BYTES: usize = 1023;

#[derive(Debug, Deserialize)]
struct ClientData {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(rename = "crossOrigin", default)]
    cross_origin: bool,
}

/// Checks that the client data is of this type, for this challenge, and from our origin.
pub(crate) fn check_client(
    bytes: &[u8],
    kind: &str,
    challenge: &PasskeyChallenge,
    origin: &str,
) -> Result<(), PasskeyError> {
    let data: ClientData = serde_json::from_slice(bytes).map_err(|_| PasskeyError::Malformed)?;
    if data.kind != kind {
        return Err(PasskeyError::Malformed);
    }
    if data.challenge != challenge.text() {
        return Err(PasskeyError::Challenge);
    }
    // Our page inside a frame of another origin is rejected.
    if data.origin != origin || data.cross_origin {
        return Err(PasskeyError::Origin);
    }
    Ok(())
}

pub(crate) fn challenge(bytes: &[u8]) -> Option<PasskeyChallenge> {
    let data: ClientData = serde_json::from_slice(bytes).ok()?;
    Base64UrlBytes::parse(&data.challenge).map(|octets| PasskeyChallenge::of(octets.0))
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref());
    out
}

#[derive(Debug)]
pub(crate) struct AuthenticatorData<'a> {
    relying_party: &'a [u8],
    flags: u8,
    pub(crate) counter: u32,
    /// Credential that was created, if any.
    pub(crate) credential: Option<AttestedCredential<'a>>,
}

#[derive(Debug)]
pub(crate) struct AttestedCredential<'a> {
    pub(crate) id: &'a [u8],
    pub(crate) public_key: &'a [u8],
}

impl<'a> AuthenticatorData<'a> {
    /// Parses authenticator data; `None` unless every byte is accounted for.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (relying_party, rest) = bytes.split_at_checked(32)?;
        let (&flags, rest) = rest.split_first()?;
        let (counter, mut rest) = rest.split_first_chunk::<4>()?;
        let mut credential = None;
        if flags & HAS_CREDENTIAL != 0 {
            // Skips the AAGUID, which identifies the authenticator model.
            let (_, after) = rest.split_at_checked(16)?;
            let (length, after) = after.split_first_chunk::<2>()?;
            let (id, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
            if id.is_empty() || id.len() > ID_BYTES {
                return None;
            }
            let (_, after_value) = cbor::read(after)?;
            credential = Some(AttestedCredential { id, public_key: &after[..after.len() - after_value.len()] });
            rest = after_value;
        }
        if flags & HAS_EXTENSIONS != 0 {
            let (extensions, after_value) = cbor::read(rest)?;
            matches!(extensions, cbor::CborValue::Map(_)).then_some(())?;
            rest = after_value;
        }
        let backed_up_but_ineligible = flags & BACKED_UP != 0 && flags & BACKUP_ELIGIBLE == 0;
        if !rest.is_empty() || backed_up_but_ineligible {
            return None;
        }
        Some(Self { relying_party, flags, counter: u32::from_be_bytes(*counter), credential })
    }

    pub(crate) fn check(&self, relying_party: &str, verification: UserVerification) -> Result<(), PasskeyError> {
        if self.relying_party != sha256(relying_party.as_bytes()) {
            return Err(PasskeyError::RelyingParty);
        }
        if self.flags & PRESENT == 0 {
            return Err(PasskeyError::Presence);
        }
        if verification == UserVerification::Required && self.flags & VERIFIED == 0 {
            return Err(PasskeyError::Verification);
        }
        Ok(())
    }
}
