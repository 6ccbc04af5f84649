//! Cryptography: encrypts secrets, signs and verifies tokens, hashes passwords, verifies passkeys. No I/O and no clock:
//! storage and expiry are up to the caller. No other crate uses a cipher.

mod backup;
mod jws;
mod key;
mod passkey;
mod password;
mod random;
mod seal;

pub use backup::{open_backup, seal_backup};
pub use jws::{Jwk, Jwks, SigningKey, UnverifiedToken};
pub use key::{DataKey, KeyRing, MasterKey, WrappedKey};
pub use passkey::{
    Base64UrlBytes, Passkey, PasskeyAssertion, PasskeyChallenge, PasskeyError, PasskeyRegistration, RelyingParty,
    UserVerification,
};
pub use password::{Password, PasswordHash};
pub use random::random_bytes;
pub use seal::{SealedText, SecretContext, VaultError};
