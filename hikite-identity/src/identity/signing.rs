//! Signing keys of access tokens, newest first. Only the newest signs; older ones verify until the last token that they
//! signed has expired. Stored as one secret of the vault, one line per key.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::secret::Secret;
use hikite_vault::{Jwks, SigningKey, VaultError};
use serde_json::{Value, json};

use super::milliseconds;

/// Age at which a key is rotated.
const ROTATE_AFTER: Duration = Duration::from_secs(90 * 86_400);
/// Time for which a retired key still verifies: no token lives longer than a day, clocks differ by a minute, and
/// another process may keep signing for some seconds.
const VERIFY_RETIRED_FOR: Duration = Duration::from_secs(25 * 3600);

#[derive(Clone, Debug)]
pub(super) struct SigningKeys {
    keys: Vec<DatedKey>,
}

#[derive(Clone, Debug)]
struct DatedKey {
    key: Arc<SigningKey>,
    made_at: u64,
    /// Time until which it verifies; zero for the key that signs.
    until: u64,
}

impl SigningKeys {
    pub(super) fn random(now: u64) -> Result<Self, VaultError> {
        Ok(Self { keys: vec![DatedKey { key: Arc::new(SigningKey::random()?), made_at: now, until: 0 }] })
    }

    /// Parses the output of `text`. A single key is the format of earlier versions and counts as old.
    pub(super) fn read(kept: &Secret) -> Result<Self, VaultError> {
        let keys: Vec<DatedKey> = kept.expose().lines().map(DatedKey::read).collect::<Result<_, _>>()?;
        if keys.is_empty() { Err(VaultError::NoKey) } else { Ok(Self { keys }) }
    }

    /// Returns the form stored in the vault.
    pub(super) fn text(&self) -> Secret {
        let line = |aged: &DatedKey| format!("{} {} {}", aged.made_at, aged.until, aged.key.secret().expose());
        Secret::hidden(self.keys.iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    /// Returns the key that signs.
    pub(super) fn newest(&self) -> &SigningKey {
        &self.keys[0].key
    }

    /// Returns `true` if a rotation is due.
    pub(super) fn is_due(&self, now: u64) -> bool {
        now >= self.keys[0].made_at.saturating_add(milliseconds(ROTATE_AFTER))
    }

    /// Adds a new key in front of those that still verify, or replaces all of them.
    pub(super) fn next(&self, now: u64, forget: bool) -> Result<Self, VaultError> {
        let mut next = Self::random(now)?;
        if !forget {
            let retired = self.keys.iter().map(|aged| match aged.until {
                0 => DatedKey { until: now + milliseconds(VERIFY_RETIRED_FOR), ..aged.clone() },
                _ => aged.clone(),
            });
            next.keys.extend(retired.filter(|aged| now < aged.until));
        }
        Ok(next)
    }

    /// Returns a copy without the keys that no longer verify.
    pub(super) fn still_verifying(&self, now: u64) -> Self {
        let is_good = |aged: &&DatedKey| aged.until == 0 || now < aged.until;
        Self { keys: self.keys.iter().filter(is_good).cloned().collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn knows(&self, kid: &str) -> bool {
        self.keys.iter().any(|aged| aged.key.kid() == kid)
    }

    pub(super) fn public(&self) -> Jwks {
        Jwks::read(&self.document())
    }

    pub(super) fn document(&self) -> Value {
        json!({ "keys": self.keys.iter().map(|aged| aged.key.jwk()).collect::<Vec<_>>() })
    }
}

impl DatedKey {
    fn read(line: &str) -> Result<Self, VaultError> {
        let mut words = line.split(' ');
        let number = |word: Option<&str>| word.and_then(|word| word.parse().ok()).ok_or(VaultError::NoKey);
        let (made_at, until, key) = match (line.contains(' '), words.clone().next()) {
            (false, Some(key)) => (0, 0, key),
            _ => (number(words.next())?, number(words.next())?, words.next().ok_or(VaultError::NoKey)?),
        };
        Ok(Self { key: Arc::new(SigningKey::parse(&Secret::hidden(key))?), made_at, until })
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    const DAY: u64 = 86_400_000;

    #[test]
    fn the_newest_signs_and_those_before_it_are_believed_for_a_while() {
        let first = SigningKeys::random(DAY).expect("random");
        assert!(!first.is_due(90 * DAY) && first.is_due(91 * DAY));
        let second = first.next(100 * DAY, false).expect("random");
        let kept = SigningKeys::read(&second.text()).expect("keys");
        assert_eq!((kept.newest().kid(), kept.len()), (second.newest().kid(), 2));
        assert!(kept.knows(first.newest().kid()) && !kept.is_due(101 * DAY));
        assert_eq!((kept.still_verifying(101 * DAY).len(), kept.still_verifying(102 * DAY).len()), (2, 1));
        assert!(!kept.still_verifying(102 * DAY).knows(first.newest().kid()));
        let third = kept.next(102 * DAY, false).expect("random");
        assert!(third.knows(second.newest().kid()) && !third.knows(first.newest().kid()));
        assert_eq!(kept.next(101 * DAY, true).expect("random").len(), 1, "forgotten at once");
    }

    #[test]
    fn a_key_that_was_kept_alone_is_taken_over_and_followed() {
        let alone = SigningKey::random().expect("random");
        let kept = SigningKeys::read(alone.secret()).expect("a key");
        assert_eq!(kept.newest().kid(), alone.kid());
        assert!(kept.is_due(1_700_000_000_000));
        for wrong in ["", "1 2", "x 0 y", "1 0 notakey", "notakey"] {
            assert!(SigningKeys::read(&Secret::hidden(wrong)).is_err(), "{wrong}");
        }
    }
}
