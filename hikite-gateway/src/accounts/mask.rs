//! Restrictions by account. A subject sees a tool if one of the accounts that could serve its calls allows it; the
//! account of a call is selected per call. The masks of a subject are computed on its first request.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use hikite_core::permission::{PermissionFingerprint, Permissions};
use parking_lot::RwLock;
use sha2::{Digest, Sha256};

use super::index::AccountIndex;
use super::{AccountSettings, AccountStore, DEFAULT};

/// The tools that the accounts of one subject allow.
#[derive(Debug)]
pub(crate) struct SubjectMask {
    /// Permissions by provider. A provider without an entry is unrestricted.
    pub(crate) allowed: HashMap<Arc<str>, Vec<Arc<Permissions>>>,
    pub(crate) fingerprint: PermissionFingerprint,
}

/// The restrictions of all accounts at one moment.
#[derive(Debug, Default)]
pub(crate) struct AccountMasks {
    known: Arc<AccountIndex>,
    settings: Arc<AccountSettings>,
    /// `false` if every account allows everything.
    is_restricted: bool,
    /// Masks of subjects with accounts of their own.
    subjects: RwLock<HashMap<Arc<str>, Option<Arc<SubjectMask>>>>,
    /// Mask of all other subjects.
    others: OnceLock<Option<Arc<SubjectMask>>>,
}

impl AccountStore {
    /// Returns the current masks, or the previous ones if nothing changed.
    pub(crate) fn masks(&self, before: &Arc<AccountMasks>) -> Arc<AccountMasks> {
        let (known, settings) = (self.known.load_full(), self.settings.load_full());
        if Arc::ptr_eq(&known, &before.known) && Arc::ptr_eq(&settings, &before.settings) {
            return Arc::clone(before);
        }
        let stored = known.all().iter().map(|account| &account.permissions);
        let is_restricted = stored.chain(settings.from_file.values()).any(|mask| !mask.is_unrestricted());
        Arc::new(AccountMasks { known, settings, is_restricted, ..AccountMasks::default() })
    }
}

impl AccountMasks {
    /// Returns the mask of a subject, or `None` if it is unrestricted.
    pub(crate) fn of(&self, subject: &str) -> Option<Arc<SubjectMask>> {
        if !self.is_restricted {
            return None;
        }
        if !self.known.has_own(subject) {
            // No subject has the empty name.
            return self.others.get_or_init(|| self.build("")).clone();
        }
        if let Some(mask) = self.subjects.read().get(subject) {
            return mask.clone();
        }
        let mask = self.build(subject);
        self.subjects.write().insert(subject.into(), mask.clone());
        mask
    }

    fn build(&self, subject: &str) -> Option<Arc<SubjectMask>> {
        let Self { known, settings, .. } = self;
        let stored = known.usable_by(subject).map(|account| &*account.provider);
        let providers: BTreeSet<&str> = stored.chain(settings.from_file.keys().map(String::as_str)).collect();
        let (mut allowed, mut hash) = (HashMap::new(), Sha256::new());
        for provider in providers {
            // A subject's own account hides the config's account of the same name.
            let is_hidden = known.named(subject, provider, DEFAULT).is_some();
            let from_file = settings.from_file.get(provider).filter(|_| !is_hidden);
            let usable = known.usable_by(subject).filter(|account| &*account.provider == provider);
            let usable = usable.map(|account| &account.permissions);
            let all: Vec<Arc<Permissions>> = usable.chain(from_file).map(Arc::clone).collect();
            if all.is_empty() || all.iter().any(|permissions| permissions.is_unrestricted()) {
                continue;
            }
            hash.update(provider.len().to_be_bytes());
            hash.update(provider);
            hash.update(all.len().to_be_bytes());
            for permissions in &all {
                hash.update(permissions.fingerprint());
            }
            allowed.insert(provider.into(), all);
        }
        let fingerprint = hash.finalize().into();
        (!allowed.is_empty()).then(|| Arc::new(SubjectMask { allowed, fingerprint }))
    }
}
