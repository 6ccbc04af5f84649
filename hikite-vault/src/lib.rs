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
pub use jws::{Jwk, Jwks, SigningKey, Unverified};
pub use key::{DataKey, MasterKey, Ring, Wrapped};
pub use passkey::{
    Assertion, Challenge, Octets, Passkey, PasskeyFault, Registration, RelyingParty, Verification,
};
pub use password::{Password, PasswordHash};
pub use random::random_bytes;
pub use seal::{Place, Refused, Sealed};
