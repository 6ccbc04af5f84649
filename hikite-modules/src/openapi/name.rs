//! Names of tools and parameters, derived from foreign names.

use std::collections::HashSet;

pub(super) const TOOL_CHARS: usize = 40;
pub(super) const MODULE_CHARS: usize = 24;

/// Converts to snake case, starting with a letter, limited to whole words within `chars`.
pub(super) fn snake(text: &str, chars: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in text.chars() {
        if !c.is_ascii_alphanumeric() {
            before = ' ';
            continue;
        }
        // `listV2Issues`, `pageID`: an uppercase letter begins a word unless another precedes it.
        let begins = before == ' ' || (c.is_ascii_uppercase() && !before.is_ascii_uppercase());
        match words.last_mut() {
            Some(word) if !begins => word.push(c.to_ascii_lowercase()),
            _ => words.push(c.to_ascii_lowercase().to_string()),
        }
        before = c;
    }
    let mut name = String::new();
    for word in words {
        let separator = if name.is_empty() { "" } else { "_" };
        if name.len() + separator.len() + word.len() > chars {
            if name.is_empty() {
                name.push_str(&word[..chars]);
            }
            break;
        }
        name.push_str(separator);
        name.push_str(&word);
    }
    match name.as_bytes().first() {
        None => "unnamed".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("n{}", &name[..name.len().min(chars - 1)]),
        Some(_) => name,
    }
}

/// Set of unique names.
#[derive(Debug, Default)]
pub(super) struct UniqueNames(HashSet<String>);

impl UniqueNames {
    pub(super) fn without(taken: &[&str]) -> Self {
        Self(taken.iter().map(|name| (*name).to_owned()).collect())
    }

    pub(super) fn make_unique(&mut self, wanted: String, chars: usize) -> String {
        if self.0.insert(wanted.clone()) {
            return wanted;
        }
        let mut count = 2_usize;
        loop {
            let end = format!("_{count}");
            let kept = wanted.len().min(chars - end.len());
            let name = format!("{}{end}", wanted[..kept].trim_end_matches('_'));
            if self.0.insert(name.clone()) {
                return name;
            }
            count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_made_of_whole_words() {
        for (text, expected) in [
            ("issues/list-for-repo", "issues_list_for_repo"),
            ("listV2Issues", "list_v2_issues"),
            ("pageID", "page_id"),
            ("$top", "top"),
            ("2fa", "n2fa"),
            ("日本", "unnamed"),
            ("getTheVeryLongNameOfAnOperationThatNeverEndsAtAll", "get_the_very_long_name_of_an_operation"),
        ] {
            assert_eq!(snake(text, TOOL_CHARS), expected);
        }
    }

    proptest! {
        #[test]
        fn names_are_short_and_unique(texts in prop::collection::vec("\\PC{0,60}", 1..40)) {
            let mut names = UniqueNames::default();
            let made: Vec<String> = texts.iter().map(|text| names.make_unique(snake(text, TOOL_CHARS), TOOL_CHARS)).collect();
            let different: HashSet<&String> = made.iter().collect();
            prop_assert_eq!(different.len(), made.len());
            for name in &made {
                prop_assert!(name.len() <= TOOL_CHARS && name.starts_with(|c: char| c.is_ascii_lowercase()), "{}", name);
            }
        }
    }
}
