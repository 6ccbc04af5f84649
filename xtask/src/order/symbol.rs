//! Linker symbols, and patterns that outlive a build: mangled names contain crate hashes that change with every
//! version.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

/// Length of a name that is enough to tell it apart.
const NAME_CHARS_MAX: usize = 100;
/// Object name of symbols in their own section, such as all ordered ones.
const NO_OBJECT: &str = "???";
/// Precedes the hash in a legacy Rust symbol.
const NUMBER: &str = "17h";

/// Returns the functions of an object that have costs in a profile.
pub(super) fn executed<'a>(profile: &'a str, object: &str) -> impl Iterator<Item = &'a str> {
    // A name is defined at the first use of its number, as caller or callee.
    let (mut objects, mut functions) = (HashMap::new(), HashMap::new());
    let mut is_ours = false;
    profile.lines().filter_map(move |line| {
        let (kind, rest) = line.split_once("=(")?;
        let (number, name) = rest.split_once(')')?;
        let name = name.trim_start();
        let seen = match kind {
            "ob" | "cob" => &mut objects,
            "fn" | "cfn" => &mut functions,
            _ => return None,
        };
        if !name.is_empty() {
            seen.insert(number, name);
        }
        if kind == "ob" {
            is_ours = objects.get(number).is_some_and(|name| [object, NO_OBJECT].contains(name));
        }
        let function = functions.get(number).filter(|_| kind == "fn" && is_ours)?;
        // A recursive function has a cycle number; an unnamed one is an address or in parentheses.
        let function = function.split('\'').next().unwrap_or_default();
        let has_name = !function.starts_with("0x") && !function.starts_with('(');
        Some(function).filter(|_| has_name)
    })
}

/// Returns a linker pattern that matches the function in this and later builds.
pub(super) fn pattern(name: &str) -> String {
    let name = name.split(".llvm.").next().unwrap_or(name);
    if let Some((path, _)) = name.rsplit_once(NUMBER).filter(|_| name.starts_with("_ZN")) {
        return format!("{}*", cut(&format!("{path}{NUMBER}")));
    }
    if name.starts_with("_R") {
        return format!("{}*", cut(&without_crates(name)).trim_end_matches('*'));
    }
    without_version(name)
}

fn cut(name: &str) -> &str {
    name.get(..NAME_CHARS_MAX).unwrap_or(name)
}

/// Replaces crate disambiguators, the part after `Cs`.
fn without_crates(name: &str) -> String {
    let mut parts = name.split("Cs");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("Cs");
        match part.split_once('_') {
            Some((number, rest)) if number.len() > 7 && number.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                out.push_str("*_");
                out.push_str(rest);
            }
            _ => out.push_str(part),
        }
    }
    out
}

/// Removes the version that aws-lc has in every symbol.
fn without_version(name: &str) -> String {
    const LIBRARY: &str = "aws_lc_";
    match name.split_once(LIBRARY) {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '_');
            format!("{before}{LIBRARY}*_{rest}")
        }
        None => name.to_owned(),
    }
}

/// Returns `true` if a symbol matches, judged by the part before the first star.
pub(super) fn is_known(pattern: &str, symbols: &BTreeSet<&str>) -> bool {
    let (start, is_whole) = pattern.split_once('*').map_or((pattern, true), |(start, _)| (start, false));
    let next = symbols.range::<str, _>((Bound::Included(start), Bound::Unbounded)).next();
    next.is_some_and(|name| if is_whole { *name == start } else { name.starts_with(start) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_tells_what_ran_in_the_program() {
        let profile = "ob=(1) /bin/hikite\nfn=(1) one\n1 2\ncob=(2) /lib/libc.so\ncfn=(2) two\ncalls=1 1\n1 2\n\
                       cfn=(3) three'2\nob=(2)\nfn=(2)\n1 1\nob=(1)\nfn=(3)\n1 1\nfn=(4) 0x00001\nfn=(5) (below main)\n\
                       ob=(3) ???\nfn=(6) six\n";
        assert_eq!(executed(profile, "/bin/hikite").collect::<Vec<_>>(), ["one", "three", "six"]);
    }

    #[test]
    fn a_pattern_outlives_the_build() {
        let same = |one: &str, other: &str, expected: &str| {
            assert_eq!((pattern(one).as_str(), pattern(other).as_str()), (expected, expected));
        };
        same(
            "_ZN6hikite3cli3run17hddea383522964085E",
            "_ZN6hikite3cli3run17h0123456789abcdefE.llvm.12",
            "_ZN6hikite3cli3run17h*",
        );
        same("_RNvNtCsjrHSEGnQ3l9_3std2fs", "_RNvNtCsgEmfK2I1SDS_3std2fs.llvm.7", "_RNvNtCs*_3std2fs*");
        same("aws_lc_0_47_0_SHA256_Init", "aws_lc_0_48_12_SHA256_Init", "aws_lc_*_SHA256_Init");
        assert_eq!(pattern("sqlite3VdbeExec"), "sqlite3VdbeExec");
        let long = format!("_ZN{}17h0123456789abcdefE", "5tokio".repeat(40));
        assert_eq!(pattern(&long).len(), NAME_CHARS_MAX + 1);
    }

    #[test]
    fn a_name_that_is_gone_is_unknown() {
        let symbols = BTreeSet::from(["_ZN1a1b17h12E", "open", "opened"]);
        for (pattern, expected) in
            [("_ZN1a1b17h*", true), ("_ZN1a1c17h*", false), ("open", true), ("ope", false), ("z*", false)]
        {
            assert_eq!(is_known(pattern, &symbols), expected, "{pattern}");
        }
    }
}
