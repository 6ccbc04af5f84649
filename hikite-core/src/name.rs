//! The names under which the `direct` surface shows the tools of many modules without a clash.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::hex::hex;

/// What clients accept at most.
const LONGEST: usize = 64;

/// The shown name of each `(module, name, aside)`: bare where it is the only one, `module__name` where modules share it.
/// What stands aside is never bare, and takes no bare name from others.
pub fn assign<'a>(items: impl Iterator<Item = (&'a str, &'a str, bool)> + Clone) -> Vec<Arc<str>> {
    let mut holders: HashMap<&str, (&str, bool)> = HashMap::new();
    for (module, name, _) in items.clone().filter(|(_, _, aside)| !aside) {
        let holder = holders.entry(name).or_insert((module, false));
        holder.1 |= holder.0 != module;
    }
    let shown: Vec<String> = items
        .clone()
        .map(|(module, name, aside)| {
            let is_shared = aside || holders.get(name).is_some_and(|holder| holder.1);
            if is_shared { format!("{module}__{name}") } else { name.to_owned() }
        })
        .collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in &shown {
        *counts.entry(name).or_default() += 1;
    }
    // A server may call its tool what another's is shown as: then both end in their hash.
    items
        .zip(&shown)
        .map(|((module, name, _), shown)| {
            let unique = counts[shown.as_str()] == 1 && shown.chars().count() <= LONGEST;
            if unique { shown.as_str().into() } else { hashed(shown, module, name).into() }
        })
        .collect()
}

fn hashed(shown: &str, module: &str, name: &str) -> String {
    let digest = Sha256::digest(format!("{module}:{name}"));
    let mut short: String = shown.chars().take(LONGEST - 9).collect();
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
        assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_name_stays_bare_until_another_module_holds_it_too() {
        check(&[("git", "status"), ("fs", "read")], &["status", "read"]);
        check(
            &[("git", "status"), ("k8s", "status"), ("fs", "read")],
            &["git__status", "k8s__status", "read"],
        );
    }

    #[test]
    fn no_tool_can_stand_in_for_another() {
        let names = assign(
            [("git", "status", false), ("k8s", "status", false), ("evil", "git__status", false)].into_iter(),
        );
        assert_ne!(names[0], names[2]);
        assert!(names[0].starts_with("git__status_") && names[2].starts_with("git__status_"), "{names:?}");
        assert_eq!(&*names[1], "k8s__status");
    }

    #[test]
    fn what_stands_aside_takes_no_name_from_others() {
        let names = assign([("git", "status", false), ("github", "status", true)].into_iter());
        assert_eq!((&*names[0], &*names[1]), ("status", "github__status"));
    }

    #[test]
    fn a_long_name_ends_in_its_hash() {
        let long = "x".repeat(80);
        let names = assign([("m", long.as_str(), false)].into_iter());
        assert_eq!(names[0].len(), 64);
        assert!(names[0].starts_with(&format!("{}_", "x".repeat(55))));
    }
}
