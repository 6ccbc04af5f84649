//! Passkeys (`WebAuthn`): builds the options for the browser and verifies its responses. Attestation is neither
//! requested nor trusted. No clock and no store: callers must ensure that a challenge is used only once.

mod cbor;
mod cose;
mod data;
#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use url::{Host, Url};

use crate::random::random_bytes;
use crate::seal::VaultError;
use cose::CosePublicKey;
use data::{AuthenticatorData, check_client};

/// Time that a browser may take, in milliseconds.
const TIMEOUT_MS: u64 = 300_000;
/// Longest part of a response, in bytes.
const PART_BYTES: usize = 64 * 1024;

/// Reason why a response was rejected. Reveals nothing more to an attacker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasskeyError {
    #[error("the response of the browser is malformed")]
    Malformed,
    #[error("the response belongs to another challenge")]
    Challenge,
    #[error("the response comes from another site")]
    Origin,
    #[error("the passkey belongs to another site")]
    RelyingParty,
    #[error("the authenticator did not ask the user")]
    Presence,
    #[error("the authenticator did not verify the user")]
    Verification,
    #[error("the type of the key is not supported")]
    Kind,
    #[error("the signature of the response is not valid")]
    Signature,
    #[error("the passkey was used before with a higher count, so somebody may have copied it")]
    Counter,
    #[error("the response comes from another passkey")]
    Credential,
}

/// Bytes that are serialised as base64url without padding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Base64UrlBytes(pub Vec<u8>);

/// A random challenge, valid for one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasskeyChallenge(Base64UrlBytes);

/// The `WebAuthn` relying party: the site that passkeys belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelyingParty {
    /// Host name.
    pub id: String,
    /// Scheme, host and port.
    pub origin: String,
}

/// A stored passkey of one user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passkey {
    pub id: Base64UrlBytes,
    /// COSE public key, as sent by the authenticator.
    pub public_key: Base64UrlBytes,
    /// Signature counter; always zero if the authenticator does not count.
    pub counter: u32,
}

/// User verification policy: mandatory, or user presence is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserVerification {
    Required,
    Preferred,
}

/// A browser's response to `creation_options`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PasskeyRegistration {
    raw_id: Base64UrlBytes,
    #[serde(rename = "type")]
    kind: String,
    response: AttestationResponse,
}

#[derive(Clone, Debug, Deserialize)]
struct AttestationResponse {
    #[serde(rename = "clientDataJSON")]
    client_data: Base64UrlBytes,
    #[serde(rename = "attestationObject")]
    object: Base64UrlBytes,
}

/// A browser's response to `request_options`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PasskeyAssertion {
    raw_id: Base64UrlBytes,
    #[serde(rename = "type")]
    kind: String,
    response: AssertionResponse,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AssertionResponse {
    #[serde(rename = "clientDataJSON")]
    client_data: Base64UrlBytes,
    authenticator_data: Base64UrlBytes,
    signature: Base64UrlBytes,
    user_handle: Option<Base64UrlBytes>,
}

impl RelyingParty {
    /// Derives the relying party from the public URL, which is parsed as browsers do. They only accept names: a
    /// loopback address becomes `localhost`, and any other IP address gives `None`.
    pub fn of(url: &str) -> Option<Self> {
        let mut url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let is_loopback = match url.host()? {
            Host::Domain(_) => false,
            Host::Ipv4(address) => address.is_loopback().then_some(true)?,
            Host::Ipv6(address) => address.is_loopback().then_some(true)?,
        };
        if is_loopback {
            url.set_host(Some("localhost")).ok()?;
        }
        Some(Self { id: url.host_str()?.to_owned(), origin: url.origin().ascii_serialization() })
    }

    /// Returns the options for `navigator.credentials.create`. `handle` identifies the user and must reveal nothing.
    pub fn creation_options(
        &self,
        challenge: &PasskeyChallenge,
        (handle, name): (&[u8], &str),
        known: &[Base64UrlBytes],
    ) -> Value {
        let kinds: Vec<Value> =
            cose::ALGORITHMS.iter().map(|alg| json!({ "type": "public-key", "alg": alg })).collect();
        json!({
            "rp": { "id": self.id, "name": "hikite" },
            "user": { "id": URL_SAFE_NO_PAD.encode(handle), "name": name, "displayName": name },
            "challenge": challenge.text(),
            "pubKeyCredParams": kinds,
            "timeout": TIMEOUT_MS,
            "excludeCredentials": descriptors(known),
            "authenticatorSelection": { "residentKey": "preferred", "userVerification": "required" },
            "attestation": "none",
        })
    }

    /// Returns the options for `navigator.credentials.get`. Without `allowed`, the user may choose any passkey.
    pub fn request_options(&self, challenge: &PasskeyChallenge, allowed: &[Base64UrlBytes]) -> Value {
        json!({
            "rpId": self.id,
            "challenge": challenge.text(),
            "timeout": TIMEOUT_MS,
            "allowCredentials": descriptors(allowed),
            "userVerification": "required",
        })
    }

    /// Verifies the response to a challenge and returns the new passkey.
    pub fn verify_registration(
        &self,
        challenge: &PasskeyChallenge,
        answer: &PasskeyRegistration,
        verification: UserVerification,
    ) -> Result<Passkey, PasskeyError> {
        if answer.kind != "public-key" {
            return Err(PasskeyError::Malformed);
        }
        check_client(&answer.response.client_data.0, "webauthn.create", challenge, &self.origin)?;
        let object = cbor::read_all(&answer.response.object.0).ok_or(PasskeyError::Malformed)?;
        // The attestation statement (`fmt`, `attStmt`) was not requested and is not trusted.
        let data = object.get("authData").and_then(cbor::CborValue::bytes).ok_or(PasskeyError::Malformed)?;
        let data = AuthenticatorData::read(data).ok_or(PasskeyError::Malformed)?;
        data.check(&self.id, verification)?;
        let credential = data.credential.ok_or(PasskeyError::Malformed)?;
        if credential.id != answer.raw_id.0 {
            return Err(PasskeyError::Credential);
        }
        CosePublicKey::read(credential.public_key).ok_or(PasskeyError::Kind)?;
        Ok(Passkey {
            id: answer.raw_id.clone(),
            public_key: Base64UrlBytes(credential.public_key.to_vec()),
            counter: data.counter,
        })
    }

    /// Verifies the signed response to a challenge and returns the new signature counter.
    pub fn verify_assertion(
        &self,
        challenge: &PasskeyChallenge,
        passkey: &Passkey,
        answer: &PasskeyAssertion,
        verification: UserVerification,
    ) -> Result<u32, PasskeyError> {
        if answer.kind != "public-key" {
            return Err(PasskeyError::Malformed);
        }
        if answer.raw_id != passkey.id {
            return Err(PasskeyError::Credential);
        }
        let AssertionResponse { client_data, authenticator_data, signature, .. } = &answer.response;
        check_client(&client_data.0, "webauthn.get", challenge, &self.origin)?;
        let data = AuthenticatorData::read(&authenticator_data.0).ok_or(PasskeyError::Malformed)?;
        data.check(&self.id, verification)?;
        let key = CosePublicKey::read(&passkey.public_key.0).ok_or(PasskeyError::Kind)?;
        let message = [&authenticator_data.0[..], &data::sha256(&client_data.0)].concat();
        if !key.signed(&message, &signature.0) {
            return Err(PasskeyError::Signature);
        }
        let counts = data.counter > 0 || passkey.counter > 0;
        if counts && data.counter <= passkey.counter {
            return Err(PasskeyError::Counter);
        }
        Ok(data.counter)
    }
}

impl PasskeyChallenge {
    pub fn random() -> Result<Self, VaultError> {
        Ok(Self(Base64UrlBytes(random_bytes::<32>()?.to_vec())))
    }

    pub fn of(bytes: Vec<u8>) -> Self {
        Self(Base64UrlBytes(bytes))
    }

    /// Returns the base64url form, for transport and storage.
    pub fn text(&self) -> String {
        self.0.text()
    }
}

impl Base64UrlBytes {
    pub fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.0)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let is_long = text.len() > PART_BYTES * 4 / 3 + 3;
        (!is_long).then(|| URL_SAFE_NO_PAD.decode(text).ok()).flatten().map(Self)
    }
}

impl PasskeyRegistration {
    pub fn read(answer: &Value) -> Result<Self, PasskeyError> {
        Self::deserialize(answer).map_err(|_| PasskeyError::Malformed)
    }

    /// Returns the claimed challenge; nothing is verified yet.
    pub fn challenge(&self) -> Option<PasskeyChallenge> {
        data::challenge(&self.response.client_data.0)
    }
}

impl PasskeyAssertion {
    pub fn read(answer: &Value) -> Result<Self, PasskeyError> {
        Self::deserialize(answer).map_err(|_| PasskeyError::Malformed)
    }

    pub fn challenge(&self) -> Option<PasskeyChallenge> {
        data::challenge(&self.response.client_data.0)
    }

    /// Returns the claimed credential id.
    pub fn id(&self) -> &Base64UrlBytes {
        &self.raw_id
    }

    /// Returns the user handle, if the authenticator sent it.
    pub fn handle(&self) -> Option<&[u8]> {
        self.response.user_handle.as_ref().map(|handle| handle.0.as_slice())
    }
}

fn descriptors(ids: &[Base64UrlBytes]) -> Vec<Value> {
    ids.iter().map(|id| json!({ "type": "public-key", "id": id.text() })).collect()
}

impl Serialize for Base64UrlBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Base64UrlBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not base64url"))
    }
}
