//! The two parts of every `WebAuthn` response: client data from the browser, and authenticator data.

use serde::Deserialize;

use super::{Challenge, Octets, PasskeyFault, Verification, cbor};

const PRESENT: u8 = 0x01;
const VERIFIED: u8 = 0x04;
const MAY_BE_COPIED: u8 = 0x08;
const IS_COPIED: u8 = 0x10;
const HAS_KEY: u8 = 0x40;
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
    challenge: &Challenge,
    origin: &str,
) -> Result<(), PasskeyFault> {
    let data: ClientData = serde_json::from_slice(bytes).map_err(|_| PasskeyFault::Malformed)?;
    if data.kind != kind {
        return Err(PasskeyFault::Malformed);
    }
    if data.challenge != challenge.text() {
        return Err(PasskeyFault::Challenge);
    }
    // Our page inside a frame of another origin is rejected.
    if data.origin != origin || data.cross_origin {
        return Err(PasskeyFault::Origin);
    }
    Ok(())
}

pub(crate) fn challenge(bytes: &[u8]) -> Option<Challenge> {
    let data: ClientData = serde_json::from_slice(bytes).ok()?;
    Octets::parse(&data.challenge).map(|octets| Challenge::of(octets.0))
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref());
    out
}

#[derive(Debug)]
pub(crate) struct AuthenticatorData<'a> {
    site: &'a [u8],
    flags: u8,
    pub(crate) counter: u32,
    /// Credential that was created, if any.
    pub(crate) made: Option<Made<'a>>,
}

#[derive(Debug)]
pub(crate) struct Made<'a> {
    pub(crate) id: &'a [u8],
    pub(crate) public_key: &'a [u8],
}

impl<'a> AuthenticatorData<'a> {
    /// Parses authenticator data; `None` unless every byte is accounted for.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (site, rest) = bytes.split_at_checked(32)?;
        let (&flags, rest) = rest.split_first()?;
        let (counter, mut rest) = rest.split_first_chunk::<4>()?;
        let mut made = None;
        if flags & HAS_KEY != 0 {
            // Skips the AAGUID, which identifies the authenticator model.
            let (_, after) = rest.split_at_checked(16)?;
            let (length, after) = after.split_first_chunk::<2>()?;
            let (id, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
            if id.is_empty() || id.len() > ID_BYTES {
                return None;
            }
            let (_, behind) = cbor::read(after)?;
            made = Some(Made { id, public_key: &after[..after.len() - behind.len()] });
            rest = behind;
        }
        if flags & HAS_EXTENSIONS != 0 {
            let (extensions, behind) = cbor::read(rest)?;
            matches!(extensions, cbor::Value::Map(_)).then_some(())?;
            rest = behind;
        }
        let is_copied_but_may_not = flags & IS_COPIED != 0 && flags & MAY_BE_COPIED == 0;
        if !rest.is_empty() || is_copied_but_may_not {
            return None;
        }
        Some(Self { site, flags, counter: u32::from_be_bytes(*counter), made })
    }

    pub(crate) fn check(&self, site: &str, verification: Verification) -> Result<(), PasskeyFault> {
        if self.site != sha256(site.as_bytes()) {
            return Err(PasskeyFault::RelyingParty);
        }
        if self.flags & PRESENT == 0 {
            return Err(PasskeyFault::Presence);
        }
        if verification == Verification::Required && self.flags & VERIFIED == 0 {
            return Err(PasskeyFault::Verification);
        }
        Ok(())
    }
}
