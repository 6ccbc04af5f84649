//! Patterns over tool names: a glob (`read_*`), or a regular expression between slashes (`/^(get|list)_/`).

use globset::{Glob, GlobMatcher};
use regex::Regex;

#[derive(Clone, Debug)]
pub enum Pattern {
    Glob(GlobMatcher),
    Regex(Regex),
}

#[derive(Debug, thiserror::Error)]
#[error("`{pattern}` is not a valid {form}: {reason}")]
pub struct InvalidPattern {
    pattern: String,
    form: &'static str,
    reason: String,
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, InvalidPattern> {
        let bad = |form, reason: String| InvalidPattern { pattern: text.into(), form, reason };
        match text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            Some(regex) => {
                Regex::new(regex).map(Self::Regex).map_err(|error| bad("regular expression", error.to_string()))
            }
            None => Glob::new(text)
                .map(|glob| Self::Glob(glob.compile_matcher()))
                .map_err(|error| bad("glob", error.kind().to_string())),
        }
    }

    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Glob(glob) => glob.is_match(name),
            Self::Regex(regex) => regex.is_match(name),
        }
    }
}

/// The text that `parse` reads.
impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Glob(glob) => write!(f, "{}", glob.glob()),
            Self::Regex(regex) => write!(f, "/{regex}/"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, name: &str, expected: bool) {
        assert_eq!(Pattern::parse(pattern).expect("valid").matches(name), expected, "{pattern} on {name}");
    }

    #[test]
    fn globs_match_whole_names() {
        check("read_*", "read_file", true);
        check("read_*", "unread_file", false);
        check("*", "x", true);
        check("{get,list}_*", "list_dir", true);
        check("serena:*", "serena:read_file", true);
        check("読む*", "読むファイル", true);
    }

    #[test]
    fn slashes_make_a_regular_expression_that_may_match_a_part() {
        check("/file/", "read_file", true);
        check("/^file/", "read_file", false);
    }

    #[test]
    fn a_bad_pattern_says_which_and_why() {
        let error = Pattern::parse("/(/").expect_err("unclosed group").to_string();
        assert!(error.starts_with("`/(/` is not a valid regular expression"), "{error}");
        assert!(Pattern::parse("[").is_err());
    }
}
