//! Assigns the names under which the `direct` surface lists tools and prompts, so that modules do not clash.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::hex::hex;

/// Longest name that the MCP specification allows, in characters.
const NAME_CHARS_MAX: usize = 128;
/// Longest name that clients with a stricter limit accept, in characters.
const SHORT_NAME_CHARS_MAX: usize = 64;

/// The `direct` names of one tool or prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectNames {
    /// Name that most clients see.
    pub shown: Arc<str>,
    /// Name for clients that accept at most 64 characters. Any client may call the tool by either name.
    pub short: Arc<str>,
}

impl DirectNames {
    /// Uses `name` for all clients.
    pub fn plain(name: &Arc<str>) -> Self {
        Self { shown: Arc::clone(name), short: Arc::clone(name) }
    }

    pub fn of(&self, length: NameLength) -> &Arc<str> {
        match length {
            NameLength::Full => &self.shown,
            NameLength::Short => &self.short,
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        *self.shown == *name || *self.short == *name
    }
}

/// Name length that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameLength {
    Full,
    Short,
}

/// Returns the names of each `(module, name, prefixed)`: bare if unique, `module__name` if several modules share it. An
/// item with the third field set is always prefixed and never makes others ambiguous.
pub fn assign<'a>(items: impl Iterator<Item = (&'a str, &'a str, bool)> + Clone) -> Vec<DirectNames> {
    let mut holders: HashMap<&str, (&str, bool)> = HashMap::new();
    for (module, name, _) in items.clone().filter(|(_, _, prefixed)| !prefixed) {
        let holder = holders.entry(name).or_insert((module, false));
        holder.1 |= holder.0 != module;
    }
    let shown: Vec<String> = items
        .clone()
        .map(|(module, name, prefixed)| {
            let is_shared = prefixed || holders.get(name).is_some_and(|holder| holder.1);
            if is_shared { format!("{module}__{name}") } else { name.to_owned() }
        })
        .collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in &shown {
        *counts.entry(name).or_default() += 1;
    }
    let hashes: Vec<Option<String>> = items
        .clone()
        .zip(&shown)
        .map(|((module, name, _), shown)| {
            let is_short = counts[shown.as_str()] == 1 && shown.chars().count() <= SHORT_NAME_CHARS_MAX;
            (!is_short).then(|| with_hash(shown, module, name))
        })
        .collect();
    // A server may name its tool like another tool's prefixed or hashed name. Both then end in their hash.
    let taken_names: HashSet<&str> = hashes.iter().flatten().map(String::as_str).collect();
    items
        .zip(shown.iter().zip(&hashes))
        .map(|((module, name, _), (shown, hash))| match hash {
            Some(hash) if counts[shown.as_str()] == 1 && shown.chars().count() <= NAME_CHARS_MAX => {
                DirectNames { shown: shown.as_str().into(), short: hash.as_str().into() }
            }
            Some(hash) => DirectNames::plain(&hash.as_str().into()),
            None if taken_names.contains(shown.as_str()) => DirectNames::plain(&with_hash(shown, module, name).into()),
            None => DirectNames::plain(&shown.as_str().into()),
        })
        .collect()
}

fn with_hash(shown: &str, module: &str, name: &str) -> String {
    let digest = Sha256::digest(format!("{module}:{name}"));
    let mut short: String = shown.chars().take(SHORT_NAME_CHARS_MAX - 9).collect();
    short.push('_');
    short.push_str(&hex(&digest[..4]));
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(items: &[(&str, &str)], expected: &[&str]) {
        let names = assign(items.iter().map(|(module, name)| (*module, *name, false)));
        assert_eq!(names.iter().map(|names| &*names.shown).collect::<Vec<_>>(), expected);
        assert!(names.iter().all(|names| names.shown == names.short), "{names:?}");
    }

    #[test]
    fn a_name_stays_bare_until_another_module_holds_it_too() {
        check(&[("git", "status"), ("fs", "read")], &["status", "read"]);
        check(&[("git", "status"), ("k8s", "status"), ("fs", "read")], &["git__status", "k8s__status", "read"]);
    }

    #[test]
    fn no_tool_can_stand_in_for_another() {
        let names =
            assign([("git", "status", false), ("k8s", "status", false), ("evil", "git__status", false)].into_iter());
        assert_ne!(names[0], names[2]);
        let is_hashed = |names: &DirectNames| names.shown.starts_with("git__status_");
        assert!(is_hashed(&names[0]) && is_hashed(&names[2]), "{names:?}");
        assert_eq!(&*names[1].shown, "k8s__status");
    }

    #[test]
    fn what_stands_aside_takes_no_name_from_others() {
        let names = assign([("git", "status", false), ("github", "status", true)].into_iter());
        assert_eq!((&*names[0].shown, &*names[1].shown), ("status", "github__status"));
    }

    #[test]
    fn a_legal_name_stays_whole_and_has_a_short_one_beside_it() {
        let names = |length: usize| {
            let long = "x".repeat(length);
            assign([("m", long.as_str(), false)].into_iter()).remove(0)
        };
        assert_eq!(names(64), DirectNames::plain(&"x".repeat(64).into()));
        for length in [65, 128] {
            let DirectNames { shown, short } = names(length);
            assert_eq!((&*shown, short.len()), (&*"x".repeat(length), 64));
            assert!(short.starts_with(&format!("{}_", "x".repeat(55))));
        }
        let DirectNames { shown, short } = names(129);
        assert_eq!((shown.len(), &shown), (64, &short));
    }

    #[test]
    fn no_tool_can_take_the_short_name_of_another() {
        let long = "x".repeat(80);
        let short = assign([("m", long.as_str(), false)].into_iter()).remove(0).short;
        let names = assign([("m", long.as_str(), false), ("evil", &*short, false)].into_iter());
        assert_eq!(names[0].short, short);
        assert!(!names[1].contains(&short), "{names:?}");
    }
}
