//! Which tools accounts allow. A tool is there for a subject if one of the accounts allows it that could serve the
//! subject's call; of which account a call is made, the call itself decides.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use hikite_core::permission::Permissions;

use super::{Accounts, DEFAULT};

/// What the accounts of one subject allow, by provider. A provider that is not here is not held back.
pub(crate) type Mask = HashMap<Arc<str>, Vec<Arc<Permissions>>>;

#[derive(Debug, Default)]
pub(crate) struct Masks {
    /// Of those who have accounts of their own.
    pub(crate) subjects: HashMap<Arc<str>, Mask>,
    /// Of everybody else.
    pub(crate) others: Mask,
}

impl Accounts {
    pub(crate) fn masks(&self) -> Masks {
        let (known, settings) = (self.known.load(), self.settings.load());
        let mut all = known.all().iter().map(|account| &account.permissions);
        if all.all(|mask| mask.is_everything())
            && settings.of_the_file.values().all(|mask| mask.is_everything())
        {
            return Masks::default();
        }
        let subjects: BTreeSet<&Arc<str>> = known.all().iter().map(|account| &account.subject).collect();
        let subjects = subjects.into_iter().map(|subject| (Arc::clone(subject), self.mask_of(subject)));
        // Nobody has this name.
        Masks { subjects: subjects.collect(), others: self.mask_of("") }
    }

    fn mask_of(&self, subject: &str) -> Mask {
        let (known, settings) = (self.known.load(), self.settings.load());
        let stored = known.all().iter().map(|account| &*account.provider);
        let providers: BTreeSet<&str> =
            stored.chain(settings.of_the_file.keys().map(String::as_str)).collect();
        let mut mask = Mask::new();
        for provider in providers {
            // One of the subject's own that has its name stands before that of the file.
            let is_hidden = known.named(subject, provider, DEFAULT).is_some();
            let of_the_file = settings.of_the_file.get(provider).filter(|_| !is_hidden);
            let usable = known.usable(subject, provider).map(|account| &account.permissions);
            let allowed: Vec<Arc<Permissions>> = usable.chain(of_the_file).map(Arc::clone).collect();
            if !allowed.is_empty() && !allowed.iter().any(|permissions| permissions.is_everything()) {
                mask.insert(provider.into(), allowed);
            }
        }
        mask
    }
}
