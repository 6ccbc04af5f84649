//! Seals and opens secrets, signs and verifies tokens, hashes passwords, proves passkeys. No I/O, no clock: what is kept,
//! and when it ends, is for others to say. The only crate that knows a cipher.

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
